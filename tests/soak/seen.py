"""What a soak has seen, and what was wrong with it.

Owns the judgement: what rises, what lags, what was found that is not there. Every complaint is a line of
`Soaked.wrong`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.soak import bounds
from tests.soak.bounds import Wanted
from tests.soak.measured import MIB, At, Bound, Held, beyond, course, grown

SILENT_PROBES_MAX = 3  # a page that does not come in time on a machine that is busy
EARLY = 1 / 6  # ten minutes of an hour
# Metrics of agents and serve that are 0, or something was lost, found or broken.
NEVER = (
    "seawall_events_lost_total",
    "seawall_held_refused_segments",
    "seawall_log_retention_overtaking",
    "seawall_serve_damaged_total",
    "seawall_serve_defects_total",
    "seawall_serve_gaps_met_total",
    "seawall_serve_missing_total",
)
PARTS: Mapping[str, tuple[Callable[[Held], float], Bound]] = {
    "memory": (lambda held: held.memory_bytes, bounds.MEMORY),
    "handles": (lambda held: held.handles, bounds.HANDLES),
    "threads": (lambda held: held.threads, bounds.THREADS),
}
RISING = {"state": bounds.STATE, "scratch": bounds.SCRATCH}
FILLING = {
    "cache": bounds.CACHE_BYTES_MAX,
    "spool": bounds.SPOOL_BYTES_MAX,
    "journals": bounds.JOURNALS_BYTES_MAX,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One run, by its own summary."""

    at_s: float
    took_s: float
    summary: Mapping[str, Any]

    @property
    def verdicts(self) -> str:
        return ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.summary["verdicts"].items()))


@dataclass(slots=True, kw_only=True)
class Soaked:
    """What was seen. Moments are seconds since all was up."""

    wrong: list[str] = field(default_factory=list)
    held: dict[str, list[tuple[float, Held]]] = field(default_factory=lambda: defaultdict(list))
    lags: dict[str, list[At]] = field(default_factory=lambda: defaultdict(list))
    disks: dict[str, list[At]] = field(default_factory=lambda: defaultdict(list))
    heap: list[At] = field(default_factory=list)
    never: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NEVER, 0.0))
    audits: list[Audited] = field(default_factory=list)
    scrubs: list[tuple[float, Mapping[str, Any]]] = field(default_factory=list)  # seconds, what it said
    cold_reads: int = 0
    records: int = 0
    samples: int = 0
    silent: int = 0

    def of(self, process: str, part: str) -> list[At]:
        take = PARTS[part][0]
        return [At(at_s, take(held)) for at_s, held in self.held[process]]


def judge(found: Soaked, wanted: Wanted) -> None:
    """Adds what is wrong."""
    for name in found.held:
        for part, (_, bound) in PARTS.items():
            found.wrong += _held(found, name, part, bound, wanted)
    for name, samples in found.disks.items():
        found.wrong += _disk(name, samples, wanted)
    found.wrong += _heap(found.heap, wanted.of_its_age(bounds.HEAP))
    found.wrong += grown("spool waiting, bytes", found.lags["spool waiting, bytes"], bounds.WAITING)
    found.wrong += _lags(found.lags, wanted)
    found.wrong += [f"{name} came to {value:g}" for name, value in sorted(found.never.items()) if value]
    if found.silent > SILENT_PROBES_MAX + found.samples // 20:
        found.wrong.append(f"{found.silent} times a page of metrics did not come")


def _held(found: Soaked, name: str, part: str, bound: Bound, wanted: Wanted) -> list[str]:
    samples = found.of(name, part)
    if (name, part) == ("ingest", "memory"):
        return beyond(f"{name}, {part}", (each.value for each in samples), bounds.INGEST_BYTES_MAX)
    own = bounds.JVM_THREADS if (name, part) == ("ingest", "threads") else bound
    return grown(f"{name}, {part}", samples, wanted.of_its_age(own))


def _disk(name: str, samples: Sequence[At], wanted: Wanted) -> list[str]:
    """What fills up to a limit is held against that; the tables rise with what is told, and are shown."""
    sort, shown = name.rpartition(" ")[2], f"{name}, bytes"
    if sort in FILLING:
        return beyond(shown, (each.value for each in samples), FILLING[sort])
    return grown(shown, samples, wanted.of_its_age(RISING[sort])) if sort in RISING else []


def _heap(samples: Sequence[At], bound: Bound) -> list[str]:
    """Each is exact, so that two would do; the first third is for warming up."""
    later = samples[len(samples) // 3 :]
    if len(later) < 2 or later[-1].value - later[0].value <= bound.of(later[0].value):
        return []
    of = f"from {later[0].value:,.0f} to {later[-1].value:,.0f} bytes"
    return [f"ingest, live objects: {of}, where {bound.of(later[0].value):,.0f} more are allowed"]


def _lags(lags: Mapping[str, Sequence[At]], wanted: Wanted) -> list[str]:
    wrong: list[str] = []
    for name, samples in lags.items():
        if name == "spool waiting, bytes":
            wrong += beyond(name, (each.value for each in samples), bounds.WAITING_BYTES_MAX)
        elif name == "ingest, s":
            early = [each.value for each in samples if each.at_s < wanted.start_s]
            late = [each.value for each in samples if each.at_s >= wanted.start_s]
            wrong += beyond(f"{name}, at its start", early, wanted.ingest_lag_s + wanted.start_allowance_s)
            wrong += beyond(name, late, wanted.ingest_lag_s)
        elif name.endswith(", s"):
            wrong += beyond(name, (each.value for each in samples), wanted.lag_s)
    return wrong


def numbers(found: Soaked, wanted: Wanted) -> dict[str, Any]:
    """For a file, and for whoever compares two soaks."""
    return {
        "soak_minutes": wanted.seconds / 60,
        "records_per_s": wanted.records_per_s,
        "records": found.records,
        "processes": {
            name: {part: summed(found.of(name, part), MIB if part == "memory" else 1) for part in PARTS}
            for name in sorted(found.held)
        },
        "disks_mib": {name: summed(each, MIB) for name, each in sorted(found.disks.items())},
        "ingest_live_mib": [round(each.value / MIB, 1) for each in found.heap],
        "worst_lags": {
            name: round(max(each.value for each in samples), 1)
            for name, samples in sorted(found.lags.items())
            if samples
        },
        "bounds": {"lag_s": wanted.lag_s, "ingest_lag_s": wanted.ingest_lag_s},
        "audits": [
            {"at_s": round(each.at_s), "took_s": round(each.took_s), **each.summary} for each in found.audits
        ],
        "scrubs": [{"took_s": round(took_s, 1), **said} for took_s, said in found.scrubs],
        "cold_reads": found.cold_reads,
        "never": found.never,
        "pages_not_had": found.silent,
        "wrong": found.wrong,
    }


def samples(found: Soaked) -> dict[str, Any]:
    """All of them, to be judged anew by other bounds."""
    held = {f"{name}, {part}": found.of(name, part) for name in found.held for part in PARTS}
    return {"held": held, "lags": found.lags, "disks": found.disks, "heap": found.heap}


def summed(samples: Sequence[At], unit: float) -> dict[str, float]:
    """Early, at the end, the most, and how much the judged part rose."""
    if not samples:
        return {}
    by = samples[0].at_s + EARLY * (samples[-1].at_s - samples[0].at_s)
    early = next(each.value for each in samples if each.at_s >= by)
    line = course(samples)
    shown = {"early": early, "end": samples[-1].value, "most": max(each.value for each in samples)}
    if line is not None:
        shown["rise"] = line.rise
    return {name: round(value / unit, 2) for name, value in shown.items()}
