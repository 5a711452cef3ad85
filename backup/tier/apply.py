"""Carries out a plan for the tier, from wherever it stands.

    1  check      the world is as planned, or as this plan has left it
    2  promise    the log's record: nothing of it is expired until then
    3  copy       each recorded version onto its key, server-side, where nothing is
    4  segments   COPY_FINISHED of the next generation, read back
    5  start      the log's record: it begins at the range's first offset again, read back
    6  look       the tier answers for every offset of the range; each object lies on its key
    7  tidy       uploads that a killed run left under way on those keys are aborted
    8  tell       copy_finished of each segment, restored of each unbroken range

Every step finds what an earlier run has done of it, so that a kill -9 anywhere costs nothing but the time.
What fails for good before step 4 is undone: markers over what was made live, the promise taken back.

Owns the order. Refuses to begin where `check` does; deletes no version.

Invariant: until step 5 no reader sees a difference; after it all of the range is there, or NotThereYet says
what is not, and the plan may be applied again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backup.errors import BackupError
from backup.plan.values import Plan, Range
from backup.tier.check import PieceState, State, check
from backup.tier.copying import Copying
from backup.tier.ports import Ports
from backup.tier.records import in_name_of, move_start, promise, publish_segment, take_back_promise
from backup.tier.telling import events_of, ranges_of
from rules.identity import LogId
from tiering.errors import StatedError
from tiering.outcome import Inconclusive
from tiering.segments.coverage import GapPiece, coverage
from tiering.segments.records import SegmentId, SegmentObjects, SegmentRecord, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.view import LogView
from tiering.store.errors import DeadlinePassed, Throttled, Transient, Unavailable
from workers.consumer.tasks import in_order

EVENT_PIECES_MAX = 200  # each names three objects, and an event is at most some megabytes


@dataclass(kw_only=True, eq=False)
class NotThereYet(BackupError):
    """log {log.topic_id}:{log.partition}: it was put back, and what was read back is not all of it: {why}

    Nothing was lost by it. Look with `seawall backup show`, and apply the plan again.
    """

    log: LogId
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """What came of it. `ranges` can be read again; `objects_put_back` is this run's alone."""

    plan: Plan
    was_over: bool  # an earlier run had done it all
    objects_put_back: int
    size_bytes: int
    ranges: tuple[Range, ...]
    generation: int
    keep_until_ms: int
    log_start: int
    events: tuple[str, ...]
    started_at_ms: int
    ended_at_ms: int


def apply(plan: Plan, ports: Ports) -> Restoration:
    """Raises what kept it; see the module for what that leaves."""
    started_at_ms = ports.now_ms()
    state = check(plan, ports)
    copying = Copying(ports, state.pieces)
    segments = {each.record.segment_id: each.record for each in state.pieces if each.is_published}
    if not state.is_over:
        if not state.is_start_moved:
            promise(plan, ports)
        put_back = _copied(plan, ports, copying, state)
        segments |= _publish(plan, ports, state, put_back)
        if not state.is_start_moved:
            move_start(plan, ports)
    view = _look(plan, ports, segments)
    _tidy(plan, ports)
    assert view.record is not None, "it was looked at"
    record = view.record
    events = list(events_of(plan, view, segments, ports.principal))
    ports.sink.emit_many(events)
    return Restoration(
        plan=plan,
        was_over=state.is_over,
        objects_put_back=copying.made,
        size_bytes=sum(one.source.size_bytes for each in state.pieces for one in each.to_copy),
        ranges=ranges_of(plan.body.pieces),
        generation=record.generation,
        keep_until_ms=record.keep_until_ms or 0,
        log_start=record.log_start,
        events=tuple(event.event_id for event in events),
        started_at_ms=started_at_ms,
        ended_at_ms=ports.now_ms(),
    )


def _copied(plan: Plan, ports: Ports, copying: Copying, state: State) -> Mapping[str, SegmentObjects]:
    try:
        return copying.put_back()
    except (Unavailable, Transient, Throttled, DeadlinePassed):
        raise
    except StatedError:
        if not any(each.is_own for each in state.pieces):
            take_back_promise(plan, ports, state.keep_until_ms)
        raise


def _publish(
    plan: Plan, ports: Ports, state: State, put_back: Mapping[str, SegmentObjects]
) -> Mapping[SegmentId, SegmentRecord]:
    """The records that were not out yet, as they are followed now."""
    left = [each for each in state.pieces if not each.is_published]
    if not left:
        return {}
    name = in_name_of(plan, ports)

    def publish(piece: PieceState) -> SegmentRecord:
        return publish_segment(plan, piece.record, put_back[piece.record.segment_id], name, ports)

    published = in_order(left, publish, threads=ports.workers)
    return {each.segment_id: each for each in published}


def _look(plan: Plan, ports: Ports, segments: Mapping[SegmentId, SegmentRecord]) -> LogView:
    """The log, if the tier answers for the range by these very copies, and each object lies on its key."""
    body = plan.body
    tops: dict[str, str] = {}
    for each in ports.objects.list_versions(ports.layout.log_prefix(body.log)):
        tops.setdefault(each.key, each.version_id)  # the latest comes first
    ports.table.read_on()
    view = ports.table.view(body.log)
    found = coverage(view) if view is not None else Inconclusive("the topic has no record of it")
    if isinstance(found, Inconclusive) or view is None:
        raise NotThereYet(log=body.log, why="the topic has no record of it")
    if found.frontier.start > body.range.start or found.frontier.offset < body.range.end:
        why = f"the tier answers for [{found.frontier.start}, {found.frontier.offset})"
        raise NotThereYet(log=body.log, why=why)
    counts = {
        each.segment_id: each.generation
        for each in view.segments()
        if each.state is SegmentState.COPY_FINISHED and each.standing is Standing.FOLLOWED
    }
    for piece in body.pieces:
        record = segments[piece.record.segment_id]
        if counts.get(record.segment_id) != record.generation:
            raise NotThereYet(log=body.log, why=f"segment {record.segment_id} is not followed")
        if any(isinstance(each, GapPiece) for each in found.pieces(piece.start, piece.end)):
            raise NotThereYet(log=body.log, why=f"[{piece.start}, {piece.end}) is a gap on record")
        for _, ref in record.objects.present():
            if tops.get(ref.key) != ref.version_id:
                raise NotThereYet(log=body.log, why=f"{ref.key} is not on top as version {ref.version_id}")
    return view


def _tidy(plan: Plan, ports: Ports) -> None:
    """What is under way on a key that is live can come to nothing, and costs until somebody aborts it."""
    keys = {ref.key for piece in plan.body.pieces for _, ref in piece.record.objects.present()}
    for each in list(ports.objects.list_uploads(ports.layout.log_prefix(plan.body.log))):
        if each.key in keys:
            ports.objects.abort_parts(each.key, each.upload_id)
