"""Removes one orphan after the other, deciding anew before each, and again before the first marker.

    recorded    1  look again: it is still an orphan, for the same reason
                2  DELETE_STARTED, read back (from here on no commit of the attempt is followed)
                3  look again: nothing came in between (a hold, a restore)
                4  its pending uploads are aborted, a delete marker on .json, .aux and .log
                5  DELETE_FINISHED, read back
    removed or  1  look again
    unrecorded  2  its pending uploads are aborted, a delete marker on each object that was listed

Owns this order: metadata first, objects second (T5). Refuses to place a marker where the bucket keeps no
versions, on a key that is not of the log and segment it is meant for, and on anything that the plan did not
name: a run does at most what was shown.

Invariant: no object of a copy that counts at the moment of its marker, or could come to count, is marked.
Everything can be cut off anywhere and is found, and gone on with, by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from rules.events import DeleteCause, DeleteFinished, DeleteStarted, EventSink
from rules.identity import LogId
from tiering.errors import StatedError
from tiering.orphans.judge import Judged, Known, Reason, judge
from tiering.orphans.listing import Attempt
from tiering.retention.expire import REMOVAL_ORDER, is_own_key
from tiering.segments.event_fields import about
from tiering.segments.records import SegmentId, SegmentRecord, SegmentState
from tiering.segments.rows import Standing

UNWRITTEN = (Reason.UNRECORDED, Reason.REMOVED)  # nothing has to be said before their objects go


class Table(Protocol):
    """The reference table, read up to the topic's end as it is when asked."""

    def look(self, log: LogId) -> Known: ...

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None: ...


class Tier(Protocol):
    """The metadata topic, to write to."""

    def publish(self, record: SegmentRecord) -> int:
        """The record's offset, once a table has followed it; NotFollowed where it does not."""


class Objects(Protocol):
    """The bucket."""

    def mark_deleted(self, key: str) -> object: ...

    def abort_parts(self, key: str, upload_id: str) -> None: ...

    def keeps_versions(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world, as far as this touches it. `store_now_ms` is the store's clock, `now_ms` our own."""

    table: Table
    tier: Tier
    objects: Objects
    sink: EventSink
    store_now_ms: Callable[[], int]
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one orphan. `kept`: why it is still there, or there in part."""

    judged: Judged
    kept: str | None = None


def clean(plan: Iterable[Judged], ports: Ports) -> Iterator[Outcome]:
    """Each orphan of a plan in turn. One that fails leaves the others their turn."""
    orphans = [each for each in plan if each.is_orphan]
    if orphans and not ports.objects.keeps_versions():
        why = "the bucket keeps no versions: what is deleted in it cannot be put back"
        yield from (Outcome(judged=each, kept=why) for each in orphans)
        return
    for each in orphans:
        try:
            yield Outcome(judged=each, kept=_clean(each, ports))
        except StatedError as failed:
            yield Outcome(judged=each, kept=str(failed).splitlines()[0])


def _clean(planned: Judged, ports: Ports) -> str | None:
    """Why it was not removed, or None."""
    attempt, log = planned.attempt, planned.attempt.log
    known = ports.table.look(log)
    now = judge(known, attempt, now_ms=ports.store_now_ms(), grace_ms=ports.grace_ms)
    if not now.is_orphan or now.reason is not planned.reason:
        return f"{now.verdict.value} by now: {now.detail}"
    if now.reason in UNWRITTEN:
        _remove_listed(attempt, ports)
        return None
    record = ports.table.segment(log, attempt.segment_id)
    if record is None or not is_own_key(record, log):
        return "its record names a key of something else"
    return _remove_recorded(known, attempt, record, now.reason, ports)


def _remove_recorded(
    known: Known, attempt: Attempt, record: SegmentRecord, reason: Reason, ports: Ports
) -> str | None:
    cause = DeleteCause.ORPHAN if reason is Reason.FENCED else DeleteCause.FAILED_COPY
    deleting = _next_state(record, SegmentState.DELETE_STARTED, known, ports)
    offset = ports.tier.publish(deleting)
    ports.sink.emit(
        DeleteStarted(**about(deleting), generation=deleting.generation, cause=cause, metadata_offset=offset)
    )
    if (kept := _meanwhile(ports.table.look(record.log), deleting)) is not None:
        return kept
    _abort(attempt, ports)
    for kind in REMOVAL_ORDER:
        ports.objects.mark_deleted(f"{record.key_stem}.{kind.value}")
    deleted = _next_state(deleting, SegmentState.DELETE_FINISHED, known, ports)
    offset = ports.tier.publish(deleted)
    ports.sink.emit(
        DeleteFinished(**about(deleted), generation=deleted.generation, cause=cause, metadata_offset=offset)
    )
    return None


def _meanwhile(now: Known, deleting: SegmentRecord) -> str | None:
    """Why its objects must stay although its removal is on record."""
    segment = now.segments.get(deleting.segment_id)
    if (doubt := now.doubt) is not None:
        return doubt
    if (hold := now.hold_on(deleting.base_offset, deleting.end_offset)) is not None:
        return hold
    if segment is None or segment.standing is not Standing.FOLLOWED:
        return "its removal is not followed"
    if (segment.state, segment.generation) != (deleting.state, deleting.generation):
        return f"{segment.state.value} of generation {segment.generation} came after its removal was begun"
    return None


def _remove_listed(attempt: Attempt, ports: Ports) -> None:
    _abort(attempt, ports)
    by_kind = dict(attempt.objects)
    for kind in REMOVAL_ORDER:
        if kind in by_kind:
            ports.objects.mark_deleted(by_kind[kind].key)


def _abort(attempt: Attempt, ports: Ports) -> None:
    for upload in attempt.uploads:
        ports.objects.abort_parts(upload.key, upload.upload_id)


def _next_state(record: SegmentRecord, state: SegmentState, known: Known, ports: Ports) -> SegmentRecord:
    """In the name of whoever has claimed the log: a deletion of an older epoch would be a finding."""
    facts = known.facts
    assert facts.record is not None, "a log without a record is doubted"
    return replace(
        record,
        state=state,
        broker_id=facts.record.broker_id,
        leader_epoch=max(known.highest_epoch, record.leader_epoch),
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
    )
