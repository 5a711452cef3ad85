"""`seawall audit ingest --continuous` as a service: kill -9 of all of it, JVM and all, then SIGTERM."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from audit_engine.tables.marks import read
from rules.events import LogEvent
from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.events import LOG, OTHER_LOG, stalled
from tests.audit_engine.ingest.topics import DEADLINE_S, EventTopic

# Fifty and more are for a quiet hour: SEAWALL_TEST_KILLS=50. A run that fails prints its seed.
KILLS = int(os.environ.get("SEAWALL_TEST_KILLS", "1"))
SEED = int(os.environ.get("SEAWALL_TEST_SEED", "0")) or random.randrange(1, 1 << 30)
BATCH = 20
EVENTS_A_KILL = 100
LAST = 40  # that are told while the last run is at work
# A JVM that lives for seconds is not worth its second compiler.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


def _events(first: int, count: int) -> Iterator[LogEvent]:
    """Of two logs in turn, so that both partitions have some."""
    return (stalled(number, (LOG, OTHER_LOG)[number % 2]) for number in range(first, first + count))


@contextmanager
def _service(topic: EventTopic, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    # An unknown variable of ours is refused, and those of this test are none that the product knows.
    around = {name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_TEST_")}
    environ = around | {
        "SEAWALL_AUDIT__TABLES": topic.root,
        "SEAWALL_AUDIT__TOPIC": topic.name,
        "SEAWALL_AUDIT__COMMIT_EVERY_S": "1",
        "SEAWALL_AUDIT__BATCH_RECORDS_MAX": str(BATCH),
        "SEAWALL_KAFKA__BOOTSTRAP": topic.broker.bootstrap,
        "JDK_JAVA_OPTIONS": QUICK_JVM,
        "TMPDIR": str(log.parent),  # what a killed process leaves behind goes with the test
    }
    command = [sys.executable, "-m", "seawall", "audit", "ingest", "--continuous", "--json"]
    with log.open("ab") as errors:
        service = subprocess.Popen(
            command, env=environ, start_new_session=True, stdout=subprocess.PIPE, stderr=errors
        )
    try:
        yield service
    finally:
        if service.poll() is None:
            os.killpg(service.pid, signal.SIGKILL)
        service.wait()


def _held(topic: EventTopic) -> int:
    """Offsets that audit_events has gone past, by its own log: Spark is not asked."""
    commits = sorted((Path(topic.root) / "audit_events" / "_delta_log").glob("*.json"), reverse=True)
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            mark = read(json.loads(line).get("commitInfo", {}).get("userMetadata"))
            if mark is not None:
                return sum(mark.next_offsets.values())
    return 0


def _goes_on(service: subprocess.Popen[bytes], topic: EventTopic, to: int) -> None:
    """Until `to` offsets are in; the deadline is each commit's, as nobody knows how many there will be."""
    while (held := _held(topic)) < to:
        moved = partial(lambda before: service.poll() is not None or _held(topic) > before, held)
        assert becomes_true(moved, deadline_s=DEADLINE_S)
        assert service.poll() is None, "the service ended by itself"


@pytest.mark.timeout(600 + 120 * KILLS)
def test_a_service_that_is_killed_loses_and_repeats_nothing(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """At moments that nobody chose: each event once, no hole, and SIGTERM ends it cleanly behind a batch.

    Events come all the while. Most kills come in the batches, every fifth anywhere from the start on.
    """
    chance = random.Random(SEED)
    print(f"SEAWALL_TEST_SEED={SEED}")  # noqa: T201  # of a failed run
    topic = EventTopic(broker=broker, name="ingest-killed", folder=tmp_path).make(2)
    log = tmp_path / "service.log"
    told = 0
    with topic.publishing() as publish:
        for kill in range(1, KILLS + 1):
            publish(_events(told, EVENTS_A_KILL))
            told += EVENTS_A_KILL
            with _service(topic, log) as service:
                if kill % 5:
                    _goes_on(service, topic, _held(topic) + 1)
                Event().wait(chance.uniform(0, 2 if kill % 5 else 15))
            print(f"kill {kill}: {_held(topic)} of {told}", flush=True)  # noqa: T201  # of a failed run
        held = _held(topic)
        with _service(topic, log) as service:
            _goes_on(service, topic, told)
            publish(_events(told, LAST))
            _goes_on(service, topic, told + LAST)
            service.send_signal(signal.SIGTERM)
            said, _ = service.communicate(timeout=DEADLINE_S)

    assert (service.returncode, json.loads(said)["offsets"]) == (0, told + LAST - held), log.read_text()
    rows = topic.tables(spark).events.rows().select("emitter_incarnation", "emitter_seq").collect()
    assert len({row["emitter_incarnation"] for row in rows}) == 1
    assert sorted(row["emitter_seq"] for row in rows) == list(range(told + LAST))
