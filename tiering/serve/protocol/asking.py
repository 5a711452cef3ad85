"""The tables of requests that ask where things are: topics, offsets, epochs.

Metadata              3   versions 0-13   flexible from 9
ListOffsets           2   versions 1-11   flexible from 6
OffsetForLeaderEpoch 23   versions 2-4    flexible from 4
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tiering.log.schema import (
    ArrayOf,
    Bool,
    Int8,
    Int16,
    Int32,
    Int32s,
    Int64,
    NullableString,
    Since,
    String,
    Struct,
    UuidField,
)
from tiering.log.wire import ZERO_UUID
from tiering.serve.protocol.forms import Until

UNASKED_OPERATIONS = -(2**31)
ANY_REPLICA = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequestTopic:
    """A topic by its id or its name."""

    topic_id: Annotated[UuidField, Since(10)] = ZERO_UUID
    name: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """Brokers and topics: all of them for null, and in version 0 for none."""

    topics: Annotated[
        tuple[MetadataRequestTopic, ...] | None, ArrayOf(Struct(MetadataRequestTopic), nullable=True)
    ]
    allow_auto_topic_creation: Annotated[Bool, Since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, Since(8), Until(10)] = False
    include_topic_authorized_operations: Annotated[Bool, Since(8)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBroker:
    """Where a broker listens."""

    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[NullableString, Since(1)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPartition:
    """Who leads a partition, and who has it."""

    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, Since(7)] = -1
    replica_nodes: Int32s
    isr_nodes: Int32s
    offline_replicas: Annotated[Int32s, Since(5)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTopic:
    """A topic and its partitions."""

    error_code: Int16
    name: NullableString
    topic_id: Annotated[UuidField, Since(10)] = ZERO_UUID
    is_internal: Annotated[Bool, Since(1)] = False
    partitions: Annotated[tuple[MetadataPartition, ...], ArrayOf(Struct(MetadataPartition))]
    topic_authorized_operations: Annotated[Int32, Since(8)] = UNASKED_OPERATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse:
    """Brokers and topics."""

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    brokers: Annotated[tuple[MetadataBroker, ...], ArrayOf(Struct(MetadataBroker))]
    cluster_id: Annotated[NullableString, Since(2)] = None
    controller_id: Annotated[Int32, Since(1)] = -1
    topics: Annotated[tuple[MetadataTopic, ...], ArrayOf(Struct(MetadataTopic))]
    cluster_authorized_operations: Annotated[Int32, Since(8), Until(10)] = UNASKED_OPERATIONS
    error_code: Annotated[Int16, Since(13)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition:
    """A time, or one of Kafka's marks for a place in the log."""

    partition_index: Int32
    current_leader_epoch: Annotated[Int32, Since(4)] = -1
    timestamp: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic:
    """The same, by topic."""

    name: String
    partitions: Annotated[tuple[ListOffsetsPartition, ...], ArrayOf(Struct(ListOffsetsPartition))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    """Which offset is at a time, or at an end."""

    replica_id: Int32 = -1
    isolation_level: Annotated[Int8, Since(2)] = 0
    topics: Annotated[tuple[ListOffsetsTopic, ...], ArrayOf(Struct(ListOffsetsTopic))]
    timeout_ms: Annotated[Int32, Since(10)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPartition:
    """The offset; -1 if there is none."""

    partition_index: Int32
    error_code: Int16
    timestamp: Annotated[Int64, Since(1)] = -1
    offset: Annotated[Int64, Since(1)] = -1
    leader_epoch: Annotated[Int32, Since(4)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTopic:
    """The same, by topic."""

    name: String
    partitions: Annotated[tuple[ListedPartition, ...], ArrayOf(Struct(ListedPartition))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse:
    """Offsets."""

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: Annotated[tuple[ListedTopic, ...], ArrayOf(Struct(ListedTopic))]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPartition:
    """An epoch whose end is wanted."""

    partition: Int32
    current_leader_epoch: Annotated[Int32, Since(2)] = -1
    leader_epoch: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochTopic:
    """The same, by topic."""

    topic: String
    partitions: Annotated[tuple[EpochPartition, ...], ArrayOf(Struct(EpochPartition))]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    """Where epochs end: whether what a client read is still the log's."""

    replica_id: Annotated[Int32, Since(3)] = ANY_REPLICA
    topics: Annotated[tuple[EpochTopic, ...], ArrayOf(Struct(EpochTopic))]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """The largest epoch up to the one asked about, and where it ends."""

    error_code: Int16
    partition: Int32
    leader_epoch: Annotated[Int32, Since(1)] = -1
    end_offset: Int64 = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndTopic:
    """The same, by topic."""

    topic: String
    partitions: Annotated[tuple[EpochEnd, ...], ArrayOf(Struct(EpochEnd))]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    """Where epochs end."""

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: Annotated[tuple[EpochEndTopic, ...], ArrayOf(Struct(EpochEndTopic))]
