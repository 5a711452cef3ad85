"""What waits for its cause, decided when the wait is over: advances, rises, removals, fallbacks, deviations.

A removal is justified if *some* cause holds at *some* instant of its interval, widened by the clocks'
tolerance (RULES, "Reasons are inferred"). Which facts came first does not matter, since nothing is decided
before `due_ms`, and by then whoever watches has looked again:

    advance    of one replica's start. What no cause covers stays in doubt, and is the log's once it leads
    rise       of the log's own start: START-02 over what its leader has in doubt
    removal    of one segment: RET-01, RET-02, DEL-01 by what effective settings explain; SEG-09; RET-04
    fallback   of a replica's start: START-01
    deviation  of effective from declared retention: RET-03, once no declaration can come any more

Where evidence is missing nothing is decided; where a cause cannot be told, a gap says so.

Owns these decisions. Invariant: each is made once, with the facts heard up to its due time, wherever a run is
cut; only a declaration or a permit that is heard later is laid against it again.
"""

from __future__ import annotations

from dataclasses import replace

from rules.machine import authority, coverage, deviations, removals
from rules.machine.authority import TOTAL
from rules.machine.findings import close, happened, is_open, narrowed, opened
from rules.machine.justified import (
    as_piece,
    by_retention,
    is_blocked,
    unexplained,
    waits,
    went_with_the_topic,
)
from rules.machine.spans import NONE, Spans, covers, cut, join, meet, span
from rules.machine.state import (
    Advance,
    Fallback,
    Found,
    LogState,
    Replica,
    Rise,
    Segment,
)
from rules.machine.terms import Terms

SAME_AS_TOTAL = -2  # local.retention.*


def is_waiting(state: LogState) -> bool:
    """Whether a review can change anything at all: what was decided, and something is left of, stands."""
    return bool(
        state.deviations
        or any(not rise.uncovered for rise in state.rises)
        or state.fallbacks
        or state.topic_deletion_due_ms is not None
        or any(not each.uncovered for replica in state.replicas.values() for each in replica.advances)
        or any(not removal.is_decided for removal in state.removals)
        or any(permit.sort == "request" for permit in state.permits)
    )


def review(state: LogState, terms: Terms, now_ms: int) -> None:
    """Decide whatever is due."""
    deviations.decide(state, terms, now_ms)
    for _, replica in sorted(state.replicas.items()):
        for advance in replica.advances:
            if advance.uncovered is None:
                _advance(state, replica, advance, terms, now_ms)
        replica.advances = [each for each in replica.advances if each.uncovered != NONE]
    for rise in state.rises:
        if rise.uncovered is None:
            _rise(state, rise, terms, now_ms)
    state.rises = [each for each in state.rises if each.uncovered != NONE]
    for removal in state.removals:
        if not removal.is_decided:
            removals.decide(state, removal, terms, now_ms)
    state.fallbacks = [each for each in state.fallbacks if not _fallback(state, each, terms, now_ms)]
    _topic_deletion(state, terms, now_ms)
    _requests(state, terms, now_ms)
    deviations.worsen(state)
    _give_up(state, now_ms - terms.lateness_ms)


def reconsider(state: LogState, terms: Terms, now_ms: int) -> None:
    """After a declaration or a permit: what was condemned may have been allowed."""
    for found in [each for each in state.findings.values() if each.rule_id == "START-04"]:
        if found.closed_ms is None and _may_stand_above(state, found, terms):
            close(found, now_ms, "withdrawn")
    for _, replica in sorted(state.replicas.items()):
        for advance in replica.advances:
            if advance.uncovered:
                advance.uncovered = cut(advance.uncovered, _allowed_by_now(state, advance, terms))
    for rise in state.rises:
        for advance in rise.advances:
            rise.uncovered = cut(rise.uncovered or NONE, _allowed_by_now(state, advance, terms))
    whole = join(NONE, *(each.uncovered or NONE for each in state.rises))
    for found in [each for each in state.findings.values() if is_open(each)]:
        if found.rule_id == "START-02":
            narrowed(state, found, meet(found.ranges, whole), now_ms)
        elif _is_allowed_now(state, found, terms):
            close(found, now_ms, "withdrawn")
    removals.reconsider(state, terms, now_ms)


