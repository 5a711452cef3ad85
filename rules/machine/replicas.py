"""What a replica's files say, taken into the state: segments that came and went, and by `lives` and
`watermarks` the rest.

Owns how these facts are kept. Judges nothing: what asks for a cause becomes an obligation (`obligations`
decides it), what is a state of things is looked at by `conditions`.
"""

from __future__ import annotations

from rules.events import (
    EpochStarted,
    HighWatermark,
    LogBaseline,
    LogStartAdvanced,
    ReplicaAppearance,
    ReplicaEvent,
    ReplicaRemoval,
    ReplicaRemoved,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
    SegmentRemoval,
    Source,
    Truncated,
)
from rules.machine import coverage, fabricated, lives, watermarks
from rules.machine.findings import happened
from rules.machine.spans import NONE, cut, join, meet, span
from rules.machine.state import (
    REMOVALS_MAX,
    Gap,
    LogState,
    Removal,
    Replica,
    Segment,
    missing,
)
from rules.machine.terms import Terms

NOT_KNOWN = -1


def replica_started(state: LogState, event: ReplicaStarted, terms: Terms) -> None:
    known = state.replicas.get(event.broker_id)
    if known is not None and lives.is_life_of(known, event):
        return  # an observer that forgot sees it for the first time again; its baseline follows
    if known is not None and lives.is_older(event, known):
        return
    lives.begin(state, event, event.log_start, event.appearance is ReplicaAppearance.FIRST_SEEN)
    replica = state.replicas[event.broker_id]
    replica.local_start, replica.watermark = event.local_start, event.high_watermark
    watermarks.published(state, event, event.high_watermark, is_filled=event.log_start == event.local_start)


def replica_removed(state: LogState, event: ReplicaRemoved, terms: Terms) -> None:
    known = state.replicas.get(event.broker_id)
    is_unassigned = event.replica_removal is ReplicaRemoval.UNASSIGNED
    if known is not None and (is_unassigned or lives.is_life_of(known, event)):
        del state.replicas[event.broker_id]


def segment_closed(state: LogState, event: SegmentClosed, terms: Terms) -> None:
    replica = lives.life(state, event)
    if replica is None:
        return
    # A segment that closes may have been there already, still open, when another went.
    is_asked = bool(state.removals or replica.advances)
    before = coverage.disk_bytes(state, replica) if is_asked else None
    replica.segments[event.base_offset] = Segment(
        base=event.base_offset,
        end=event.end_offset,
        size_bytes=event.size_bytes,
        max_timestamp_ms=event.max_timestamp_ms,
        told_ms=event.occurred_at_ms,
    )
    replica.holes = cut(replica.holes, span(event.base_offset, event.end_offset))
    if not state.was_compacted:
        replica.holes = join(replica.holes, _missing_inside(event))
    if before is not None:
        _grew(state, replica, (coverage.disk_bytes(state, replica) or 0) - before)


def _missing_inside(event: SegmentClosed) -> coverage.Spans:
    if event.data_end is not None and event.data_end < event.end_offset:
        return span(max(event.data_end, event.base_offset), event.end_offset)
    if event.record_count is not None and event.record_count != event.end_offset - event.base_offset:
        return span(event.base_offset, event.end_offset)
    return NONE


def segment_deleted_local(state: LogState, event: SegmentDeletedLocal, terms: Terms) -> None:
    replica = lives.life(state, event)
    if replica is None:
        return
    known = replica.segments.get(event.base_offset)
    if event.segment_removal is SegmentRemoval.SWAPPED:
        replica.segments.pop(event.base_offset, None)
        return
    replica.disk_bytes = coverage.disk_bytes(state, replica)
    size_bytes = event.size_bytes
    newest_ms = event.max_timestamp_ms
    if newest_ms is None and known is not None:
        newest_ms = known.max_timestamp_ms
    is_head = replica.local_start is None or event.base_offset <= replica.local_start
    if not is_head:
        replica.holes = join(replica.holes, span(event.base_offset, event.end_offset))
    else:
        unique, counted = coverage.bytes_of(state, replica, with_tier=state.is_kip405)
        removed(
            state,
            Removal(
                where="local",
                broker_id=event.broker_id,
                segment_id="",
                base=event.base_offset,
                end=event.end_offset,
                size_bytes=size_bytes,
                max_timestamp_ms=newest_ms,
                not_before_ms=lives.since(event),
                at_ms=event.occurred_at_ms,
                due_ms=event.occurred_at_ms + terms.settle_ms,
                bytes_at_most=unique,
                bytes_counted=counted,
                covered=meet(coverage.tiered(state), span(event.base_offset, event.end_offset)),
                was_led=_leads(state, event.broker_id),
            ),
        )
        replica.segments.pop(event.base_offset, None)
    if replica.disk_bytes is not None:
        replica.disk_bytes = max(0, replica.disk_bytes - size_bytes)
    if is_head:
        replica.local_start = max(replica.local_start or 0, event.end_offset)
        _absorb(state, replica, event, terms)


