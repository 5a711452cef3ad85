"""What retention took before it was ingested is named, and is an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from audit_engine.ingest.position import Lost
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from tests.audit_engine.ingest.topics import EventTopic, Stopped, stopping_at, value_of
from tests.seawall.cli.calling import call


def test_retention_that_overtakes_is_a_finding(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """The stretch is named once, also after a kill just behind it; what is left is ingested; exit code 1."""
    topic = EventTopic(broker=broker, name="ingest-overtaken", folder=tmp_path).make(1)
    tables = topic.tables(spark)
    topic.produce(*[value_of(n) for n in range(20)])
    topic.ingest(spark, tables)
    topic.produce(*[value_of(n) for n in range(20, 40)])
    admin = kafka.admin_client(broker.bootstrap)  # dropped before the answer is there, it would cancel
    asked = admin.delete_records([TopicPartition(topic.name, 0, 30)])
    for answer in asked.values():
        answer.result()

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
