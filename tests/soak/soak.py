"""One soak: samples, scrubs, cold reads and audits while the load goes on; what was found.

Owns the order of things. Whatever is wrong is a line of `Soaked.wrong`, and nothing ends it early but a
process that has ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from seawall.local.waiting import becomes_true
from tests.faults.scrub import tiered_to
from tests.faults.test_whole_system import closed_ends, replayed
from tests.soak.measured import (
    HANDLES,
    JVM_MEMORY,
    MEMORY,
    MIB,
    THREADS,
    Held,
    as_table,
    beyond,
    grown,
    held_by,
)
from tests.soak.world import PARTITIONS, TOPIC, Load, Reader, World, read_cold, running

SPOOL_BYTES_MAX = 8 * MIB
CATCH_UP_S = 240.0
VERB_S = 900.0
WARMING_PART = 0.1
SILENT_PROBES_MAX = 3  # a page that does not come in time on a machine that is busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How long, how much, how often, and how far behind anything may ever be."""

    seconds: float
    records_per_s: float = 150.0
    segment_bytes: int = 1024 * 1024
    sample_every_s: float = 10.0
    audit_every_s: float = 600.0
    scrub_every_s: float = 300.0
    commit_every_s: int = 20
    has_audit: bool = True  # False: without ingest and runs, which is without Spark
    lag_s: float = 120.0


