"""The seventeen faults and the untouched fixtures the whole way: records in Kafka, the real ingest, the run.

One ingest and one run over all of them, a cluster each; what comes out is what the machine says by itself.
"""

from __future__ import annotations

import random
from operator import itemgetter

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from audit_engine.ingest.spark import Ingest
from audit_engine.run.outcomes import told as as_json
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.spark import AuditRun, Means, RunSummary
from audit_engine.run.told import value_of
from audit_engine.tables.spark import open_tables
from rules.events import LogEvent
from rules.machine import Told
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from tests.audit_engine.ingest.topics import DAY, EventTopic
from tests.audit_engine.run.evidence import NOW_MS
from tests.audit_engine.run.test_run import ALL, END_MS, TERMS, by_id, found
from tests.rules.machine.histories import MINUTE_MS, TOPIC

AS_OF_MS = -(-END_MS // MINUTE_MS) * MINUTE_MS
PARTITIONS = 4
FLUSH_S = 120.0


def key_of(told: Told) -> bytes:
    """As a spool keys it: a log's events stay in one partition."""
    event = told.event
    about = event.log if isinstance(event, LogEvent) else told.speaker
    return repr(about).encode()


@pytest.fixture(scope="module")
def topic(broker: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> EventTopic:
    """All that was said, each record twice, out of order by up to some hundred records."""
    made = EventTopic(broker=broker, name="audit-all-faults", folder=tmp_path_factory.mktemp("faults"))
    made.make(PARTITIONS)
    chance = random.Random(405)
    said = sorted((told for each in ALL for told in each.said), key=lambda each: each.observed_at_ms)
    places = [(at + chance.randint(0, 200), told) for at, told in enumerate(said * 2)]
    producer = Producer(made.config(), logger=kafka.SILENT)
    for _, told in sorted(places, key=itemgetter(0)):
        producer.produce(made.name, value=value_of(told), key=key_of(told))
    assert producer.flush(FLUSH_S) == 0
    return made


def ingested_and_judged(spark: SparkSession, topic: EventTopic, root: str) -> RunSummary:
    Ingest(spark, open_tables(spark, root), topic.source(), day=lambda: DAY).once()
    return AuditRun(spark, root, Means(terms=TERMS, now_ms=lambda: NOW_MS, version="test")).next(AS_OF_MS)


@pytest.fixture(scope="module")
def judged(spark: SparkSession, topic: EventTopic) -> RunSummary:
    return ingested_and_judged(spark, topic, topic.root)


def test_each_fault_is_found_through_kafka_and_ingest(
    spark: SparkSession, topic: EventTopic, judged: RunSummary
) -> None:
    """Exactly the listed findings, ids and ranges too, of every scenario; the untouched ones pass."""
    verdicts = Verdicts(spark, topic.root)
    standing = found(verdicts)
    stated = {each["cluster_id"]: each for each in verdicts.statements(TOPIC, 0)}

    for each in ALL:
        alone = each.judged(AS_OF_MS)
        assert by_id(standing[each.cluster_id]) == by_id([as_json(one) for one in alone.findings]), each.name
        assert stated[each.cluster_id]["statement_hash"] == alone.statement.hash, each.name
    untouched = [each for each in ALL if each.name.startswith("untouched")]
    assert {stated[each.cluster_id]["verdict"] for each in untouched} == {"PASS"}
    assert (judged.logs, judged.events) == (len(ALL), 2 * sum(len(each.said) for each in ALL))
