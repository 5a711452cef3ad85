"""Real clients before the endpoint: from offset 0 over the seam, each record as the broker has it, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.cluster.produce import Writer, create_topic, texts
from tests.tiering.reader.live import Tiered, store_of, tier_partition
from tests.tiering.serve.live import Served, served

TOPIC = "served"
POLL_S = 30.0


@pytest.fixture(scope="module")
def tiered(broker: LocalCluster, bucket: LocalBucket) -> Tiered:
    create_topic(broker, TOPIC)
    writer = Writer(broker, TOPIC, "served")
    writer.send_all(texts(2000))
    return tier_partition(broker, bucket, TOPIC)


@pytest.fixture(scope="module")
def endpoint(tiered: Tiered, broker: LocalCluster, bucket: LocalBucket) -> Iterator[Served]:
    with served({"bootstrap.servers": broker.bootstrap}, store_of(bucket)) as found:
        yield found


def consumed(bootstrap: str, count: int) -> list[tuple[int, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[tuple[int, bytes | None]] = []
    while len(found) < count:
        message = consumer.poll(POLL_S)
        assert message is not None
        assert message.error() is None, message.error()
        offset = message.offset()
        assert offset is not None
        found.append((offset, message.value()))
    consumer.close()
    return found


def test_confluent(endpoint: Served, tiered: Tiered, broker: LocalCluster) -> None:
    """x"""
    theirs = consumed(broker.bootstrap, 2000)
    assert consumed(endpoint.bootstrap, 2000) == theirs
    print(endpoint.counters.all(), endpoint.troubles)
    assert endpoint.counters["tier_bytes"] > 0
    assert endpoint.counters["handovers"] == 1