def _leads(state: LogState, broker_id: int) -> bool:
    """Where nobody leads, as between a leader's end and its return, whoever did last: its log is the log."""
    if state.leader_id != -1:
        return state.leader_id in (None, broker_id)
    led = [epoch for epoch, leader in state.leaders.items() if leader != -1]
    return not led or state.leaders[max(led)] == broker_id


def log_start_advanced(state: LogState, event: LogStartAdvanced, terms: Terms) -> None:
    replica = lives.life(state, event)
    if replica is None:
        return
    old = event.old_start if replica.start is None else replica.start
    replica.ordinal = max(replica.ordinal, event.ordinal)
    lives.moved(state, replica, event, old, event.new_start, terms)
    if event.local_start is not None:
        replica.local_start = event.local_start
        _absorb(state, replica, event, terms)
    # Its own word on a start above all that was published proves nothing: the broker lifts the watermark.
    above = state.watermark is not None and event.new_start > state.watermark
    watermarks.taken(state, replica, event, None if above else event.high_watermark, is_filled=not above)


def high_watermark(state: LogState, event: HighWatermark, terms: Terms) -> None:
    if event.source is not Source.LOG_DIR and event.broker_id not in state.replicas:
        watermarks.published(state, event, event.high_watermark, is_filled=True)
        return
    replica = lives.life(state, event)
    if replica is None:
        return
    if event.log_start != NOT_KNOWN:
        lives.read_start(state, replica, event, event.log_start, terms)
    before, before_bytes = replica.watermark, replica.disk_bytes
    is_filled = event.size_bytes is None or event.size_bytes > 0 or event.log_start < event.high_watermark
    is_above = state.watermark is not None and event.log_start > state.watermark
    watermarks.taken(state, replica, event, event.high_watermark, is_filled=is_filled and not is_above)
    replica.log_end = event.log_end
    _disk_bytes(state, replica, event.size_bytes)
    fabricated.rose(state, replica, event, before, before_bytes, terms)
    watermarks.low(state, replica, event, terms)
    watermarks.uncommitted(state, replica, event, terms)


def truncated(state: LogState, event: Truncated, terms: Terms) -> None:
    replica = lives.life(state, event)
    if replica is None:
        return
    if replica.watermark is not None and event.new_end < replica.watermark and replica.has_been_in_sync:
        happened(
            state,
            "HWM-02",
            subject=f"replica {event.broker_id}",
            anchor=str(event.new_end),
            severity="C",
            ranges=span(event.new_end, replica.watermark),
            interval=(lives.since(event), event.occurred_at_ms),
            note=f"broker {event.broker_id} cut off what was below its high watermark {replica.watermark}",
        )
    for copy in state.above:
        if event.new_end < copy.end:
            happened(
                state,
                "SEG-10",
                subject="log",
                anchor=copy.segment_id,
                severity="C",
                ranges=span(copy.base, copy.end),
                interval=(copy.at_ms, event.occurred_at_ms),
                note="what was uploaded was truncated before it was committed",
            )
    state.above = [each for each in state.above if each.end <= event.new_end]
    replica.holes = cut(replica.holes, span(event.new_end, 2**63))
    replica.segments = {base: each for base, each in replica.segments.items() if base < event.new_end}
    replica.watermark = None if replica.watermark is None else min(replica.watermark, event.new_end)


def epoch_started(state: LogState, event: EpochStarted, terms: Terms) -> None:
    known = state.epoch_starts.get(event.epoch)
    if known is None or event.start_offset < known:
        state.epoch_starts[event.epoch] = event.start_offset
        watermarks.bound(state.epoch_starts)
    watermarks.check_epochs(state, (lives.since(event), event.occurred_at_ms))


