"""What a transactional writer asks of brokers, as bytes, and their answers as tables.

    request             key  version  body
    Produce               0  9        transactional id, acks, timeout, topics of partitions of one batch each
    Metadata              3  9        topics, never to be created
    FindCoordinator      10  4        key type 1, transactional ids
    InitProducerId       22  4        transactional id, timeout, no earlier producer
    AddPartitionsToTxn   24  3        transactional id, producer, topics of partitions
    EndTxn               26  3        transactional id, producer, commit or abort

All of them are flexible (KIP-482), and known to every broker since Kafka 2.8. Later versions change who
checks what (KIP-890), and brokers keep these.

Owns these bytes. Invariant: an answer is read to its last byte, or it is a LogFormatError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from tiering.log.schema import (
    ArrayOf,
    Bool,
    Int16,
    Int32,
    Int32s,
    Int64,
    NullableString,
    String,
    Struct,
)

NO_TAGS = b"\0"
TRANSACTION = 1  # FindCoordinator's type of key
ACKS_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIndexError:
    """A record that a broker refused."""

    batch_index: Int32
    batch_index_error_message: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduced:
    """Where a batch went."""

    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64
    log_start_offset: Int64
    record_errors: Annotated[tuple[BatchIndexError, ...], ArrayOf(Struct(BatchIndexError))]
    error_message: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduced:
    """The batches of a topic."""

    name: String
    partition_responses: Annotated[tuple[PartitionProduced, ...], ArrayOf(Struct(PartitionProduced))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse:
    """The answer to Produce."""

    api_key: ClassVar[int] = 0
    versions: ClassVar[range] = range(9, 10)

    responses: Annotated[tuple[TopicProduced, ...], ArrayOf(Struct(TopicProduced))]
    throttle_time_ms: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker and where it listens."""

    node_id: Int32
    host: String
    port: Int32
    rack: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLed:
    """Who leads a partition."""

    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32
    replica_nodes: Int32s
    isr_nodes: Int32s
    offline_replicas: Int32s


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLed:
    """Who leads a topic's partitions."""

    error_code: Int16
    name: String
    is_internal: Bool
    partitions: Annotated[tuple[PartitionLed, ...], ArrayOf(Struct(PartitionLed))]
    topic_authorized_operations: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse:
    """The answer to Metadata."""

    api_key: ClassVar[int] = 3
    versions: ClassVar[range] = range(9, 10)

    throttle_time_ms: Int32
    brokers: Annotated[tuple[Node, ...], ArrayOf(Struct(Node))]
    cluster_id: NullableString
    controller_id: Int32
    topics: Annotated[tuple[TopicLed, ...], ArrayOf(Struct(TopicLed))]
    cluster_authorized_operations: Int32

    @property
    def nodes(self) -> dict[int, Node]:
        return {each.node_id: each for each in self.brokers}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """Who coordinates a key."""

    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    """The answer to FindCoordinator."""

    api_key: ClassVar[int] = 10
    versions: ClassVar[range] = range(4, 5)

    throttle_time_ms: Int32
    coordinators: Annotated[tuple[Coordinator, ...], ArrayOf(Struct(Coordinator))]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    """The answer to InitProducerId."""

    api_key: ClassVar[int] = 22
    versions: ClassVar[range] = range(4, 5)

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64
    producer_epoch: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAdded:
    """Whether a partition is in the transaction."""

    partition_index: Int32
    partition_error_code: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAdded:
    """A topic's partitions."""

    name: String
    results_by_partition: Annotated[tuple[PartitionAdded, ...], ArrayOf(Struct(PartitionAdded))]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnResponse:
    """The answer to AddPartitionsToTxn."""

    api_key: ClassVar[int] = 24
    versions: ClassVar[range] = range(3, 4)

    throttle_time_ms: Int32
    results_by_topic: Annotated[tuple[TopicAdded, ...], ArrayOf(Struct(TopicAdded))]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnResponse:
    """The answer to EndTxn."""

    api_key: ClassVar[int] = 26
    versions: ClassVar[range] = range(3, 4)

    throttle_time_ms: Int32
    error_code: Int16


# Requests.


def metadata(topics: Sequence[str]) -> bytes:
    listed = array(string(topic) + NO_TAGS for topic in topics)
    return listed + b"\0" + b"\0" + b"\0" + NO_TAGS  # no topic made, no authorised operations told


def find_coordinator(transactional_id: str) -> bytes:
    return struct.pack(">b", TRANSACTION) + array([string(transactional_id)]) + NO_TAGS


def init_producer_id(transactional_id: str, timeout_ms: int) -> bytes:
    return string(transactional_id) + struct.pack(">iqh", timeout_ms, -1, -1) + NO_TAGS


def add_partitions(
    transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[tuple[str, int]]
) -> bytes:
    topics = array(
        string(topic) + array([struct.pack(">i", partition)]) + NO_TAGS for topic, partition in partitions
    )
    return string(transactional_id) + struct.pack(">qh", producer_id, epoch) + topics + NO_TAGS


def end_transaction(transactional_id: str, producer_id: int, epoch: int, *, commit: bool) -> bytes:
    return string(transactional_id) + struct.pack(">qh?", producer_id, epoch, commit) + NO_TAGS


def produce(
    transactional_id: str, topic: str, partition: int, batch: bytes | bytearray, timeout_ms: int
) -> bytes:
    head = string(transactional_id) + struct.pack(">hi", ACKS_ALL, timeout_ms)
    before = b"\x02" + string(topic) + b"\x02" + struct.pack(">i", partition) + uvarint(len(batch) + 1)
    return b"".join([head, before, batch, NO_TAGS, NO_TAGS, NO_TAGS])


def string(text: str) -> bytes:
    encoded = text.encode()
    return uvarint(len(encoded) + 1) + encoded


def array(items: Iterable[bytes]) -> bytes:
    listed = list(items)
    return uvarint(len(listed) + 1) + b"".join(listed)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
