"""The records of `__remote_log_metadata`: what Kafka's own tiered storage (KIP-405) says of its segments.

    api key  message                                key of the Kafka record: none
    0        RemoteLogSegmentMetadata               a copy was started
    1        RemoteLogSegmentMetadataUpdate         a segment changed state
    2        RemotePartitionDeleteMetadata          a partition is being deleted
    3        RemoteLogSegmentMetadataSnapshot       a segment's state, in a broker's snapshot of the topic

In the frame of `tiering.log.framed`; the tables are below. `end_offset` is the last offset of the segment,
as Kafka has it: this is the one place where a range is not half-open, and `offsets` is that range made so.

Refuses: to judge the order of states; to follow what `custom_metadata` says, which is the plugin's own.

Invariant: a state that Kafka does not have is Malformed, never another state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, ClassVar, TypeAlias, cast

from tiering.log.framed import FramedMessage, SkippedRecord, read_framed
from tiering.log.schema import (
    ArrayOf,
    Bool,
    Int32,
    Int64,
    NullableBytes,
    Primitive,
    String,
    Struct,
    Tag,
    UuidField,
    enum_reader,
)
from tiering.log.wire import Buffer


class RemoteSegmentState(IntEnum):
    """The life of a segment in the remote tier."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class RemotePartitionDeleteState(IntEnum):
    """The end of a partition in the remote tier."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


SegmentStateField: TypeAlias = Annotated[
    RemoteSegmentState, Primitive("int8", enum_reader(RemoteSegmentState), 1)
]
DeleteStateField: TypeAlias = Annotated[
    RemotePartitionDeleteState, Primitive("int8", enum_reader(RemotePartitionDeleteState), 1)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdPartition:
    """A partition; the name is a label, the id is the identity."""

    name: String
    id: UuidField
    partition: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentId:
    """One copy of one segment: every attempt has its own id."""

    topic_id_partition: Annotated[TopicIdPartition, Struct(TopicIdPartition)]
    id: UuidField


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLeaderEpoch:
    """A leader epoch, and where in the segment it starts."""

    leader_epoch: Int32
    offset: Int64


SegmentLeaderEpochs: TypeAlias = Annotated[
    tuple[SegmentLeaderEpoch, ...], ArrayOf(Struct(SegmentLeaderEpoch))
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadata:
    """A segment is being copied (the first state of each copy), with all that is known of it."""

    api_key: ClassVar[int] = 0
    versions: ClassVar[range] = range(1)

    remote_log_segment_id: Annotated[RemoteLogSegmentId, Struct(RemoteLogSegmentId)]
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64
    segment_leader_epochs: SegmentLeaderEpochs
    segment_size_in_bytes: Int32
    custom_metadata: NullableBytes
    remote_log_segment_state: SegmentStateField
    txn_index_empty: Annotated[Bool, Tag(0)] = False

    @property
    def offsets(self) -> range:
        return range(self.start_offset, self.end_offset + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataUpdate:
    """A segment's copy went into another state."""

    api_key: ClassVar[int] = 1
    versions: ClassVar[range] = range(1)

    remote_log_segment_id: Annotated[RemoteLogSegmentId, Struct(RemoteLogSegmentId)]
    broker_id: Int32
    event_timestamp_ms: Int64
    custom_metadata: NullableBytes
    remote_log_segment_state: SegmentStateField


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartitionDeleteMetadata:
    """A partition's remote segments are being deleted, all of them."""

    api_key: ClassVar[int] = 2
    versions: ClassVar[range] = range(1)

    topic_id_partition: Annotated[TopicIdPartition, Struct(TopicIdPartition)]
    broker_id: Int32
    event_timestamp_ms: Int64
    remote_partition_delete_state: DeleteStateField


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataSnapshot:
    """A segment's whole state in a snapshot; the partition is that of the file it stands in."""

    api_key: ClassVar[int] = 3
    versions: ClassVar[range] = range(1)

    segment_id: UuidField
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64
    segment_leader_epochs: SegmentLeaderEpochs
    segment_size_in_bytes: Int32
    custom_metadata: NullableBytes
    remote_log_segment_state: SegmentStateField
    txn_index_empty: Annotated[Bool, Tag(0)] = False

    @property
    def offsets(self) -> range:
        return range(self.start_offset, self.end_offset + 1)


RemoteMetadata: TypeAlias = (
    RemoteLogSegmentMetadata
    | RemoteLogSegmentMetadataUpdate
    | RemotePartitionDeleteMetadata
    | RemoteLogSegmentMetadataSnapshot
)
REMOTE_METADATA: Mapping[int, type[FramedMessage]] = {
    record.api_key: record for record in RemoteMetadata.__args__
}


def read_remote_metadata(value: Buffer) -> RemoteMetadata | SkippedRecord:
    """The remote-storage record that a record's value holds, or why it was not read."""
    return cast("RemoteMetadata | SkippedRecord", read_framed(value, REMOTE_METADATA))