def _may_stand_above(state: LogState, found: Found, terms: Terms) -> bool:
    """Whether its own advances, those still in doubt, are allowed by now."""
    replica = state.replicas.get(int(found.subject.rpartition(" ")[2]))
    if replica is None or found.anchor != "above" or state.is_kip405:
        return False
    allowed = join(NONE, *(_allowed_by_now(state, each, terms) for each in replica.advances))
    return bool(found.ranges) and covers(allowed, found.ranges)


def _is_allowed_now(state: LogState, found: Found, terms: Terms) -> bool:
    if found.rule_id == "START-05":
        at = found.ranges[0][0]
        return bool(meet(authority.permitted(state, *found.happened, at, terms), span(at - 1, at)))
    is_deletion = found.rule_id == "OPS-01" and found.subject == "topic"
    return is_deletion and authority.may_delete_topic(state, *found.happened, terms)


def follow_start(state: LogState, not_before_ms: int, at_ms: int, terms: Terms) -> None:
    """The log's own start is its leader's; where nobody says who leads, each replica's counts."""
    if state.is_gone or state.leader_id == -1:
        return
    if state.leader_id is None:
        started = [each for each in state.replicas.values() if each.start is not None]
        leader = max(started, key=lambda each: (each.start or 0, -each.broker_id), default=None)
    else:
        leader = state.replicas.get(state.leader_id)
    if leader is None or leader.start is None:
        return
    if state.start is None:
        state.start = leader.start
    elif leader.start > state.start:
        state.rises.append(
            Rise(
                broker_id=leader.broker_id,
                start=state.start,
                end=leader.start,
                not_before_ms=min(not_before_ms, at_ms),
                at_ms=at_ms,
                due_ms=at_ms + terms.settle_ms,
                bytes_counted=coverage.bytes_of(state, leader, with_tier=state.is_kip405)[1],
            )
        )
        state.start = leader.start


def in_doubt(replica: Replica) -> Spans:
    """What its start passed, and no cause was found for."""
    return join(replica.doubt, *(each.uncovered or NONE for each in replica.advances))


def _give_up(state: LogState, horizon_ms: int) -> None:
    """Nothing more will be heard of it: what was missing all the while leaves it undecided for good."""
    for replica in state.replicas.values():
        for advance in replica.advances:
            if advance.uncovered is None and advance.at_ms < horizon_ms:
                advance.uncovered = NONE
                unexplained(state, advance.at_ms, advance.at_ms, span(advance.start, advance.end))
    for removal in state.removals:
        removal.is_decided = removal.is_decided or removal.at_ms < horizon_ms
    state.fallbacks = [each for each in state.fallbacks if each.at_ms >= horizon_ms]


def _advance(state: LogState, replica: Replica, advance: Advance, terms: Terms, now_ms: int) -> None:
    if now_ms < advance.due_ms or is_blocked(
        state, None, advance.not_before_ms, advance.at_ms + terms.settle_ms
    ):
        return
    covered, unknown = _causes_of(state, replica, advance, terms)
    uncovered = cut(span(advance.start, advance.end), covered)
    if uncovered and waits(state, advance, terms) > now_ms:
        return
    if meet(uncovered, unknown):
        unexplained(state, advance.not_before_ms, advance.at_ms, meet(uncovered, unknown))
    advance.uncovered = cut(uncovered, unknown)
    advance.pieces = _lying(state, replica, advance)  # by what it may be justified yet
    _boundary(state, replica, advance, terms)


