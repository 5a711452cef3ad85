"""What a soak is blamed for, and how it is drawn."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.soak.bounds import Wanted
from tests.soak.measured import MIB, At, Held
from tests.soak.seen import Audited, Soaked, judge, numbers
from tests.soak.shown import sparks, status, table

WANTED = Wanted(seconds=3600.0)
SUMMARY = {"run": 1, "events": 9, "logs": 6, "excused": 2, "verdicts": {"PASS": 6}, "open_findings": 0}


def an_hour() -> Soaked:
    """As level as can be."""
    found = Soaked(records=1000, samples=360)
    times = [10.0 * each for each in range(360)]
    for name in ("agent-1", "ingest"):
        found.held[name] = [(at_s, Held(memory_bytes=200 * MIB, handles=50, threads=30)) for at_s in times]
    for name in ("copies, s", "ingest, s", "spool waiting, bytes"):
        found.lags[name] = [At(at_s, 10.0) for at_s in times]
    for name in (
        "agent-1, spool",
        "agent-1, journals",
        "agent-1, state",
        "serve, cache",
        "ingest, scratch",
        "tables",
    ):
        found.disks[name] = [At(at_s, 5.0 * MIB) for at_s in times]
    found.heap = [At(300.0 * each, 90.0 * MIB) for each in range(12)]
    found.audits = [Audited(at_s=600.0, took_s=30.0, summary=SUMMARY)]
    return found


def at(samples: list[At], place: int, value: float) -> None:
    samples[place] = samples[place]._replace(value=value)


def risen(samples: list[At], bytes_each: float) -> list[At]:
    return [At(each.at_s, each.value + place * bytes_each) for place, each in enumerate(samples)]


def _heap(found: Soaked) -> None:
    found.heap = risen(found.heap, 6 * MIB)


def _state(found: Soaked) -> None:
    found.disks["agent-1, state"] = risen(found.disks["agent-1, state"], 64 * 1024)


def _waiting(found: Soaked) -> None:
    found.lags["spool waiting, bytes"] = risen(found.lags["spool waiting, bytes"], 4096)


@pytest.mark.parametrize(
    ("spoil", "blamed"),
    [
        (lambda found: at(found.lags["copies, s"], 100, WANTED.lag_s + 1), "copies, s"),
        (lambda found: at(found.lags["ingest, s"], 100, WANTED.ingest_lag_s + 1), "ingest, s"),
        (
            lambda found: at(found.lags["ingest, s"], 2, WANTED.ingest_lag_s + WANTED.start_allowance_s + 1),
            "ingest, s, at its start",
        ),
        (lambda found: at(found.disks["serve, cache"], 7, 100 * MIB), "serve, cache"),
        (lambda found: at(found.disks["agent-1, journals"], 300, 40 * MIB), "agent-1, journals"),
        (lambda found: at(found.disks["agent-1, spool"], 300, 300 * MIB), "agent-1, spool"),
        (lambda found: found.never.update(seawall_events_lost_total=1.0), "seawall_events_lost_total"),
        (lambda found: setattr(found, "silent", 60), "60 times"),
        (_heap, "ingest, live objects"),
        (_state, "agent-1, state"),
        (_waiting, "spool waiting, bytes"),
    ],
)
def test_each_fault_is_told_by_its_name(spoil: Callable[[Soaked], None], blamed: str) -> None:
    """Of an hour that is level but for one thing, that thing is told and nothing else."""
    found = an_hour()
    spoil(found)

    judge(found, WANTED)

    assert len(found.wrong) == 1
    assert found.wrong[0].startswith(blamed)


@pytest.mark.parametrize("spool", [0.0, 20_000.0])
def test_a_level_hour_is_blamed_for_nothing(spool: float) -> None:
    """Nor is what only fills up to its limit, as the spool's file does. A late start is allowed for."""
    found = an_hour()
    found.disks["agent-1, spool"] = risen(found.disks["agent-1, spool"], spool)
    at(found.lags["ingest, s"], 2, WANTED.ingest_lag_s + 1)

    judge(found, WANTED)

    assert found.wrong == []


def test_all_that_was_measured_is_shown_and_kept() -> None:
    """The line tells how far it is, the table each process and each audit, the JSON the same numbers."""
    found = an_hour()

    line, drawn, kept = (
        status(found, WANTED, 1800.0),
        table(found),
        json.loads(json.dumps(numbers(found, WANTED))),
    )

    assert line.startswith("[████████████············] 30:00 of 60:00")
    assert "agent-1, MiB" in drawn
    assert "6 PASS; 0 findings" in drawn
    assert drawn.endswith("nothing is wrong")
    assert kept["processes"]["ingest"]["memory"] == {"early": 200.0, "end": 200.0, "most": 200.0, "rise": 0.0}


def test_what_is_level_looks_level() -> None:
    """A curve begins at 0, so that a ripple is no mountain."""
    assert sparks([At(float(each), 100.0 + each % 2) for each in range(48)], width=8) == "█" * 8
    assert sparks([At(float(each), float(each)) for each in range(8)], width=8)[0] == "▁"
    assert sparks([], width=8) == ""
