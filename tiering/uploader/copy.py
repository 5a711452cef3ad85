"""Copies one closed segment: verify, announce, store, verify, commit.

    1  scan the local bytes                   a defect, or epochs that are not the log's: SegmentUnfit,
                                              nothing is announced
    2  this broker leads, all is committed    T1, before the first byte is sent
    3  COPY_STARTED, read back                from here on a crash leaves something to clean up, and says so
    4  .log                                   verified again on the very bytes that are sent (store.upload)
    5  .aux
    6  this broker still leads, the same      T1, again
    7  .json                                  the record itself: a bucket alone can tell its story
    8  COPY_FINISHED, read back               the commit: only now does the copy count

Every attempt has a new segment id, so that no two attempts ever write one key. What an attempt leaves that
ends after step 3, by an error or by a crash, the next decision finds and removes (`remove_segment`).

Owns this order. Refuses to retry: a retry is a new attempt, decided on new facts.

Invariant (T3): COPY_FINISHED is published only after the store has confirmed size and checksum of the same
bytes whose every batch was verified, by a broker that led before the first byte and after the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rules.events import (
    CopyFailed,
    CopyFinished,
    CopyStarted,
    DeleteCause,
    DeleteFinished,
    DeleteStarted,
    EventSink,
    SegmentRejected,
)
from rules.identity import LogId, ObjectRef
from tiering.errors import StatedError
from tiering.log.checkpoints import EpochStart
from tiering.log.segment import Compaction, SegmentScan, scan
from tiering.segments.codec import encode_segment
from tiering.segments.event_fields import about
from tiering.segments.lineage import Epochs, covered_until
from tiering.segments.records import SegmentId, SegmentObjects, SegmentRecord, SegmentState
from tiering.store.keys import KeyLayout, ObjectKind, SegmentKey
from tiering.store.upload import UploadedSegment
from tiering.uploader.errors import NotCommitted, SegmentChanged, SegmentUnfit
from tiering.uploader.holder import HeldSegment

OFF_LINEAGE = "off_lineage"  # SegmentUnfit.problem: the bytes are not, or no longer, the log's


class Tier(Protocol):
    """The metadata topic, as one agent writes and reads it."""

    def publish(self, record: SegmentRecord) -> int:
        """The record's offset, once our own table has followed it; NotFollowed where it does not."""


class Lead(Protocol):
    """The leader's own word on what may leave, asked now."""

    def may_leave_below(self) -> int:
        """Raises NotLeading unless this broker leads at the epoch that the copy is made for."""


class Objects(Protocol):
    """Where segments go."""

    def upload_segment(
        self, key: str, descriptor: int, *, base_offset: int, limit_offset: int | None
    ) -> UploadedSegment: ...

    def upload_bytes(self, key: str, content: bytes) -> ObjectRef: ...

    def mark_deleted(self, key: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAttempts:
    """What all attempts for one log under one claim have in common."""

    log: LogId
    topic: str
    broker_id: int
    leader_epoch: int
    generation: int
    lineage: Epochs  # the log's, as its record has it under our claim; empty only before the first claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world, as far as a copy touches it."""

    tier: Tier
    lead: Lead
    objects: Objects
    keys: KeyLayout
    aux: Callable[[HeldSegment, SegmentScan], bytes]
    sink: EventSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]


def copy_segment(
    attempts: LogAttempts, segment: HeldSegment, ports: Ports, *, attempt: int = 1
) -> SegmentRecord:
    """Copy it and commit it; the record as committed. Whatever is raised, nothing counts as covered."""
    found = _verified(attempts, segment, ports)
    _check_lead(attempts, segment, ports.lead)
    record = _started(attempts, segment, found, ports)
    offset = ports.tier.publish(record)
    ports.sink.emit(CopyStarted(**about(record), **_content(record), metadata_offset=offset))
    try:
        finished = _store(attempts, segment, found, record, ports)
        offset = ports.tier.publish(finished)
    except Exception as error:
        _give_up(record, error, ports, attempt)
        raise
    objects = tuple(ref for _, ref in finished.objects.present())
    ports.sink.emit(
        CopyFinished(**about(finished), **_content(finished), objects=objects, metadata_offset=offset)
    )
    return finished


def remove_segment(record: SegmentRecord, cause: DeleteCause, ports: Ports, attempts: LogAttempts) -> None:
    """Metadata first, objects second (T5): DELETE_STARTED, a delete marker on each object, DELETE_FINISHED.

    Safe to repeat from any point: a record that is there is published again, a marker more changes nothing.
    """
    deleting = replace(
        record,
        state=SegmentState.DELETE_STARTED,
        broker_id=attempts.broker_id,
        leader_epoch=attempts.leader_epoch,
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
    )
    if record.state is not SegmentState.DELETE_STARTED:
        offset = ports.tier.publish(deleting)
        ports.sink.emit(
            DeleteStarted(
                **about(deleting), generation=deleting.generation, cause=cause, metadata_offset=offset
            )
        )
    for kind in (ObjectKind.JSON, ObjectKind.AUX, ObjectKind.LOG):
        ports.objects.mark_deleted(f"{record.key_stem}.{kind.value}")
    deleted = replace(
        deleting,
        state=SegmentState.DELETE_FINISHED,
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
    )
    offset = ports.tier.publish(deleted)
    ports.sink.emit(
        DeleteFinished(**about(deleted), generation=deleted.generation, cause=cause, metadata_offset=offset)
    )