def _causes_of(state: LogState, replica: Replica, advance: Advance, terms: Terms) -> tuple[Spans, Spans]:
    """What is covered by some cause, and of what no cause can be told."""
    from_ms = advance.not_before_ms - terms.clock_tolerance_ms
    to_ms = advance.at_ms + terms.clock_tolerance_ms
    whole = span(advance.start, advance.end)
    if went_with_the_topic(state, advance.at_ms, terms):
        return whole, NONE
    found = [
        _published_by_others(state, replica),
        replica.passed,
        state.went,
        authority.permitted(state, from_ms, to_ms, advance.end, terms),
    ]
    unknown = [whole] if advance.is_blind else []
    if authority.deployment(state) == "ours":
        found.append(coverage.tiered(state))
        found += [each.covered for each in state.removals if each.broker_id == replica.broker_id]
    for piece in _lying(state, replica, advance):
        offsets, is_unknown = by_retention(state, piece, TOTAL, from_ms, to_ms)
        (found if offsets else unknown if is_unknown else []).append(span(piece.base, piece.end))
    if not authority.authorised(state, TOTAL, from_ms, to_ms):
        unknown.append(whole)
    return join(NONE, *found), join(NONE, *unknown)


def _allowed_by_now(state: LogState, advance: Advance, terms: Terms) -> Spans:
    """By what people declared or permitted, and by nothing that came to pass since."""
    from_ms = advance.not_before_ms - terms.clock_tolerance_ms
    to_ms = advance.at_ms + terms.clock_tolerance_ms
    found = [authority.permitted(state, from_ms, to_ms, advance.end, terms)]
    for piece in advance.pieces:
        if by_retention(state, piece, TOTAL, from_ms, to_ms)[0]:
            found.append(span(piece.base, piece.end))
    return meet(join(NONE, *found), span(advance.start, advance.end))


def _lying(state: LogState, replica: Replica, advance: Advance) -> list[Segment]:
    """What lay there when the start moved, and what of it had gone a moment before."""
    lying = {(each.base, each.end): each for each in advance.pieces}
    for removal in state.removals:
        is_its = removal.broker_id == replica.broker_id or (removal.where == "tier" and state.is_kip405)
        if is_its and removal.base < advance.end and removal.end > advance.start:
            lying.setdefault((removal.base, removal.end), as_piece(removal))
    return list(lying.values())


def _published_by_others(state: LogState, replica: Replica) -> Spans:
    """Up to a start that another leader has published: that leader's, judged once."""
    own = join(
        NONE, *(span(each.start, each.end) for each in state.rises if each.broker_id == replica.broker_id)
    )
    return cut(span(0, state.start or 0), own)


def _boundary(state: LogState, replica: Replica, advance: Advance, terms: Terms) -> None:
    """START-05: it lies inside a segment that is known, where only a record deletion or a leader puts it."""
    at = advance.end
    ends = {(each.base, each.end) for each in advance.pieces}
    ends |= {(each.base, each.end) for each in state.removals if each.broker_id in (-1, replica.broker_id)}
    ends |= {(each.base, each.end) for each in coverage.finished(state)}
    inside = any(base < at < end for base, end in ends)
    is_boundary = any(at in edges for edges in ends)
    if not inside or is_boundary or not replica.has_been_in_sync:
        return
    from_ms, to_ms = advance.not_before_ms, advance.at_ms
    allowed = authority.permitted(state, from_ms, to_ms, at, terms)
    excused = join(allowed, _published_by_others(state, replica))
    if not went_with_the_topic(state, to_ms, terms) and not meet(excused, span(at - 1, at)):
        opened(
            state,
            "START-05",
            subject="log",
            anchor=str(at),
            severity="E",
            ranges=span(at, at + 1),
            interval=(from_ms, to_ms),
            note=f"broker {replica.broker_id} starts at {at}, inside a segment, and nobody deleted records",
            at_ms=advance.due_ms,
        )


