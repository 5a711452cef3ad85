"""Events from a broker that wants TLS, and SCRAM or a token: what ingest is handed is enough to come in."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.ingest.client import java_properties, self_contained
from audit_engine.ingest.kafka import KafkaReach
from audit_engine.ingest.spark import Ingest, IngestSource
from tests.audit_engine.ingest.topics import DAY, EventTopic, value_of
from tests.cluster.secure import SecureBroker

COUNT = 7


@pytest.mark.parametrize("sign_in", ["scram", "token"])
def test_events_are_read_over_tls(
    sign_in: str, spark: SparkSession, secure_broker: SecureBroker, tmp_path: Path
) -> None:
    """Where they end by librdkafka, the events themselves by Spark's Java client, by the same settings."""
    topic = EventTopic(broker=secure_broker, name=f"ingest-by-{sign_in}", folder=tmp_path).make(1)
    topic.produce(*(value_of(number) for number in range(COUNT)))
    config = secure_broker.client() if sign_in == "scram" else secure_broker.by_token()

    source = IngestSource(
        topic=topic.name, client=self_contained(java_properties(config)), reach=KafkaReach(config)
    )
    done = Ingest(spark, topic.tables(spark), source, day=lambda: DAY).once()

    assert (done.offsets, done.quarantined) == (COUNT, 0)
