"""What starting a broker, and making topics on it, asks of confluent-kafka.

Owns no server and no client. Clients are made where they are used and thrown away: an AdminClient that has
lived through an election can answer "no leader" for a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from seawall.local.waiting import wait_until

ANSWER_DEADLINE_S = 30.0
FLUSH_DEADLINE_S = 60.0
QUEUE_RECORDS = 10_000
BATCH_BYTES = 16 * 1024  # the Java producer's default

__all__ = [
    "SILENT",
    "AdminClient",
    "ResourceType",
    "admin_client",
    "create_topic",
    "delete_topic",
    "in_sync",
    "leaders",
    "live_broker_ids",
    "produce",
    "set_config",
]

# librdkafka reports every refused connection; while a broker starts or is down that is expected.
SILENT = logging.getLogger("seawall.local.kafka.client")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def admin_client(bootstrap: str, settings: Mapping[str, str | int] | None = None) -> AdminClient:
    """An admin client that says nothing on the terminal."""
    return AdminClient({"bootstrap.servers": bootstrap, **(settings or {})}, logger=SILENT)


def live_broker_ids(bootstrap: str, *, timeout_s: float = 2.0) -> frozenset[int]:
    """The ids of the brokers that the cluster considers alive (unfenced); empty if nobody answers."""
    try:
        metadata = admin_client(bootstrap).list_topics(timeout=timeout_s)
    except KafkaException:
        return frozenset()
    return frozenset(metadata.brokers)


def leaders(bootstrap: str, topic: str) -> dict[int, int]:
    """The leader's node id of every partition that has one; empty if there is no such topic."""
    metadata = admin_client(bootstrap).list_topics(topic, timeout=ANSWER_DEADLINE_S).topics[topic]
    return {number: each.leader for number, each in metadata.partitions.items() if each.leader >= 0}


def in_sync(bootstrap: str, topic: str, partition: int) -> frozenset[int]:
    """The node ids of a partition's in-sync replicas; empty if there is no such partition."""
    metadata = admin_client(bootstrap).list_topics(topic, timeout=ANSWER_DEADLINE_S).topics[topic]
    found = metadata.partitions.get(partition)
    return frozenset(found.isrs) if found is not None else frozenset()


def create_topic(
    bootstrap: str,
    topic: str,
    *,
    partitions: int = 1,
    replication: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Make a topic and return when every partition of it has a leader."""
    new = NewTopic(
        topic, num_partitions=partitions, replication_factor=replication, config=dict(config or {})
    )
    admin = admin_client(bootstrap)  # dropped before the answer is there, it would cancel the request
    admin.create_topics([new])[topic].result(ANSWER_DEADLINE_S)
    wait_until(
        lambda: len(leaders(bootstrap, topic)) == partitions,
        name=topic,
        wanted=f"a leader for each of {partitions} partitions",
        deadline_s=ANSWER_DEADLINE_S,
    )


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic and return when no broker knows it any more."""
    admin = admin_client(bootstrap)
    admin.delete_topics([topic])[topic].result(ANSWER_DEADLINE_S)
    wait_until(
        lambda: not leaders(bootstrap, topic),
        name=topic,
        wanted="it should be gone",
        deadline_s=ANSWER_DEADLINE_S,
    )


def set_config(
    bootstrap: str, name: str, entries: Mapping[str, str], *, kind: ResourceType = ResourceType.TOPIC
) -> None:
    """Set these entries of a topic (or a broker) and leave its others alone."""
    changes = [
        ConfigEntry(entry, value, incremental_operation=AlterConfigOpType.SET)
        for entry, value in entries.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=changes)
    admin = admin_client(bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(ANSWER_DEADLINE_S)


def produce(bootstrap: str, topic: str, values: Iterable[bytes]) -> int:
    """Send these values, in their order, to partition 0; how many were acknowledged in the end."""
    acknowledged = 0

    def count(error: KafkaError | None, _: Message) -> None:
        nonlocal acknowledged
        if error is not None:
            raise KafkaException(error)
        acknowledged += 1

    settings = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "enable.idempotence": True,  # else a batch that is sent again may come after its followers
        "batch.size": BATCH_BYTES,
        "queue.buffering.max.messages": QUEUE_RECORDS,
    }
    producer = Producer(settings, logger=SILENT)
    for value in values:
        while len(producer) >= QUEUE_RECORDS:
            producer.poll(0.1)
        producer.produce(topic, value=value, partition=0, on_delivery=count)
        producer.poll(0)
    producer.flush(FLUSH_DEADLINE_S)
    return acknowledged