def _rise(state: LogState, rise: Rise, terms: Terms, now_ms: int) -> None:
    leader = state.replicas.get(rise.broker_id)
    if leader is None:
        rise.uncovered = NONE
        unexplained(state, rise.not_before_ms, rise.at_ms, span(rise.start, rise.end))
        return
    mine = [each for each in leader.advances if each.start < rise.end and each.end > rise.start]
    if now_ms < rise.due_ms or any(each.uncovered is None for each in mine):
        return
    rise.due_ms = max(rise.due_ms, *(each.due_ms for each in mine), 0)
    rise.uncovered = meet(span(rise.start, rise.end), in_doubt(leader))
    rise.advances = [replace(each, pieces=[*each.pieces]) for each in mine if each.uncovered]
    lost = (
        cut(rise.uncovered, span(state.watermark or 0, coverage.END)) if state.watermark else rise.uncovered
    )
    for start, end in lost:
        happened_at = (rise.not_before_ms, rise.at_ms)
        found = happened(
            state,
            "START-02",
            subject="log",
            anchor=str(start),
            severity="C",
            ranges=span(start, end),
            interval=happened_at,
            note=f"broker {rise.broker_id} leads from {rise.end}; nothing justifies what went below",
        )
        if found is not None and found.happened == happened_at:
            found.opened_ms = rise.due_ms


def _fallback(state: LogState, fall: Fallback, terms: Terms, now_ms: int) -> bool:
    """Whether it is decided."""
    if now_ms < fall.due_ms or is_blocked(
        state, fall.broker_id, fall.not_before_ms, fall.at_ms + terms.settle_ms
    ):
        return False
    whole = span(fall.new, fall.old)
    restored = join(NONE, *(span(start, end) for _, start, end in state.restores))
    if covers(restored, whole) or _was_unclean(state, fall, terms) or state.is_gone:
        return True
    opened(
        state,
        "START-01",
        subject=f"replica {fall.broker_id}",
        anchor=str(fall.new),
        severity="C",
        ranges=whole,
        interval=(fall.not_before_ms, fall.at_ms),
        note=f"broker {fall.broker_id} started at {fall.old}, and then at {fall.new}",
        at_ms=fall.due_ms,
    )
    return True


def _was_unclean(state: LogState, fall: Fallback, terms: Terms) -> bool:
    """Kafka writes starts down every so often: what moved since may be forgotten by a crash."""
    reach = terms.start_checkpoint_ms + terms.scan_ms + terms.clock_tolerance_ms
    return any(
        since_ms - terms.clock_tolerance_ms <= fall.at_ms
        and at_ms >= fall.not_before_ms - terms.settle_ms
        and fall.moved_ms is not None
        and fall.moved_ms >= since_ms - reach
        for since_ms, at_ms in state.unclean_starts.get(fall.broker_id, ())
    )


def _topic_deletion(state: LogState, terms: Terms, now_ms: int) -> None:
    due_ms = state.topic_deletion_due_ms
    if due_ms is None or state.deleted_ms is None or now_ms < due_ms:
        return
    if is_blocked(state, None, state.deleted_ms[0], due_ms):
        return
    state.topic_deletion_due_ms = None
    if authority.may_delete_topic(state, *state.deleted_ms, terms):
        return
    first = min((each.base for each in coverage.finished(state)), default=state.start or 0)
    opened(
        state,
        "OPS-01",
        subject="topic",
        anchor="deleted",
        severity="C",
        ranges=span(min(first, state.start or 0), state.watermark or 0),
        interval=state.deleted_ms,
        note="the topic was deleted, and nobody was allowed to",
        at_ms=due_ms,
    )


def _requests(state: LogState, terms: Terms, now_ms: int) -> None:
    for permit in [each for each in state.permits if each.sort == "request" and each.to_ms <= now_ms]:
        if is_blocked(state, None, permit.from_ms, permit.to_ms):
            continue
        state.permits.remove(permit)
        end = permit.end or 0
        allowed = authority.permitted(state, permit.from_ms, permit.to_ms, end, terms)
        if end and not meet(allowed, span(end - 1, end)):
            opened(
                state,
                "OPS-01",
                subject="log",
                anchor=f"records below {end}",
                severity="C",
                ranges=span(min(state.start or 0, end - 1), end),
                interval=(permit.from_ms, permit.from_ms),
                note=f"{permit.principal} asked for it under {permit.change_id}, and was not allowed to",
                at_ms=permit.to_ms,
            )
