"""Records of KIP-405's topic, one behind the other: what they make of the copies, and what is to be said.

    record of the topic                     event
    segment, COPY_SEGMENT_STARTED           copy_started
    update, COPY_SEGMENT_FINISHED           copy_finished
    update, DELETE_SEGMENT_STARTED          delete_started
    update, DELETE_SEGMENT_FINISHED         delete_finished
    partition, MARKED or STARTED            delete_started of each copy that is not going yet
    partition, FINISHED                     delete_finished of each copy that is left
    any other, or unreadable                evidence_gap over this one record

Kafka 4.3.1 knows the records about a partition and never writes them: a topic's deletion shows as that of
each of its segments. A state that may not follow the one before is told all the same, and judged elsewhere.
What is said of a copy that nobody started is told with its range as -1: that it is unknown is a finding
(SEG-05), not something to be left out.

Owns this. Refuses to act on a record that it cannot read.

Invariant: each record about a copy comes to an event, and the same records to the same events and copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from audit_engine.observers.kip405.segments import NOT_KNOWN, Copy, Mark, Teller, TierEvent
from audit_engine.observers.kip405.source import MetadataRecord
from tiering.log.errors import LogFormatError
from tiering.log.framed import SkippedRecord
from tiering.log.remote_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteMetadata,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    RemoteSegmentState,
    read_remote_metadata,
)

UNREADABLE = "record_unreadable"
TOO_NEW = "record_not_known"
OUT_OF_PLACE = "record_out_of_place"


class Refused(NamedTuple):
    """A record of which nothing was made. `problem` is stable, for programs."""

    record: MetadataRecord
    problem: str
    detail: str


Told: TypeAlias = TierEvent | Refused


class Fold:
    """The copies before some records, and what these change. `changed` holds None for what is gone."""

    def __init__(self, copies: Mapping[str, Copy], teller: Teller) -> None:
        self._copies = copies
        self._teller = teller
        self.changed: dict[str, Copy | None] = {}

    def take(self, record: MetadataRecord) -> Iterator[Told]:
        """What is to be said of a record. To be exhausted before the next one."""
        if record.value is None:
            yield Refused(record, UNREADABLE, "it has no value")
            return
        try:
            found = read_remote_metadata(record.value)
        except LogFormatError as broken:
            yield Refused(record, UNREADABLE, str(broken))
            return
        if isinstance(found, SkippedRecord):
            what = f"kind {found.api_key}, version {found.version}: {found.reason.value}"
            yield Refused(record, TOO_NEW, what)
        else:
            yield from self._act(record, found)

    def _act(self, record: MetadataRecord, found: RemoteMetadata) -> Iterator[Told]:
        if isinstance(found, RemoteLogSegmentMetadata):
            yield self._started(record, found)
        elif isinstance(found, RemoteLogSegmentMetadataUpdate):
            yield self._updated(record, found)
        elif isinstance(found, RemotePartitionDeleteMetadata):
            yield from self._partition(record, found)
        else:
            yield Refused(record, OUT_OF_PLACE, "a snapshot's record, which stands in files only")

    def _started(self, record: MetadataRecord, found: RemoteLogSegmentMetadata) -> Told:
        if found.remote_log_segment_state is not RemoteSegmentState.COPY_SEGMENT_STARTED:
            return Refused(record, OUT_OF_PLACE, f"it begins with {found.remote_log_segment_state.name}")
        mark = _mark(record, found)
        segment = found.remote_log_segment_id
        copy = Copy(
            metadata_partition=record.partition,
            topic_id=segment.topic_id_partition.id,
            topic=segment.topic_id_partition.name,
            partition=segment.topic_id_partition.partition,
            segment_id=segment.id,
            base_offset=found.offsets.start,
            end_offset=found.offsets.stop,
            size_bytes=found.segment_size_in_bytes,
            max_timestamp_ms=found.max_timestamp_ms,
            epochs=tuple((each.leader_epoch, each.offset) for each in found.segment_leader_epochs),
            started=mark,
        )
        if self._copy(segment.id) is None:
            self.changed[segment.id] = copy
        return self._teller.started(copy, mark)

    def _updated(self, record: MetadataRecord, found: RemoteLogSegmentMetadataUpdate) -> Told:
        mark = _mark(record, found)
        copy = self._copy(found.remote_log_segment_id.id)
        if copy is None:
            copy = _unknown(record.partition, found.remote_log_segment_id)
        state = found.remote_log_segment_state
        if state is RemoteSegmentState.COPY_SEGMENT_FINISHED:
            self.changed[copy.segment_id] = copy._replace(finished=mark)
            return self._teller.finished(copy, mark)
        if state is RemoteSegmentState.DELETE_SEGMENT_STARTED:
            self.changed[copy.segment_id] = copy._replace(deleting=mark)
            return self._teller.deleting(copy, mark)
        if state is RemoteSegmentState.DELETE_SEGMENT_FINISHED:
            self.changed[copy.segment_id] = None
            return self._teller.deleted(copy, mark)
        return Refused(record, OUT_OF_PLACE, f"an update to {state.name}")

    def _partition(self, record: MetadataRecord, found: RemotePartitionDeleteMetadata) -> Iterator[Told]:
        of = found.topic_id_partition
        mark = _mark(record, found)._replace(is_of_partition=True)
        copies = [each for each in self._all() if (each.topic_id, each.partition) == (of.id, of.partition)]
        for copy in sorted(copies, key=lambda each: (each.base_offset, each.segment_id)):
            if found.remote_partition_delete_state is RemotePartitionDeleteState.DELETE_PARTITION_FINISHED:
                self.changed[copy.segment_id] = None
                yield self._teller.deleted(copy, mark)
            elif copy.deleting is None:
                self.changed[copy.segment_id] = copy._replace(deleting=mark)
                yield self._teller.deleting(copy, mark)

    def _copy(self, segment_id: str) -> Copy | None:
        if segment_id in self.changed:
            return self.changed[segment_id]
        return self._copies.get(segment_id)

    def _all(self) -> Iterator[Copy]:
        for segment_id in {**self._copies, **self.changed}:
            copy = self._copy(segment_id)
            if copy is not None:
                yield copy


def _mark(
    record: MetadataRecord,
    found: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDeleteMetadata,
) -> Mark:
    return Mark(record.offset, record.leader_epoch, found.event_timestamp_ms, found.broker_id)


def _unknown(metadata_partition: int, segment: RemoteLogSegmentId) -> Copy:
    of = segment.topic_id_partition
    return Copy(
        metadata_partition=metadata_partition,
        topic_id=of.id,
        topic=of.name,
        partition=of.partition,
        segment_id=segment.id,
        base_offset=NOT_KNOWN,
        end_offset=NOT_KNOWN,
        size_bytes=NOT_KNOWN,
        max_timestamp_ms=NOT_KNOWN,
        epochs=(),
        started=None,
    )
