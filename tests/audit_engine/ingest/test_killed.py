"""`seawall audit ingest --continuous` as a service: kill -9 of all of it, JVM and all, then SIGTERM."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from rules.events import LogEvent
from seawall.local.broker import LocalCluster
from tests.audit_engine.events import LOG, OTHER_LOG, stalled
from tests.audit_engine.ingest.service import IngestService
from tests.audit_engine.ingest.topics import EventTopic

# Fifty and more are for a quiet hour: SEAWALL_TEST_KILLS=50. A run that fails prints its seed.
KILLS = int(os.environ.get("SEAWALL_TEST_KILLS", "1"))
SEED = int(os.environ.get("SEAWALL_TEST_SEED", "0")) or random.randrange(1, 1 << 30)
BATCH_RECORDS_MAX = 20
EVENTS_A_KILL = 100
LAST = 40  # that are told while the last run is at work


def _events(first: int, count: int) -> Iterator[LogEvent]:
    """Of two logs in turn, so that both partitions have some."""
    return (stalled(number, (LOG, OTHER_LOG)[number % 2]) for number in range(first, first + count))


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
    service = IngestService(
        tmp_path, bootstrap=broker.bootstrap, topic=topic.name, batch_records_max=BATCH_RECORDS_MAX
    )
    told = 0
    with topic.publishing() as publish, service:
        for kill in range(1, KILLS + 1):
            publish(_events(told, EVENTS_A_KILL))
            told += EVENTS_A_KILL
            service.start()
            if kill % 5:
                service.goes_on(service.held() + 1)
            Event().wait(chance.uniform(0, 2 if kill % 5 else 15))
            service.kill()
            print(f"kill {kill}: {service.held()} of {told}", flush=True)  # noqa: T201  # of a failed run
        held = service.held()
        service.start()
        service.goes_on(told)
        publish(_events(told, LAST))
        service.goes_on(told + LAST)
        code, said = service.stop()

    assert (code, said["offsets"]) == (0, told + LAST - held), service.log.read_text()
    rows = topic.tables(spark).events.rows().select("emitter_incarnation", "emitter_seq").collect()
    assert len({row["emitter_incarnation"] for row in rows}) == 1
    assert sorted(row["emitter_seq"] for row in rows) == list(range(told + LAST))