def _verified(attempts: LogAttempts, segment: HeldSegment, ports: Ports) -> SegmentScan:
    """What the local bytes hold. Bytes that are not sound, or end before the next base, never leave."""
    found = scan(
        segment.log_descriptor,
        base_offset=segment.base_offset,
        limit_offset=segment.end_offset,
        compaction=Compaction.NEVER,
    )
    problem, detail, position = _problem(attempts, segment, found)
    if problem is None:
        return found
    ports.sink.emit(
        SegmentRejected(
            event_id=ports.new_id(),
            occurred_at_ms=ports.now_ms(),
            log=attempts.log,
            topic=attempts.topic,
            leader_epoch=attempts.leader_epoch,
            base_offset=segment.base_offset,
            end_offset=segment.end_offset,
            problem=problem,
            detail=detail,
            position=position,
        )
    )
    raise SegmentUnfit(
        log=attempts.log,
        base_offset=segment.base_offset,
        end_offset=segment.end_offset,
        problem=problem,
        detail=detail,
        position=position,
    )


def _problem(
    attempts: LogAttempts, segment: HeldSegment, found: SegmentScan
) -> tuple[str | None, str, int | None]:
    """Why these bytes may not leave, or None: a defect, bytes missing at the end, another history (T6)."""
    if found.defect is not None:
        return found.defect.kind.value, found.defect.detail, found.defect.position
    if found.data_end != segment.end_offset:
        detail = f"records end at {found.data_end}, the next segment begins at {segment.end_offset}"
        return "hole", detail, found.size_bytes
    own = tuple(EpochStart(epoch, start) for epoch, start in found.epochs)
    until = covered_until(attempts.lineage, segment.base_offset, found.data_end, own)
    if until != found.data_end:
        written = ", ".join(f"{epoch} from {start}" for epoch, start in own)
        detail = f"the log has another history from {until} on than these bytes, of epochs {written}"
        return OFF_LINEAGE, detail, None
    return None, "", None


def _check_lead(attempts: LogAttempts, segment: HeldSegment, lead: Lead) -> None:
    bound = lead.may_leave_below()
    if segment.end_offset > bound:
        why = f"only offsets below {bound} are committed and decided"
        raise NotCommitted(log=attempts.log, end_offset=segment.end_offset, why=why)


def _started(attempts: LogAttempts, segment: HeldSegment, found: SegmentScan, ports: Ports) -> SegmentRecord:
    segment_id = SegmentId(ports.new_id())
    key = SegmentKey(log=attempts.log, base_offset=segment.base_offset, segment_id=segment_id)
    return SegmentRecord(
        log=attempts.log,
        topic=attempts.topic,
        segment_id=segment_id,
        base_offset=segment.base_offset,
        end_offset=segment.end_offset,
        data_end=found.data_end,
        leader_epochs=tuple(EpochStart(epoch, start) for epoch, start in found.epochs),
        max_timestamp_ms=found.max_timestamp_ms,
        record_count=found.record_count,
        batch_count=found.batch_count,
        size_bytes=found.size_bytes,
        has_txn_index=found.transactional_batch_count > 0,
        key_stem=ports.keys.stem(key),
        objects=SegmentObjects(),
        broker_id=attempts.broker_id,
        leader_epoch=attempts.leader_epoch,
        state=SegmentState.COPY_STARTED,
        generation=attempts.generation,
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
    )


def _store(
    attempts: LogAttempts, segment: HeldSegment, found: SegmentScan, record: SegmentRecord, ports: Ports
) -> SegmentRecord:
    """Steps 4 to 7: what COPY_FINISHED will say."""
    stem = record.key_stem
    sent = ports.objects.upload_segment(
        f"{stem}.{ObjectKind.LOG.value}",
        segment.log_descriptor,
        base_offset=segment.base_offset,
        limit_offset=segment.end_offset,
    )
    if sent.scan != found:
        why = f"{found.record_count} records to {found.data_end}, then {sent.scan.record_count} to "
        why += f"{sent.scan.data_end}"
        raise SegmentChanged(log=attempts.log, base_offset=segment.base_offset, why=why)
    aux = ports.objects.upload_bytes(f"{stem}.{ObjectKind.AUX.value}", ports.aux(segment, found))
    _check_lead(attempts, segment, ports.lead)
    finished = replace(
        record,
        state=SegmentState.COPY_FINISHED,
        objects=SegmentObjects(log=sent.ref, aux=aux),
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
    )
    json = ports.objects.upload_bytes(f"{stem}.{ObjectKind.JSON.value}", encode_segment(finished))
    return replace(finished, objects=replace(finished.objects, json=json))


def _give_up(record: SegmentRecord, error: Exception, ports: Ports, attempt: int) -> None:
    """Say what happened. Cleaning up is the next decision's: what is wrong now may well be the store."""
    fields = about(record) | {"event_id": ports.new_id(), "occurred_at_ms": ports.now_ms()}
    ports.sink.emit(
        CopyFailed(
            **fields,
            error=type(error).__name__,
            detail=str(error) if isinstance(error, StatedError) else repr(error),
            attempt=attempt,
            leftovers=tuple(f"{record.key_stem}.{kind.value}" for kind in ObjectKind),
        )
    )


def _content(record: SegmentRecord) -> dict[str, Any]:
    """What the events of a copy say besides."""
    return {
        "generation": record.generation,
        "data_end": record.data_end,
        "size_bytes": record.size_bytes,
        "record_count": record.record_count,
        "max_timestamp_ms": record.max_timestamp_ms,
        "epochs": tuple((each.epoch, each.start_offset) for each in record.leader_epochs),
    }
