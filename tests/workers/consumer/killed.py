"""Paper 003's demo as a run that is looked at: so many records by key, so long each, so many at once.

Owns the child processes that it starts. What is claimed of a run is read from its ledger and from the broker.
"""

from __future__ import annotations

import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.workers.consumer import child
from workers.testing import ledger

KEYS = 100
PARTITIONS = 3
DEADLINE_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`repeated_finished` were handled and came again: at most what was finished since the last commit."""

    records: int
    took_s: float
    ideal_s: float
    kills: int
    lost: int
    repeated_finished: int
    repeated_running: int
    repeats_bound: int

    @property
    def ratio(self) -> float:
        return self.took_s / self.ideal_s


def demo(
    broker: LocalCluster, folder: Path, *, records: int, work_s: float, at_once: int, kills: int
) -> Report:
    """Run it to its end. Raises AssertionError where a key is out of order."""
    topic = f"demo-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    fill(broker, topic, records)
    path = folder / f"{topic}.ledger"
    client = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": topic,
        "group.instance.id": "one",  # started again after a kill it is known at once
        "session.timeout.ms": 6_000,
    }
    killed: set[int] = set()
    running = child.start(path, client, topic, at_once=at_once, work_s=work_s)
    try:
        for number in range(1, kills + 1):
            _wait_for(path, records * number // (kills + 1))
            running.kill()
            running.wait()
            killed.add(running.pid)
            running = child.start(path, client, topic, at_once=at_once, work_s=work_s)
        _wait_for(path, records)
    finally:
        end([running])
    lines = ledger.read(path)
    ledger.assert_keys_in_order(lines, killed=frozenset(killed))
    finished, unfinished = ledger.repeats(lines)
    return Report(
        records=records,
        took_s=ledger.took_s(lines),
        ideal_s=records * work_s / at_once,
        kills=kills,
        lost=records - len(ledger.ended(lines)),
        repeated_finished=finished,
        repeated_running=unfinished,
        repeats_bound=kills * bound(at_once, work_s),
    )


def bound(at_once: int, work_s: float) -> int:
    """What may be finished between two commits that the broker has, and what runs beside it, of one kill."""
    uncommitted_s = child.COMMIT_EVERY_S + 0.5  # and the time until the broker has it
    return round(at_once * uncommitted_s / work_s) + at_once


def fill(broker: LocalCluster, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"}, logger=kafka.SILENT)
    for number in range(records):
        producer.produce(topic, key=b"key-%d" % (number % KEYS), value=b"%d" % number)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """In order, and by force after ten seconds."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(path: Path, count: int) -> None:
    wait_until(
        lambda: len(ledger.ended(ledger.read(path))) >= count,
        name=path.name,
        wanted=f"{count} records handled",
        deadline_s=DEADLINE_S,
    )
