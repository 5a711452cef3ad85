"""Records as Kafka's brokers write them into `__remote_log_metadata`, and a topic of them in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from audit_engine.observers.kip405.source import Bounds, MetadataRecord, MetadataTopic, Position, Read
from tests.encode.message import encode_framed
from tiering.log.remote_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    RemoteSegmentState,
    SegmentLeaderEpoch,
    TopicIdPartition,
)
from tiering.log.wire import Uuid

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
TOPIC_ID = Uuid("CgkTzsXgRlOwPTRJHnL2yg")
METADATA_ID = "3cVtEW_RTm2TSqxDBnRsEA"
ORDERS = TopicIdPartition(name="orders", id=TOPIC_ID, partition=3)


def segment_id(number: int) -> Uuid:
    return Uuid(f"{'A' * 17}{number:04d}A")


def started(
    number: int,
    start: int,
    last: int,
    *,
    broker_id: int = 1,
    at_ms: int = 1_000,
    of: TopicIdPartition = ORDERS,
) -> bytes:
    """A copy of `[start, last]`, as Kafka counts, is begun."""
    record = RemoteLogSegmentMetadata(
        remote_log_segment_id=RemoteLogSegmentId(topic_id_partition=of, id=segment_id(number)),
        start_offset=start,
        end_offset=last,
        broker_id=broker_id,
        max_timestamp_ms=500 + number,
        event_timestamp_ms=at_ms,
        segment_leader_epochs=(SegmentLeaderEpoch(leader_epoch=4, offset=start),),
        segment_size_in_bytes=100 + number,
        custom_metadata=None,
        remote_log_segment_state=RemoteSegmentState.COPY_SEGMENT_STARTED,
    )
    return encode_framed(record, 0)


def updated(
    number: int,
    state: RemoteSegmentState,
    *,
    broker_id: int = 1,
    at_ms: int = 1_000,
    of: TopicIdPartition = ORDERS,
) -> bytes:
    record = RemoteLogSegmentMetadataUpdate(
        remote_log_segment_id=RemoteLogSegmentId(topic_id_partition=of, id=segment_id(number)),
        broker_id=broker_id,
        event_timestamp_ms=at_ms,
        custom_metadata=b"the plugin's",
        remote_log_segment_state=state,
    )
    return encode_framed(record, 0)


def finished(number: int) -> bytes:
    return updated(number, RemoteSegmentState.COPY_SEGMENT_FINISHED)


def deleting(number: int) -> bytes:
    return updated(number, RemoteSegmentState.DELETE_SEGMENT_STARTED)


def deleted(number: int) -> bytes:
    return updated(number, RemoteSegmentState.DELETE_SEGMENT_FINISHED)


def partition_record(state: RemotePartitionDeleteState, of: TopicIdPartition = ORDERS) -> bytes:
    record = RemotePartitionDeleteMetadata(
        topic_id_partition=of, broker_id=2, event_timestamp_ms=7_000, remote_partition_delete_state=state
    )
    return encode_framed(record, 0)


@dataclass
class Topic:
    """A topic in memory. A test appends to it, cuts it, or makes it anew."""

    topic_id: str = METADATA_ID
    replicas: dict[int, frozenset[int]] = field(default_factory=lambda: {0: frozenset({1})})
    logs: dict[int, list[bytes | None]] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    epoch: int = 0
    is_there: bool = True
    is_mute: bool = False  # what comes does not get to those who read
    batch: int = 2  # so many records come at once: what lies between two batches is shown as well

    def append(self, *values: bytes | None, partition: int = 0) -> None:
        self.logs.setdefault(partition, []).extend(values)

    def topic(self) -> MetadataTopic | None:
        return MetadataTopic(topic_id=self.topic_id, replicas=self.replicas) if self.is_there else None

    def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        return {each: len(self.logs.get(each, [])) for each in partitions}

    def open(self, positions: Mapping[int, Position]) -> Consumed:
        return Consumed(self, {number: each.offset for number, each in positions.items()})


class Consumed:
    def __init__(self, topic: Topic, at: dict[int, int]) -> None:
        self.topic, self.at = topic, at
        self.at_end: set[int] = set()

    def read(self) -> Read:
        records: list[MetadataRecord] = []
        ends: dict[int, int] = {}
        lost: dict[int, Bounds] = {}
        for partition, position in () if self.topic.is_mute else self.at.items():
            log = self.topic.logs.get(partition, [])
            start = self.topic.starts.get(partition, 0)
            if not start <= position <= len(log):
                lost[partition] = Bounds(start, len(log))
                continue
            came = log[position : position + self.topic.batch]
            for offset, value in enumerate(came, position):
                records.append(MetadataRecord(partition, offset, self.topic.epoch, value))
            if came:
                self.at_end.discard(partition)
            elif partition not in self.at_end:
                ends[partition] = position
                self.at_end.add(partition)
            self.at[partition] = position + len(came)
        return Read(records=tuple(records), ends=ends, lost=lost)

    def close(self) -> None:
        self.at = {}
