"""What retention took before it was ingested is named, and is an exit code: also what it takes meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from audit_engine.ingest.position import Lost
from audit_engine.tables.errors import ReadingFailed
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from tests.audit_engine.ingest.topics import EventTopic, Stopped, stopping_at, value_of
from tests.seawall.cli.calling import call


def _delete_below(topic: EventTopic, offset: int) -> None:
    """As retention does, at once."""
    admin = kafka.admin_client(topic.broker.bootstrap)  # dropped before the answer is there, it would cancel
    for answer in admin.delete_records([TopicPartition(topic.name, 0, offset)]).values():
        answer.result()


def test_retention_that_overtakes_is_a_finding(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """The stretch is named once, also after a kill just behind it; what is left is ingested; exit code 1."""
    topic = EventTopic(broker=broker, name="ingest-overtaken", folder=tmp_path).make(1)
    tables = topic.tables(spark)
    topic.produce(*[value_of(n) for n in range(20)])
    topic.ingest(spark, tables)
    topic.produce(*[value_of(n) for n in range(20, 40)])
    _delete_below(topic, 30)

    with pytest.raises(Stopped):
        topic.ingest(spark, tables, at=stopping_at("told"))
    environ = {
        "SEAWALL_AUDIT__TABLES": topic.root,
        "SEAWALL_AUDIT__TOPIC": topic.name,
        "SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap,
    }
    ended = call("audit", "ingest", "--once", "--json", environ=environ)
    listed = call("audit", "quarantine", "list", "--json", environ=environ)

    assert (ended.status, json.loads(ended.stdout)["lost"]) == (1, [Lost(0, 20, 30)._asdict()]), ended.stderr
    [row] = json.loads(listed.stdout)
    assert (listed.status, row["reason"]) == (1, "retention_overtook")
    assert (row["kafka_offset"], row["kafka_end_offset"], row["value"]) == (20, 30, None)
    offsets = sorted(row["kafka_offset"] for row in tables.events.rows().select("kafka_offset").collect())
    assert offsets == [*range(20), *range(30, 40)]


def test_what_is_taken_behind_the_plan_is_a_finding_too(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """Between a batch's plan and its reading: the batch fails, is planned anew, and what is lost is named.

    Where it never gets ahead of retention, the run ends with an error and no offset was moved over a loss.
    """
    topic = EventTopic(broker=broker, name="ingest-overtaken-later", folder=tmp_path).make(1)
    tables = topic.tables(spark)
    topic.produce(*[value_of(n) for n in range(20)])
    topic.ingest(spark, tables)
    topic.produce(*[value_of(n) for n in range(20, 60)])
    steps: list[str] = []

    def once_behind_the_plan(step: str) -> None:
        steps.append(step)
        if steps.count("planned") == 1 and step == "planned":
            _delete_below(topic, 30)

    found = topic.ingest(spark, tables, at=once_behind_the_plan)
    topic.produce(*[value_of(n) for n in range(60, 100)])
    below = iter(range(65, 100, 5))

    def always_behind_the_plan(step: str) -> None:
        if step == "planned":
            _delete_below(topic, next(below))

    overtaken = topic.run(spark, tables, at=always_behind_the_plan)
    with pytest.raises(ReadingFailed):
        overtaken.once()
    last = topic.ingest(spark, tables)

    assert (steps.count("planned"), found.lost, found.offsets) == (2, [Lost(0, 20, 30)], 30)
    lost = tables.quarantine.rows().where("reason = 'retention_overtook'").collect()
    stretches = sorted((row["kafka_offset"], row["kafka_end_offset"]) for row in lost)
    assert stretches == [(20, 30), (60, 65), (65, 70), (70, 75)]
    assert (overtaken.so_far.lost, last.lost) == ([Lost(0, 60, 70)], [Lost(0, 60, 75)])
    offsets = sorted(row["kafka_offset"] for row in tables.events.rows().select("kafka_offset").collect())
    assert offsets == [*range(20), *range(30, 60), *range(75, 100)]