@dataclass(slots=True, kw_only=True)
class Soaked:
    """What was seen."""

    wrong: list[str] = field(default_factory=list)
    held: dict[str, list[Held]] = field(default_factory=lambda: defaultdict(list))
    lags: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    audits: list[dict[str, Any]] = field(default_factory=list)
    scrubs: int = 0
    records: int = 0
    silent: int = 0

    def report(self) -> str:
        lags = "\n".join(
            f"{name:24} at most {max(each):,.1f}" for name, each in sorted(self.lags.items()) if each
        )
        audits = "\n".join(
            f"audit {each['run']}: {each['events']} events, {each['logs']} logs, {each['verdicts']}"
            for each in self.audits
        )
        counted = f"{self.records} records, {self.scrubs} scrubs, {len(self.audits)} audits"
        return "\n".join(
            [counted, as_table(self.held), lags, audits, *(f"WRONG {each}" for each in self.wrong)]
        )

    def numbers(self) -> Mapping[str, object]:
        """For one line of JSON."""
        middle = {name: each[len(each) // 2] for name, each in self.held.items() if each}
        return {
            "records": self.records,
            "audits": len(self.audits),
            "scrubs": self.scrubs,
            "wrong": len(self.wrong),
            "memory_mib": {
                name: [round(one.memory_bytes / MIB) for one in (middle[name], self.held[name][-1])]
                for name in middle
            },
            "worst_lags": {name: round(max(each), 1) for name, each in self.lags.items() if each},
        }


def soak(folder: Path, wanted: Wanted, *, say: Callable[[str], None] = lambda _: None) -> Soaked:
    """All of it; what was wrong is in the answer."""
    found = Soaked()
    with running(
        folder,
        segment_bytes=wanted.segment_bytes,
        commit_every_s=wanted.commit_every_s,
        has_audit=wanted.has_audit,
    ) as world:
        say("everything is up")
        with Load(world.cluster.bootstrap, wanted.records_per_s) as load, Reader(world.served_at) as reader:
            _soak(world, wanted, load, reader, found, say)
            load.stop()
            found.records = load.sent * PARTITIONS
            _catch_up(world, load, reader, found)
            found.wrong += [f"the producer: {each}" for each in load.failed[:3]]
            found.wrong += [f"the reader: {each}" for each in reader.wrong[:3]]
        _scrub(world, found)
        found.wrong += read_cold(world.served_at)
        if wanted.has_audit:
            _audit(world, wanted, found, say)
        _ended_well(world, found)
    _judge(found, wanted)
    return found


def _soak(
    world: World, wanted: Wanted, load: Load, reader: Reader, found: Soaked, say: Callable[[str], None]
) -> None:
    began_s = time.monotonic()
    steps: list[tuple[float, Callable[[], None]]] = [
        (wanted.scrub_every_s, lambda: found.wrong.extend(read_cold(world.served_at))),
        (wanted.scrub_every_s, partial(_scrub, world, found)),
    ]
    if wanted.has_audit:
        steps.append((wanted.audit_every_s, partial(_audit, world, wanted, found, say)))
    # Each for the first time while all of it warms up: what it takes then is no growth.
    due_s = [began_s + min(every_s, wanted.seconds * WARMING_PART) for every_s, _ in steps]
    with _sampling(partial(_sample, world, load, reader, found), wanted.sample_every_s):
        while time.monotonic() < began_s + wanted.seconds:
            number = min(range(len(steps)), key=due_s.__getitem__)
            at_s = min(due_s[number], began_s + wanted.seconds)
            becomes_true(partial(_is_past, at_s), deadline_s=wanted.seconds + 1)
            if dead := [name for name, each in world.processes.items() if not each.is_alive]:
                found.wrong += [f"{name} has ended:\n{world.processes[name].last_lines()}" for name in dead]
                return
            if due_s[number] <= time.monotonic():
                steps[number][1]()
                due_s[number] = max(due_s[number] + steps[number][0], time.monotonic())


@contextmanager
def _sampling(sample: Callable[[], None], every_s: float) -> Iterator[None]:
    """In a thread of its own: neither a scrub nor an audit holds it up."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every_s):
            sample()

    thread = threading.Thread(target=run, name="samples", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _is_past(at_s: float) -> bool:
    return time.monotonic() >= at_s


def _sample(world: World, load: Load, reader: Reader, found: Soaked) -> None:
    for name, process in world.processes.items():
        if process.pid is not None and (held := held_by(process.pid)) is not None:
            found.held[name].append(held)
    try:
        for number in world.agents:
            said = world.agent_says(number)
            found.lags["copies, s"].append(said.get("seawall_log_lag_seconds", 0.0))
            found.lags["spool, bytes"].append(said["seawall_events_pending_bytes"])
            found.lags["spool, s"].append(said["seawall_events_pending_seconds"])
        found.lags["serve's table, offsets"].append(world.serve_says()["seawall_serve_metadata_lag_offsets"])
        if world.ingest is not None:
            found.lags["ingest, offsets"].append(max(0, world.told() - world.ingested()))
    except (OSError, KafkaException):
        found.silent += 1
        return
    found.lags["reader, records"].append(max(0, load.sent * PARTITIONS - sum(reader.read)))


def _scrub(world: World, found: Soaked) -> None:
    called = _seawall(world, "tier", "scrub", TOPIC, "--json")
    found.scrubs += 1
    if called.returncode not in (0, 4):  # 4: nothing is in the tier yet
        found.wrong.append(
            f"scrub ended with {called.returncode}: {called.stdout[-2000:]}{called.stderr[-500:]}"
        )


def _audit(world: World, wanted: Wanted, found: Soaked, say: Callable[[str], None]) -> None:
    """As of a moment whose events are in the tables: two commits of ingest ago."""
    behind = timedelta(seconds=2 * wanted.commit_every_s + 5)
    as_of = (datetime.now(tz=timezone.utc) - behind).isoformat()
    called = _seawall(world, "audit", "run", "--as-of", as_of, "--no-alerts", "--no-holds", "--json")
    if called.returncode not in (0, 4):
        found.wrong.append(
            f"audit run ended with {called.returncode}: {called.stdout[-500:]}{called.stderr[-2000:]}"
        )
    if not called.stdout.strip().startswith("{"):
        return
    summary = json.loads(called.stdout)
    found.audits.append(summary)
    say(f"audit {summary['run']}: {summary['verdicts']}")
    if summary["open_findings"] or summary["verdicts"].get("VIOLATION"):
        listed = _seawall(world, "audit", "findings", "--json")
        found.wrong.append(f"a false finding: {listed.stdout[:2000]}")


def _seawall(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A verb as a schedule would start it."""
    return subprocess.run(
        [sys.executable, "-m", "seawall", *arguments],
        env=world.environ,
        capture_output=True,
        text=True,
        timeout=VERB_S,
        check=False,
    )


def _catch_up(world: World, load: Load, reader: Reader, found: Soaked) -> None:
    """When nothing comes any more, all are where the load ended."""

    def is_copied() -> bool:
        table = replayed(world.cluster)
        return all(tiered_to(table, log) >= end for log, end in closed_ends(world.cluster, TOPIC).items())

    ends: dict[str, Callable[[], bool]] = {
        "the reader": lambda: reader.read == [load.sent] * PARTITIONS,
        "the copies": is_copied,
    }
    if world.ingest is not None:  # heartbeats go on: what was told before is what has to be there
        ends["ingest"] = partial(_is_ingested, world, world.told())
    for name, is_there in ends.items():
        if not becomes_true(is_there, deadline_s=CATCH_UP_S):
            found.wrong.append(f"{name} did not catch up within {CATCH_UP_S:g} s")


def _is_ingested(world: World, offsets: int) -> bool:
    return world.ingested() >= offsets


def _ended_well(world: World, found: Soaked) -> None:
    for each in (world.serve, world.ingest):
        if each is not None and not each.stop(grace_s=CATCH_UP_S):
            found.wrong.append(f"{each.name} did not end when it was told to")
    for name, process in world.processes.items():
        if process.log.exists() and "Traceback" in process.log.read_text(errors="replace"):
            found.wrong.append(f"{name} left a traceback in its log")


def _judge(found: Soaked, wanted: Wanted) -> None:
    for name, samples in found.held.items():
        memory = JVM_MEMORY if name == "ingest" else MEMORY
        found.wrong += grown(f"{name}, memory", [each.memory_bytes for each in samples], memory)
        found.wrong += grown(f"{name}, handles", [each.handles for each in samples], HANDLES)
        found.wrong += grown(f"{name}, threads", [each.threads for each in samples], THREADS)
    # An audit holds the sampling up, and every process that shares two cores with it.
    ingest_behind = wanted.lag_s * _events_per_s(found, wanted)
    for name, limit in (
        ("copies, s", wanted.lag_s),
        ("spool, s", wanted.lag_s),
        ("spool, bytes", SPOOL_BYTES_MAX),
        ("reader, records", wanted.lag_s * wanted.records_per_s),
        ("ingest, offsets", ingest_behind),
    ):
        found.wrong += beyond(name, found.lags.get(name, []), limit)
    if found.silent > SILENT_PROBES_MAX + len(found.lags["reader, records"]) // 20:
        found.wrong.append(f"{found.silent} times a page of metrics did not come")


def _events_per_s(found: Soaked, wanted: Wanted) -> float:
    events = sum(int(each["events"]) for each in found.audits)
    return max(1.0, events / wanted.seconds)
