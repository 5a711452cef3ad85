"""The tables of Fetch and Produce: those that carry records.

Fetch     1   versions 4-17   flexible from 12   topics by name until 12, by id from 13
Produce   0   versions 3-13   flexible from 9    by name until 12, by id from 13; only ever refused
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tiering.log.schema import (
    ArrayOf,
    Int8,
    Int16,
    Int32,
    Int32s,
    Int64,
    NullableString,
    Since,
    String,
    Struct,
    Tag,
    UuidField,
)
from tiering.log.wire import ZERO_UUID
from tiering.serve.protocol.forms import Records, Until

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    """What is wanted of one partition."""

    partition: Int32
    current_leader_epoch: Annotated[Int32, Since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, Since(12)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[UuidField, Since(17), Tag(0)] = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTopic:
    """What is wanted of one topic."""

    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[UuidField, Since(13)] = ZERO_UUID
    partitions: Annotated[tuple[FetchPartition, ...], ArrayOf(Struct(FetchPartition))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenTopic:
    """What a fetch session is to leave out."""

    topic: Annotated[String, Since(7), Until(12)] = ""
    topic_id: Annotated[UuidField, Since(13)] = ZERO_UUID
    partitions: Annotated[Int32s, Since(7)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """Who fetches, where it is a broker."""

    replica_id: Annotated[Int32, Since(15)] = -1
    replica_epoch: Annotated[Int64, Since(15)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """Records from these offsets on."""

    cluster_id: Annotated[NullableString, Since(12), Tag(0)] = None
    replica_id: Annotated[Int32, Until(14)] = -1
    replica_state: Annotated[ReplicaState, Struct(ReplicaState), Since(15), Tag(1)] = ReplicaState()
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Annotated[Int32, Since(3)] = INT32_MAX
    isolation_level: Annotated[Int8, Since(4)] = 0
    session_id: Annotated[Int32, Since(7)] = 0
    session_epoch: Annotated[Int32, Since(7)] = -1
    topics: Annotated[tuple[FetchTopic, ...], ArrayOf(Struct(FetchTopic))]
    forgotten_topics_data: Annotated[
        tuple[ForgottenTopic, ...], ArrayOf(Struct(ForgottenTopic)), Since(7)
    ] = ()
    rack_id: Annotated[String, Since(11)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """Records of this producer from this offset on are not to be shown, until its marker."""

    producer_id: Annotated[Int64, Since(4)]
    first_offset: Annotated[Int64, Since(4)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndOffset:
    """Where the last epoch that both know ends. For followers."""

    epoch: Annotated[Int32, Since(12)] = -1
    end_offset: Annotated[Int64, Since(12)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch:
    """Who leads now. Never said by us: it names a real broker."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotId:
    """A snapshot to begin with. For followers of the metadata log."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint:
    """Where a broker listens (KIP-951). Never said by us."""

    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    """What is answered of one partition."""

    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Annotated[Int64, Since(4)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, Struct(EpochEndOffset), Since(12), Tag(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, Struct(LeaderIdAndEpoch), Since(12), Tag(1)] = (
        LeaderIdAndEpoch()
    )
    snapshot_id: Annotated[SnapshotId, Struct(SnapshotId), Since(12), Tag(2)] = SnapshotId()
    aborted_transactions: Annotated[
        tuple[AbortedTransaction, ...] | None, ArrayOf(Struct(AbortedTransaction), nullable=True), Since(4)
    ] = ()
    preferred_read_replica: Annotated[Int32, Since(11)] = -1
    records: Records = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedTopic:
    """What is answered of one topic."""

    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[UuidField, Since(13)] = ZERO_UUID
    partitions: Annotated[tuple[PartitionData, ...], ArrayOf(Struct(PartitionData))]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    """Records."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Annotated[Int16, Since(7)] = 0
    session_id: Annotated[Int32, Since(7)] = 0
    responses: Annotated[tuple[FetchedTopic, ...], ArrayOf(Struct(FetchedTopic))] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], ArrayOf(Struct(NodeEndpoint)), Since(16), Tag(0)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduceData:
    """What is to be written to one partition."""

    index: Int32
    records: Records = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceData:
    """What is to be written to one topic."""

    name: Annotated[String, Until(12)] = ""
    topic_id: Annotated[UuidField, Since(13)] = ZERO_UUID
    partition_data: Annotated[tuple[PartitionProduceData, ...], ArrayOf(Struct(PartitionProduceData))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest:
    """Records to be written."""

    transactional_id: Annotated[NullableString, Since(3)] = None
    acks: Int16
    timeout_ms: Int32
    topic_data: Annotated[tuple[TopicProduceData, ...], ArrayOf(Struct(TopicProduceData))]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordError:
    """What is wrong with one record."""

    batch_index: Annotated[Int32, Since(8)] = 0
    batch_index_error_message: Annotated[NullableString, Since(8)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduced:
    """What became of it."""

    index: Int32
    error_code: Int16
    base_offset: Int64 = -1
    log_append_time_ms: Annotated[Int64, Since(2)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    record_errors: Annotated[tuple[RecordError, ...], ArrayOf(Struct(RecordError)), Since(8)] = ()
    error_message: Annotated[NullableString, Since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, Struct(LeaderIdAndEpoch), Since(10), Tag(0)] = (
        LeaderIdAndEpoch()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduced:
    """What became of it, by topic."""

    name: Annotated[String, Until(12)] = ""
    topic_id: Annotated[UuidField, Since(13)] = ZERO_UUID
    partition_responses: Annotated[tuple[PartitionProduced, ...], ArrayOf(Struct(PartitionProduced))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse:
    """What became of what was to be written."""

    responses: Annotated[tuple[TopicProduced, ...], ArrayOf(Struct(TopicProduced))]
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], ArrayOf(Struct(NodeEndpoint)), Since(10), Tag(0)] = ()
