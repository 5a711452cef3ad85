"""The records that a restore writes: a promise to keep, each segment anew, and the start moved back.

    promise   the log's record with `keep_until_ms`: from here on no agent expires any of it
    segment   COPY_FINISHED of the next generation, naming the versions that lie on the keys now
    start     the log's record with its start at the range's, and the lineage led back to it

They are written under the standing claim, in its holder's name, and based on the log's last record: whoever
writes in between wins, and the record is made again from what he left. A claim by a new leader in between is
no reason to stop; another start is.

Owns these records. Refuses to move a start forward, and to shorten a promise.

Invariant: the start moves only after every segment is followed: no reader, and no uploader, ever sees a hole
that was not there before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from backup.catalogue.bytes import lineage_of
from backup.errors import PlanOutdated
from backup.plan.make import log_print
from backup.plan.values import Lost, LostBecause, Plan
from backup.tier.check import own_id
from backup.tier.ports import Ports
from tiering.segments.records import (
    EpochStart,
    Gap,
    GapCause,
    LogRecord,
    SegmentObjects,
    SegmentRecord,
    SegmentState,
)
from tiering.segments.view import LogView
from tiering.uploader.errors import NotFollowed

TRIES_MAX = 8


def promise(plan: Plan, ports: Ports) -> int:
    """Until when the log's record says that it is kept; never sooner than it said before."""
    until_ms = ports.now_ms() + plan.body.keep_for_ms

    def kept(record: LogRecord) -> LogRecord | None:
        if record.event_id == own_id(plan, "promise") and record.keep_until_ms is not None:
            return None
        longest = max(until_ms, record.keep_until_ms or 0)
        return replace(record, keep_until_ms=longest, event_id=own_id(plan, "promise"))

    return _rewrite(plan, ports, kept).keep_until_ms or until_ms


def take_back_promise(plan: Plan, ports: Ports, before_ms: int | None) -> None:
    """As it was before, unless somebody has written since."""

    def as_it_was(record: LogRecord) -> LogRecord | None:
        if record.event_id != own_id(plan, "promise"):
            return None
        return replace(record, keep_until_ms=before_ms, event_id=own_id(plan, f"undone-{ports.now_ms()}"))

    _rewrite(plan, ports, as_it_was)


@dataclass(frozen=True, slots=True)
class InNameOf:
    """Whose claim stands: what a segment's record is written under."""

    broker_id: int
    epoch: int


def in_name_of(plan: Plan, ports: Ports) -> InNameOf:
    """As the table has it now. A view of a log costs more than a record of it: one does for many."""
    view = _view(plan, ports)
    assert view.record is not None, "it was checked"
    return InNameOf(view.record.broker_id, view.claims[-1].epoch)


def publish_segment(
    plan: Plan, before: SegmentRecord, objects: SegmentObjects, name: InNameOf, ports: Ports
) -> SegmentRecord:
    """The segment's next generation; the record as it is followed."""
    segment_id = before.segment_id
    for attempt in range(TRIES_MAX):
        if before.event_id == own_id(plan, segment_id):
            return before
        record = replace(
            before,
            state=SegmentState.COPY_FINISHED,
            objects=objects,
            generation=before.generation + 1,
            broker_id=name.broker_id,
            leader_epoch=max(name.epoch, before.leader_epoch),
            event_id=own_id(plan, segment_id),
            occurred_at_ms=ports.now_ms(),
        )
        try:
            ports.tier.publish(record)
        except NotFollowed:
            if attempt + 1 == TRIES_MAX:
                raise
            ports.table.read_on()
            name = in_name_of(plan, ports)  # a new leader's claim, most likely
            before = ports.table.segment(plan.body.log, segment_id) or before
            continue
        return record
    raise AssertionError("the last try raises")


def move_start(plan: Plan, ports: Ports) -> LogRecord:
    """The log's record with the range in it, as it is followed."""

    def moved(record: LogRecord) -> LogRecord | None:
        if record.event_id == own_id(plan, "start"):
            return None
        body = plan.body
        start = body.range.start
        return replace(
            record,
            log_start=min(record.log_start, start),
            first_tiered_offset=min(record.first_tiered_offset, start),
            leader_epochs=led_back(record.leader_epochs, lineage_of(body.pieces)),
            gaps=_with_gaps(plan, record, ports.now_ms()),
            generation=record.generation + 1,
            event_id=own_id(plan, "start"),
        )

    return _rewrite(plan, ports, moved)


def led_back(lineage: tuple[EpochStart, ...], below: tuple[EpochStart, ...]) -> tuple[EpochStart, ...]:
    """The lineage with what the restored copies know of the offsets before its first."""
    first = lineage[0]
    older = [each for each in below if each.start_offset < first.start_offset]
    if older and older[-1].epoch == first.epoch:
        return (*older, *lineage[1:])
    return (*older, *lineage)


def _rewrite(plan: Plan, ports: Ports, change: Callable[[LogRecord], LogRecord | None]) -> LogRecord:
    """The log's record, changed and followed; None of `change`: it is as it should be."""
    for attempt in range(TRIES_MAX):
        view = _view(plan, ports)
        assert view.record is not None
        changed = change(view.record)
        if changed is None:
            return view.record
        if log_print(view.record) != plan.body.fingerprints.log:
            why = f"begins at {view.record.log_start} by now, or its gaps are others"
            raise PlanOutdated(plan_hash=plan.hash, what="log", why=why)
        record = replace(
            changed,
            claim_offset=view.claims[-1].offset,
            earlier_claims=view.claims_to_repeat(),
            based_on=view.record_offset,
            occurred_at_ms=ports.now_ms(),
        )
        try:
            ports.tier.publish_log(record)
        except NotFollowed:
            if attempt + 1 == TRIES_MAX:
                raise
            ports.table.read_on()
            continue
        return record
    raise AssertionError("the last try raises")


def _view(plan: Plan, ports: Ports) -> LogView:
    view = ports.table.view(plan.body.log)
    assert view is not None, "it was checked"
    assert view.record is not None, "it was checked"
    return view


def _with_gaps(plan: Plan, record: LogRecord, now_ms: int) -> tuple[Gap, ...]:
    """The record's gaps, and those that this plan passes."""
    passed = [each for each in plan.body.gaps if each.because is not LostBecause.ON_RECORD]
    known = [(gap.start_offset, gap.end_offset) for gap in record.gaps]
    found = [_gap(plan, left, record, now_ms) for each in passed for left in _beside(each, known)]
    return tuple(sorted((*record.gaps, *found), key=lambda gap: gap.start_offset))


def _beside(lost: Lost, known: Sequence[tuple[int, int]]) -> Iterator[Lost]:
    """What of a lost range is in no gap on record: two gaps never overlap."""
    at = lost.start
    for start, end in known:
        if start < lost.end and end > at:
            if at < start:
                yield replace(lost, start=at, end=start)
            at = max(at, end)
    if at < lost.end:
        yield replace(lost, start=at)


def _gap(plan: Plan, lost: Lost, record: LogRecord, now_ms: int) -> Gap:
    return Gap(
        start_offset=lost.start,
        end_offset=lost.end,
        cause=GapCause.UNKNOWN,
        leader_epoch=record.claim_epoch,
        event_id=own_id(plan, f"gap-{lost.start}"),
        recorded_at_ms=now_ms,
    )
