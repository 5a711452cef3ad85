"""`__remote_log_metadata` over Kafka, and whether a broker writes it.

Partitions are assigned, not shared out by a group, and nothing is committed: the position is in the
observer's own memory. Records are read uncommitted, as the brokers read them. The consumer stays open between
two looks and holds little of what it fetched ahead.

Owns the consumer. Refuses to choose another position than the one it was given: what the topic does not have
any more is told with what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from audit_engine.observers.errors import SourceSilent
from audit_engine.observers.kip405.source import Bounds, MetadataRecord, MetadataTopic, Position, Read
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    OffsetsSource,
    TopicDescriber,
    TopicPartition,
    Unknown,
)
from tiering.cluster.quiet import QUIET

TOPIC = "__remote_log_metadata"
IS_ON = "remote.log.storage.system.enable"
MANAGER = "remote.log.metadata.manager.class.name"
TOPIC_BASED = "TopicBasedRemoteLogMetadataManager"

BATCH_RECORDS = 5_000
BATCH_WAIT_S = 0.2
ANSWER_S = 10.0
AHEAD_KIB = 4_096  # that librdkafka may hold of what nobody has taken yet

_DEFAULTS = {"client.id": "seawall-agent"}
_ENDED = frozenset(
    {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION}
)
_REFUSED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


def is_written_by(broker: BrokerSettings) -> bool:
    """Whether this broker has remote log storage on, with Kafka's own topic of metadata beneath it.

    A broker with another RemoteLogMetadataManager keeps its records where only that one knows.
    """
    is_on, manager = broker.entries.get(IS_ON), broker.entries.get(MANAGER)
    if is_on is None or is_on.value != "true":
        return False
    return manager is None or (manager.value or TOPIC_BASED).rpartition(".")[2] == TOPIC_BASED


class ClusterSource(TopicDescriber, OffsetsSource, Protocol):
    """What is asked of the cluster; `tiering.cluster.kafka` answers."""


class KafkaMetadataSource:
    """`cluster` answers which topic there is and where it ends, `librdkafka` is what its consumer needs."""

    def __init__(self, librdkafka: Mapping[str, str], cluster: ClusterSource, *, name: str = TOPIC) -> None:
        self._settings = librdkafka
        self._cluster = cluster
        self._name = name

    def topic(self) -> MetadataTopic | None:
        found = self._cluster.describe_topics([self._name])[self._name]
        if not isinstance(found, Unknown):
            return MetadataTopic(
                topic_id=found.topic_id,
                replicas={number: frozenset(each.replicas) for number, each in found.partitions.items()},
            )
        if found.cause is Cause.NO_SUCH_TOPIC:
            return None
        raise SourceSilent(what=self._name, act="described", why=found.reason)

    def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        asked = [TopicPartition(self._name, number) for number in sorted(partitions)]
        ends: dict[int, int] = {}
        for partition, found in self._cluster.leader_offsets(asked).items():
            if isinstance(found, Unknown):
                why = f"partition {partition.partition}: {found.reason}"
                raise SourceSilent(what=self._name, act="asked for its ends", why=why)
            ends[partition.partition] = found.high_watermark
        return ends

    def open(self, positions: Mapping[int, Position]) -> KafkaReading:
        return KafkaReading(self._settings, self._name, positions)


class KafkaReading:
    """One consumer, from these positions on."""

    def __init__(self, librdkafka: Mapping[str, str], name: str, positions: Mapping[int, Position]) -> None:
        self._name = name
        self._consumer = Consumer(_settings(librdkafka), logger=QUIET)
        self._consumer.assign([_place(name, *each) for each in positions.items()])

    def read(self) -> Read:
        try:
            return self._sorted(self._consumer.consume(BATCH_RECORDS, BATCH_WAIT_S))
        except KafkaException as failed:
            raise SourceSilent(what=self._name, act="read", why=failed.args[0].str()) from failed

    def close(self) -> None:
        self._consumer.close()

    def _sorted(self, messages: list[Message]) -> Read:
        records: list[MetadataRecord] = []
        ends: dict[int, int] = {}
        lost: dict[int, Bounds] = {}
        for message in messages:
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is None:
                assert partition is not None
                assert offset is not None
                epoch = message.leader_epoch()
                records.append(
                    MetadataRecord(partition, offset, -1 if epoch is None else epoch, message.value())
                )
            elif error.code() == KafkaError._PARTITION_EOF:
                assert partition is not None
                assert offset is not None
                ends[partition] = offset
            elif error.code() in _ENDED and partition is not None:
                lost[partition] = self._bounds(partition)
            elif error.code() in _REFUSED:
                raise SourceSilent(what=self._name, act="read", why=error.str())
            # librdkafka tries again by itself; whoever describes the topic next hears of what stays
        return Read(records=tuple(records), ends=ends, lost=lost)

    def _bounds(self, partition: int) -> Bounds:
        found = self._consumer.get_watermark_offsets(
            ClientPartition(self._name, partition), timeout=ANSWER_S, cached=False
        )
        if found is None:
            raise SourceSilent(what=self._name, act="asked for its ends", why="its leader does not answer")
        return Bounds(*found)


def _place(name: str, partition: int, position: Position) -> ClientPartition:
    """With the leader epoch, the broker says so if it has other records below the position (KIP-320)."""
    if position.leader_epoch < 0:
        return ClientPartition(name, partition, position.offset)
    return ClientPartition(name, partition, position.offset, leader_epoch=position.leader_epoch)


def _settings(librdkafka: Mapping[str, str]) -> dict[str, Any]:
    return {
        **_DEFAULTS,
        **librdkafka,
        "group.id": "seawall-kip405",  # librdkafka wants one; nothing is joined or committed
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        "enable.partition.eof": "true",
        "isolation.level": "read_uncommitted",
        "check.crcs": "true",
        "allow.auto.create.topics": "false",
        "queued.max.messages.kbytes": str(AHEAD_KIB),
    }
