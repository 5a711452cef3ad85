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

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from backup.catalogue.gather import stored_by_segment
from backup.errors import BackupError
from backup.plan.values import Piece, Plan, Range
from backup.tier.check import State, check, own_id
from backup.tier.copying import Copying
from backup.tier.ports import Ports
from backup.tier.records import move_start, promise, publish_segment, take_back_promise
from rules.events import CopyFinished, Restored, RestoreTarget
from rules.identity import LogId, ObjectRef
from tiering.errors import StatedError
from tiering.outcome import Inconclusive
from tiering.segments.coverage import GapPiece, coverage
from tiering.segments.event_fields import about
from tiering.segments.records import LogRecord, SegmentObjects, SegmentRecord
from tiering.store.errors import DeadlinePassed, Throttled, Transient, Unavailable

EVENT_PIECES_MAX = 200  # each names three objects, and an event is at most some megabytes


@dataclass(kw_only=True, eq=False)
class NotThereYet(BackupError):
    """{log}: the plan was carried out, and what was read back is not all of it: {why}

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
    if not state.is_over:
        if not state.is_start_moved:
            promise(plan, ports)
        put_back = _copied(plan, ports, copying, state)
        _publish(plan, ports, state, put_back)
        if not state.is_start_moved:
            move_start(plan, ports)
    record = _look(plan, ports)
    _tidy(plan, ports)
    events = list(_events(plan, ports, record))
    for event in events:
        ports.sink.emit(event)
    return Restoration(
        plan=plan,
        was_over=state.is_over,
        objects_put_back=copying.made,
        size_bytes=sum(one.source.size_bytes for each in state.pieces for one in each.to_copy),
        ranges=tuple(Range(run[0].start, run[-1].end) for run in unbroken(plan.body.pieces)),
        generation=record.generation,
        keep_until_ms=record.keep_until_ms or 0,
        log_start=record.log_start,
        events=tuple(event.event_id for event in events),
        started_at_ms=started_at_ms,
        ended_at_ms=ports.now_ms(),
    )


def unbroken(pieces: tuple[Piece, ...], most: int | None = None) -> list[tuple[Piece, ...]]:
    """The pieces in runs without a gap between them, of at most so many each."""
    runs: list[list[Piece]] = []
    for piece in pieces:
        if runs and runs[-1][-1].end == piece.start and (most is None or len(runs[-1]) < most):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return [tuple(run) for run in runs]


def _copied(plan: Plan, ports: Ports, copying: Copying, state: State) -> Mapping[str, SegmentObjects]:
    try:
        return copying.put_back()
    except (Unavailable, Transient, Throttled, DeadlinePassed):
        raise
    except StatedError:
        if not any(each.is_own for each in state.pieces):
            take_back_promise(plan, ports, state.keep_until_ms)
        raise


def _publish(plan: Plan, ports: Ports, state: State, put_back: Mapping[str, SegmentObjects]) -> None:
    left = [each.piece for each in state.pieces if not each.is_published]
    with ThreadPoolExecutor(ports.workers, thread_name_prefix="seawall-publish") as workers:
        publishing = [
            workers.submit(publish_segment, plan, piece, put_back[piece.record.segment_id], ports)
            for piece in left
        ]
        for each in publishing:
            each.result()


def _look(plan: Plan, ports: Ports) -> LogRecord:
    """The log's record, if the tier answers for the range and each object lies on its key."""
    body = plan.body
    listed = stored_by_segment(
        ports.objects.list_versions(ports.layout.log_prefix(body.log)), ports.layout, body.log
    )
    ports.table.read_on()
    view = ports.table.view(body.log)
    found = coverage(view) if view is not None else Inconclusive("the topic has no record of it")
    if isinstance(found, Inconclusive) or view is None or view.record is None:
        raise NotThereYet(log=body.log, why="the topic has no record of it")
    if found.frontier.start > body.range.start or found.frontier.offset < body.range.end:
        why = f"the tier answers for [{found.frontier.start}, {found.frontier.offset})"
        raise NotThereYet(log=body.log, why=why)
    for piece in body.pieces:
        if any(isinstance(each, GapPiece) for each in found.pieces(piece.start, piece.end)):
            raise NotThereYet(log=body.log, why=f"[{piece.start}, {piece.end}) is a gap on record")
        record = _record(plan, piece, ports)
        for kind, ref in record.objects.present():
            stored = listed.get(piece.record.segment_id, {}).get(kind)
            if stored is None or stored.top_id != ref.version_id:
                raise NotThereYet(log=body.log, why=f"{ref.key} is not on top as version {ref.version_id}")
    return view.record


def _tidy(plan: Plan, ports: Ports) -> None:
    """What is under way on a key that is live can come to nothing, and costs until somebody aborts it."""
    keys = {ref.key for piece in plan.body.pieces for _, ref in piece.record.objects.present()}
    for each in list(ports.objects.list_uploads(ports.layout.log_prefix(plan.body.log))):
        if each.key in keys:
            ports.objects.abort_parts(each.key, each.upload_id)


def _record(plan: Plan, piece: Piece, ports: Ports) -> SegmentRecord:
    record = ports.table.segment(plan.body.log, piece.record.segment_id)
    if record is None:
        raise NotThereYet(log=plan.body.log, why=f"segment {piece.record.segment_id} has no record")
    return record


def _events(plan: Plan, ports: Ports, record: LogRecord) -> Iterator[CopyFinished | Restored]:
    """The same however often it is told. The ranges go down: each joins on to what the judge has by then."""
    view = ports.table.view(plan.body.log)
    assert view is not None
    offsets = {each.segment_id: each.metadata_offset for each in view.segments()}
    own = [
        found
        for piece in plan.body.pieces
        if (found := _record(plan, piece, ports)).event_id == own_id(plan, piece.record.segment_id)
    ]
    at_ms = max((each.occurred_at_ms for each in own), default=record.occurred_at_ms)
    for found in own:
        yield CopyFinished(
            **about(found),
            generation=found.generation,
            data_end=found.data_end,
            size_bytes=found.size_bytes,
            record_count=found.record_count,
            max_timestamp_ms=found.max_timestamp_ms,
            objects=tuple(ref for _, ref in found.objects.present()),
            metadata_offset=offsets[found.segment_id],
        )
    for run in reversed(unbroken(plan.body.pieces, EVENT_PIECES_MAX)):
        start, end = run[0].start, run[-1].end
        yield Restored(
            event_id=own_id(plan, f"restored-{start}"),
            occurred_at_ms=at_ms,
            log=record.log,
            topic=record.topic,
            leader_epoch=record.claim_epoch,
            restore_id=own_id(plan, "restore"),
            principal=ports.principal,
            restore_target=RestoreTarget.TIER,
            start_offset=start,
            end_offset=end,
            broker_id=None,
            generation=record.generation,
            keep_until_ms=record.keep_until_ms,
            objects=_sources(run),
            plan_hash=plan.hash,
            planned_start=start,
            planned_end=end,
        )


def _sources(run: tuple[Piece, ...]) -> tuple[ObjectRef, ...]:
    return tuple(ref for piece in run for _, ref in piece.record.objects.present())
