"""What a replica's files say, taken into the state: lives, starts, watermarks, segments that came and went.

Owns how these facts are kept. Judges nothing: what asks for a cause becomes an obligation (`obligations`
decides it), what is a state of things is looked at by `conditions`.

Invariant: nothing of one life is compared with another's; a life's first start is where it begins.
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
from rules.machine import coverage, fabricated
from rules.machine.findings import happened
from rules.machine.spans import NONE, cut, join, meet, span
from rules.machine.state import (
    EPOCHS_KEPT,
    REMOVALS_MAX,
    Advance,
    Fallback,
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
    if known is not None and _is_life_of(known, event):
        return  # an observer that forgot sees it for the first time again; its baseline follows
    if known is not None and _is_older(event, known):
        return
    _begin(state, event, event.log_start, event.appearance is ReplicaAppearance.FIRST_SEEN)
    replica = state.replicas[event.broker_id]
    replica.local_start, replica.watermark = event.local_start, event.high_watermark
    _published(state, event, event.high_watermark, is_filled=event.log_start == event.local_start)


def replica_removed(state: LogState, event: ReplicaRemoved, terms: Terms) -> None:
    known = state.replicas.get(event.broker_id)
    is_unassigned = event.replica_removal is ReplicaRemoval.UNASSIGNED
    if known is not None and (is_unassigned or _is_life_of(known, event)):
        del state.replicas[event.broker_id]


def segment_closed(state: LogState, event: SegmentClosed, terms: Terms) -> None:
    replica = _life(state, event)
    if replica is None:
        return
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


def _missing_inside(event: SegmentClosed) -> coverage.Spans:
    if event.data_end is not None and event.data_end < event.end_offset:
        return span(max(event.data_end, event.base_offset), event.end_offset)
    if event.record_count is not None and event.record_count != event.end_offset - event.base_offset:
        return span(event.base_offset, event.end_offset)
    return NONE


def segment_deleted_local(state: LogState, event: SegmentDeletedLocal, terms: Terms) -> None:
    replica = _life(state, event)
    if replica is None:
        return
    known = replica.segments.get(event.base_offset)
    if event.segment_removal is SegmentRemoval.SWAPPED:
        replica.segments.pop(event.base_offset, None)
        return
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
                not_before_ms=_since(event),
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
    replica = _life(state, event)
    if replica is None:
        return
    old = event.old_start if replica.start is None else replica.start
    replica.ordinal = max(replica.ordinal, event.ordinal)
    _moved(state, replica, event, old, event.new_start, terms)
    if event.local_start is not None:
        replica.local_start = event.local_start
        _absorb(state, replica, event, terms)
    # Its own word on a start above all that was published proves nothing: the broker lifts the watermark.
    above = state.watermark is not None and event.new_start > state.watermark
    _watermark(state, replica, event, None if above else event.high_watermark, is_filled=not above)


def high_watermark(state: LogState, event: HighWatermark, terms: Terms) -> None:
    if event.source is not Source.LOG_DIR and event.broker_id not in state.replicas:
        _published(state, event, event.high_watermark, is_filled=True)
        return
    replica = _life(state, event)
    if replica is None:
        return
    if event.log_start != NOT_KNOWN:
        _read_start(state, replica, event, event.log_start, terms)
    before, before_bytes = replica.watermark, replica.disk_bytes
    is_filled = event.size_bytes is None or event.size_bytes > 0 or event.log_start < event.high_watermark
    is_above = state.watermark is not None and event.log_start > state.watermark
    _watermark(state, replica, event, event.high_watermark, is_filled=is_filled and not is_above)
    replica.log_end = event.log_end
    _disk_bytes(state, replica, event.size_bytes, event.occurred_at_ms)
    fabricated.rose(state, replica, event, before, before_bytes, terms)
    _low_watermark(state, replica, event, terms)
    _uncommitted(state, replica, event, terms)


def truncated(state: LogState, event: Truncated, terms: Terms) -> None:
    replica = _life(state, event)
    if replica is None:
        return
    if replica.watermark is not None and event.new_end < replica.watermark and _is_judged(replica):
        happened(
            state,
            "HWM-02",
            subject=f"replica {event.broker_id}",
            anchor=str(event.new_end),
            severity="C",
            ranges=span(event.new_end, replica.watermark),
            interval=(_since(event), event.occurred_at_ms),
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
        _bound(state.epoch_starts)
    _check_epochs(state, (_since(event), event.occurred_at_ms))


def log_baseline(state: LogState, event: LogBaseline, terms: Terms) -> None:
    known = state.replicas.get(event.broker_id)
    if known is not None and _is_older(event, known):
        return
    replica = _life(state, event)
    assert replica is not None
    if state.born_ms is None:
        state.born_ms = event.occurred_at_ms
    replica.is_dark = False
    if event.log_start != NOT_KNOWN:
        _read_start(state, replica, event, event.log_start, terms)
    if event.local_start is not None:
        replica.local_start = event.local_start
        _absorb(state, replica, event, terms)
    is_filled = event.size_bytes is None or event.size_bytes > 0
    is_above = state.watermark is not None and event.log_start > state.watermark
    if event.high_watermark is not None:
        _watermark(state, replica, event, event.high_watermark, is_filled=is_filled and not is_above)
    replica.log_end = event.log_end if event.log_end is not None else replica.log_end
    _disk_bytes(state, replica, event.size_bytes, event.occurred_at_ms)
    for gap in state.gaps:
        is_before = gap.to_ms <= event.occurred_at_ms
        if gap.closed_ms is None and gap.broker_id == event.broker_id and is_before:
            gap.closed_ms = event.occurred_at_ms


def seen_in_sync(state: LogState, at_ms: int) -> None:
    """After a word about leaders or in-sync replicas: whoever is among them is judged from here on."""
    state.leadership_ms = max(state.leadership_ms, at_ms)
    for broker_id, replica in state.replicas.items():
        is_among = state.in_sync is None or broker_id in state.in_sync or broker_id == state.leader_id
        if is_among and at_ms > replica.began_ms:
            replica.has_been_in_sync = True


def _life(state: LogState, event: ReplicaEvent) -> Replica | None:
    """The life that an event is about; None for one that is over. A beginning that was missed begins here."""
    known = state.replicas.get(event.broker_id)
    if known is None:
        return _begin(state, event, None, True)
    if event.replica_incarnation is None or known.incarnation is None or _is_life_of(known, event):
        return known
    return None if _is_older(event, known) else _begin(state, event, None, True)


def _is_life_of(known: Replica, event: ReplicaEvent) -> bool:
    return (known.directory_id, known.incarnation) == (event.directory_id, event.replica_incarnation)


def _is_older(event: ReplicaEvent, known: Replica) -> bool:
    if event.replica_incarnation is None or known.incarnation is None:
        return False
    return event.replica_incarnation < known.incarnation


def _begin(state: LogState, event: ReplicaEvent, start: int | None, is_first_sight: bool) -> Replica:
    at_ms = event.occurred_at_ms
    is_in_sync = state.in_sync is None or event.broker_id in (*state.in_sync, state.leader_id)
    passes = start is not None and state.start is not None and not is_first_sight
    replica = Replica(
        broker_id=event.broker_id,
        directory_id=event.directory_id,
        incarnation=event.replica_incarnation,
        began_ms=at_ms,
        ordinal=event.ordinal,
        start=start,
        start_since_ms=at_ms,
        start_read_ms=at_ms,
        start_moved_ms=None,
        local_start=None,
        watermark=None,
        log_end=None,
        disk_bytes=None,
        has_been_in_sync=is_first_sight and is_in_sync,
        doubt=span(state.start or 0, start or 0) if passes else NONE,
    )
    state.replicas[event.broker_id] = replica
    if state.born_ms is None:
        state.born_ms = at_ms
    return replica


def _is_judged(replica: Replica) -> bool:
    return replica.has_been_in_sync


def _since(event: ReplicaEvent) -> int:
    return event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms


def _read_start(state: LogState, replica: Replica, event: ReplicaEvent, start: int, terms: Terms) -> None:
    """A reading beside others: equal as a rule; where it is not, a move was missed."""
    at_ms = event.occurred_at_ms
    if replica.start is None:
        replica.start = start
        replica.start_since_ms = replica.start_read_ms = at_ms
    elif start == replica.start:
        replica.start_read_ms = max(replica.start_read_ms, at_ms)
    else:
        _moved(state, replica, event, replica.start, start, terms)


def _moved(state: LogState, replica: Replica, event: ReplicaEvent, old: int, new: int, terms: Terms) -> None:
    at_ms = event.occurred_at_ms
    since = min(_since(event), at_ms)
    if new < old and _is_judged(replica):
        state.fallbacks.append(
            Fallback(
                broker_id=replica.broker_id,
                old=old,
                new=new,
                not_before_ms=since,
                at_ms=at_ms,
                due_ms=at_ms + terms.settle_ms,
                moved_ms=replica.start_moved_ms,
            )
        )
    if new < old:
        _fell(replica, new, old)
    elif new > old:
        _advanced(state, replica, event, old, new, since, terms)
    if new != replica.start:
        replica.start_since_ms = at_ms
        replica.start_moved_ms = at_ms
    replica.start = new
    replica.start_read_ms = at_ms


def _fell(replica: Replica, new: int, old: int) -> None:
    """What it passed below stays as it was judged; above, it was justified or is in doubt no more."""
    known = join(NONE, *(span(each.start, each.end) for each in replica.advances))
    replica.passed = join(replica.passed, cut(span(new, old), join(replica.doubt, known)))
    replica.doubt = cut(replica.doubt, span(new, old))
    replica.advances = [each for each in replica.advances if each.start < new]
    for advance in replica.advances:
        advance.end = min(advance.end, new)
        if advance.uncovered is not None:
            advance.uncovered = cut(advance.uncovered, span(new, old))


def _advanced(
    state: LogState, replica: Replica, event: ReplicaEvent, old: int, new: int, since: int, terms: Terms
) -> None:
    replica.advances.append(
        Advance(
            start=old,
            end=new,
            not_before_ms=since,
            at_ms=event.occurred_at_ms,
            due_ms=event.occurred_at_ms + terms.settle_ms,
            is_blind=event.source is not Source.LOG_DIR,
            pieces=coverage.pieces(state, replica, old, new),
        )
    )


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
        not_before_ms=_since(event),
        at_ms=event.occurred_at_ms,
        due_ms=event.occurred_at_ms + terms.settle_ms,
        bytes_at_most=unique,
        bytes_counted=counted,
        covered=meet(coverage.tiered(state), span(piece.base, piece.end)),
        was_led=False,
    )
    removed(state, removal)


def _watermark(
    state: LogState, replica: Replica, event: ReplicaEvent, watermark: int | None, *, is_filled: bool
) -> None:
    if watermark is None:
        return
    replica.watermark = watermark
    _published(state, event, watermark, is_filled=is_filled)


def _published(state: LogState, event: ReplicaEvent, watermark: int | None, *, is_filled: bool) -> None:
    if watermark is None or not is_filled:
        return
    epoch = event.leader_epoch if event.leader_epoch >= 0 else state.leader_epoch
    if watermark > state.watermarks.get(epoch, -1):
        state.watermarks[epoch] = watermark
        _bound(state.watermarks)
    state.watermark = max(state.watermark or 0, watermark)
    _check_epochs(state, (_since(event), event.occurred_at_ms))
    state.above = [each for each in state.above if each.end > watermark]


def _check_epochs(state: LogState, interval: tuple[int, int]) -> None:
    """An epoch begins at or above what was committed before it, whichever of the two was heard first."""
    for epoch, start in state.epoch_starts.items():
        before = max((mark for old, mark in state.watermarks.items() if old < epoch), default=0)
        if start < before and f"EPO-01|log|{epoch}" not in state.findings:
            happened(
                state,
                "EPO-01",
                subject="log",
                anchor=str(epoch),
                severity="C",
                ranges=span(start, before),
                interval=interval,
                note=f"epoch {epoch} begins at {start}, below {before}, committed in an earlier one",
            )


def _bound(by_epoch: dict[int, int]) -> None:
    while len(by_epoch) > EPOCHS_KEPT:
        del by_epoch[min(by_epoch)]


def _disk_bytes(state: LogState, replica: Replica, size_bytes: int | None, at_ms: int) -> None:
    """What a log grew by before this reading may have been there already when a segment went."""
    if size_bytes is None:
        return
    grown = size_bytes - replica.disk_bytes if replica.disk_bytes is not None else 0
    if grown > 0:
        is_leader = state.leader_id in (None, replica.broker_id)
        for removal in state.removals:
            is_its = removal.broker_id == replica.broker_id if removal.where == "local" else is_leader
            if not removal.is_decided and is_its and removal.bytes_at_most is not None:
                removal.bytes_at_most += grown
        for advance in replica.advances:
            for piece in advance.pieces:
                if advance.uncovered is None and piece.bytes_at_most is not None:
                    piece.bytes_at_most += grown
    replica.disk_bytes = size_bytes


def _low_watermark(state: LogState, replica: Replica, event: HighWatermark, terms: Terms) -> None:
    """The leader's, below what was published: twice, a grace apart, since a new leader's trails (KIP-207)."""
    if replica.broker_id != state.leader_id or state.watermark is None:
        return
    if event.high_watermark >= state.watermark:
        replica.low_since_ms = None
        return
    if replica.low_since_ms is None:
        replica.low_since_ms = event.occurred_at_ms
    elif event.occurred_at_ms - replica.low_since_ms >= terms.watermark_ms:
        unclean = ", elected uncleanly" if state.leader_epoch in state.unclean_epochs else ""
        happened(
            state,
            "HWM-01",
            subject="log",
            anchor=str(event.high_watermark),
            severity="C",
            ranges=span(event.high_watermark, state.watermark),
            interval=(replica.low_since_ms, event.occurred_at_ms),
            note=f"broker {replica.broker_id} leads with {event.high_watermark}{unclean}; "
            f"{state.watermark} was published",
        )


def _uncommitted(state: LogState, replica: Replica, event: HighWatermark, terms: Terms) -> None:
    """Copies above every watermark, and still so when the leader wrote down another (KAFKA_FACTS 18)."""
    if replica.broker_id != state.leader_id:
        return
    # A reading that reaches a copy says nothing against it, even where it is not believed: behind a start
    # above all that was published, which a busy topic's own retention brings about within minutes, too.
    proved = [
        each
        for each in state.above
        if event.high_watermark < each.end and event.occurred_at_ms - each.at_ms >= terms.watermark_ms
    ]
    for copy in proved:
        happened(
            state,
            "SEG-10",
            subject="log",
            anchor=copy.segment_id,
            severity="C",
            ranges=span(max(copy.base, state.watermark or 0), copy.end),
            interval=(copy.at_ms, event.occurred_at_ms),
            note=f"uploaded up to {copy.end}; the high watermark is {state.watermark} still",
        )
    state.above = [each for each in state.above if each not in proved]


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