def log_baseline(state: LogState, event: LogBaseline, terms: Terms) -> None:
    known = state.replicas.get(event.broker_id)
    if known is not None and lives.is_older(event, known):
        return
    replica = lives.life(state, event)
    assert replica is not None
    if state.born_ms is None:
        state.born_ms = event.occurred_at_ms
    replica.is_dark = False
    if event.log_start != NOT_KNOWN:
        lives.read_start(state, replica, event, event.log_start, terms)
    if event.local_start is not None:
        replica.local_start = event.local_start
        _absorb(state, replica, event, terms)
    is_filled = event.size_bytes is None or event.size_bytes > 0
    is_above = state.watermark is not None and event.log_start > state.watermark
    if event.high_watermark is not None:
        watermarks.taken(state, replica, event, event.high_watermark, is_filled=is_filled and not is_above)
    replica.log_end = event.log_end if event.log_end is not None else replica.log_end
    _disk_bytes(state, replica, event.size_bytes)
    for gap in state.gaps:
        is_before = gap.to_ms <= event.occurred_at_ms
        if gap.closed_ms is None and gap.broker_id == event.broker_id and is_before:
            gap.closed_ms = event.occurred_at_ms


def _absorb(state: LogState, replica: Replica, event: ReplicaEvent, terms: Terms) -> None:
    """A hole that the head has reached is none any more: what lay there went with the head."""
    head = replica.local_start or 0
    gone = NONE
    while replica.holes and replica.holes[0][0] <= head:
        head = max(head, replica.holes[0][1])
        gone = join(gone, span(*replica.holes[0]))
        replica.holes = replica.holes[1:]
    replica.local_start = head
    for base in [base for base, each in replica.segments.items() if each.end <= head]:
        piece = replica.segments.pop(base)
        if meet(gone, span(piece.base, piece.end)):
            _went_before(state, replica, piece, event, terms)


def _went_before(
    state: LogState, replica: Replica, piece: Segment, event: ReplicaEvent, terms: Terms
) -> None:
    """Its removal was SEG-02's while it was a hole; what it was still explains the start that passes it."""
    unique, counted = coverage.bytes_of(state, replica, with_tier=state.is_kip405)
    removal = Removal(
        where="local",
        broker_id=replica.broker_id,
        segment_id="",
        base=piece.base,
        end=piece.end,
        size_bytes=piece.size_bytes,
        max_timestamp_ms=piece.max_timestamp_ms,
        not_before_ms=lives.since(event),
        at_ms=event.occurred_at_ms,
        due_ms=event.occurred_at_ms + terms.settle_ms,
        bytes_at_most=unique,
        bytes_counted=counted,
        covered=meet(coverage.tiered(state), span(piece.base, piece.end)),
        was_led=False,
    )
    removed(state, removal)


def _disk_bytes(state: LogState, replica: Replica, size_bytes: int | None) -> None:
    if size_bytes is None:
        return
    known = coverage.disk_bytes(state, replica)
    if known is not None:
        _grew(state, replica, size_bytes - known)
    replica.disk_bytes = size_bytes


def _grew(state: LogState, replica: Replica, grown: int) -> None:
    """What a log grew by before it was told may have been there already when a segment went."""
    if grown <= 0:
        return
    is_leader = state.leader_id in (None, replica.broker_id)
    for removal in state.removals:
        is_its = removal.broker_id == replica.broker_id if removal.where == "local" else is_leader
        if not removal.is_decided and is_its and removal.bytes_at_most is not None:
            removal.bytes_at_most += grown
    for advance in replica.advances:
        for piece in advance.pieces:
            if advance.uncovered is None and piece.bytes_at_most is not None:
                piece.bytes_at_most += grown


def removed(state: LogState, removal: Removal) -> None:
    """An obligation more, or a gap where there are too many to keep."""
    if len(state.removals) < REMOVALS_MAX:
        state.removals.append(removal)
    else:
        missing(
            state,
            Gap(
                sort="too_many",
                broker_id=None,
                from_ms=removal.at_ms,
                to_ms=removal.at_ms,
                detail="more removals at once than are kept",
                closed_ms=removal.at_ms,
            ),
        )
