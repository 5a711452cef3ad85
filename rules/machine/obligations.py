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

from rules.machine import authority, coverage
from rules.machine.authority import LOCAL, TOTAL, UNLIMITED
from rules.machine.cluster import RETENTION_KEYS
from rules.machine.findings import close, happened, is_open, narrowed, opened, worse
from rules.machine.spans import NONE, Spans, covers, cut, join, meet, span
from rules.machine.state import (
    Advance,
    Deviation,
    Fallback,
    Found,
    Gap,
    LogState,
    Removal,
    Replica,
    Rise,
    Segment,
    missing,
)
from rules.machine.terms import HOUR_MS, Terms

SAME_AS_TOTAL = -2  # local.retention.*


def review(state: LogState, terms: Terms, now_ms: int) -> None:
    """Decide whatever is due."""
    _deviations(state, terms, now_ms)
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
            _removal(state, removal, terms, now_ms)
    state.fallbacks = [each for each in state.fallbacks if not _fallback(state, each, terms, now_ms)]
    _topic_deletion(state, terms, now_ms)
    _requests(state, terms, now_ms)
    _worsen(state)
    _give_up(state, now_ms - terms.lateness_ms)


def reconsider(state: LogState, terms: Terms, now_ms: int) -> None:
    """After a declaration or a permit: what was condemned may have been allowed."""
    for _, replica in sorted(state.replicas.items()):
        for advance in replica.advances:
            if advance.uncovered:
                covered, _ = _causes_of(state, replica, advance, terms)
                advance.uncovered = cut(advance.uncovered, covered)
    for rise in state.rises:
        leader = state.replicas.get(rise.broker_id)
        if rise.uncovered and leader is not None:
            rise.uncovered = meet(rise.uncovered, in_doubt(leader))
    whole = join(NONE, *(each.uncovered or NONE for each in state.rises))
    for found in [each for each in state.findings.values() if is_open(each)]:
        if found.rule_id == "START-02":
            narrowed(state, found, meet(found.ranges, whole), now_ms)
        elif _is_allowed_now(state, found, terms):
            close(found, now_ms, "withdrawn")
    _withdraw_removals(state, terms, now_ms)


def _is_allowed_now(state: LogState, found: Found, terms: Terms) -> bool:
    if found.rule_id == "START-04" and found.anchor == "above" and not state.is_kip405:
        replica = state.replicas.get(int(found.subject.rpartition(" ")[2]))
        return replica is not None and not meet(found.ranges, in_doubt(replica))
    if found.rule_id == "START-05":
        at = found.ranges[0][0]
        return bool(meet(authority.permitted(state, *found.happened, at, terms), span(at - 1, at)))
    is_deletion = found.rule_id == "OPS-01" and found.subject == "topic"
    return is_deletion and authority.may_delete_topic(state, *found.happened, terms)


def _withdraw_removals(state: LogState, terms: Terms, now_ms: int) -> None:
    for removal in state.removals:
        if not removal.is_unjustified:
            continue
        cause, offsets, _ = _why(state, removal, terms)
        if cause is None:
            continue
        removal.is_unjustified = False
        if cause == "retention":
            _shrunk(state, removal, offsets, terms)
        for rule_id in ("RET-01", "RET-02", "DEL-01"):
            known = state.findings.get(f"{rule_id}|log|{removal.base}")
            if known is not None and known.happened == (removal.not_before_ms, removal.at_ms):
                close(known, now_ms, "withdrawn")


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


def is_blocked(state: LogState, broker_id: int | None, from_ms: int, to_ms: int) -> bool:
    """Whether what is missing may be the very cause. `broker_id` None: of any.

    What was lost of a broker's disk is about its time. What was lost of the metadata or of the policy may be
    in force ever since.
    """
    return any(
        gap.closed_ms is None
        and gap.from_ms <= to_ms
        and (gap.broker_id is None or gap.to_ms >= from_ms)
        and (broker_id is None or gap.broker_id in (None, broker_id))
        for gap in state.gaps
    )


def _give_up(state: LogState, horizon_ms: int) -> None:
    """Nothing more will be heard of it: what was missing all the while leaves it undecided for good."""
    for replica in state.replicas.values():
        for advance in replica.advances:
            if advance.uncovered is None and advance.at_ms < horizon_ms:
                advance.uncovered = NONE
                _unexplained(state, advance.at_ms, advance.at_ms, span(advance.start, advance.end))
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
    if uncovered and _waits(state, advance, terms) > now_ms:
        return
    if meet(uncovered, unknown):
        _unexplained(state, advance.not_before_ms, advance.at_ms, meet(uncovered, unknown))
    advance.uncovered = cut(uncovered, unknown)
    advance.pieces = _lying(state, replica, advance)  # by what it may be justified yet
    _boundary(state, replica, advance, terms)


def _waits(state: LogState, what: Advance | Removal | Rise, terms: Terms) -> int:
    """A declaration may come yet that authorises what effective retention did."""
    dues = (
        each.due_ms
        for each in state.deviations
        if each.since_ms <= what.at_ms + terms.clock_tolerance_ms
        and (each.reverted_ms is None or each.reverted_ms >= what.not_before_ms)
    )
    what.due_ms = max(what.due_ms, *dues, 0)
    return what.due_ms


def _unexplained(state: LogState, from_ms: int, to_ms: int, ranges: Spans) -> None:
    told = ", ".join(f"[{start}, {end})" for start, end in ranges)
    gap = Gap(
        sort="cause_unknown",
        broker_id=None,
        from_ms=from_ms,
        to_ms=to_ms,
        detail=f"what would justify or condemn the removal of {told} was not seen",
        closed_ms=to_ms,
    )
    missing(state, gap)


def _causes_of(state: LogState, replica: Replica, advance: Advance, terms: Terms) -> tuple[Spans, Spans]:
    """What is covered by some cause, and of what no cause can be told."""
    from_ms = advance.not_before_ms - terms.clock_tolerance_ms
    to_ms = advance.at_ms + terms.clock_tolerance_ms
    whole = span(advance.start, advance.end)
    if _went_with_the_topic(state, advance.at_ms, terms):
        return whole, NONE
    found = [
        _published_by_others(state, replica),
        replica.passed,
        authority.permitted(state, from_ms, to_ms, advance.end, terms),
    ]
    unknown = [whole] if advance.is_blind else []
    if authority.deployment(state) == "ours":
        found.append(coverage.tiered(state))
        found += [each.covered for each in state.removals if each.broker_id == replica.broker_id]
    for piece in _lying(state, replica, advance):
        offsets, is_unknown = _by_retention(state, piece, TOTAL, from_ms, to_ms)
        (found if offsets else unknown if is_unknown else []).append(span(piece.base, piece.end))
    if not authority.authorised(state, TOTAL, from_ms, to_ms):
        unknown.append(whole)
    return join(NONE, *found), join(NONE, *unknown)


def _lying(state: LogState, replica: Replica, advance: Advance) -> list[Segment]:
    """What lay there when the start moved, and what of it had gone a moment before."""
    lying = {(each.base, each.end): each for each in advance.pieces}
    for removal in state.removals:
        is_its = removal.broker_id == replica.broker_id or (removal.where == "tier" and state.is_kip405)
        if is_its and removal.base < advance.end and removal.end > advance.start:
            lying.setdefault((removal.base, removal.end), _as_piece(removal))
    return list(lying.values())


def _went_with_the_topic(state: LogState, at_ms: int, terms: Terms) -> bool:
    return state.deleted_ms is not None and state.deleted_ms[0] <= at_ms + terms.settle_ms


def _published_by_others(state: LogState, replica: Replica) -> Spans:
    """Up to a start that another leader has published: that leader's, judged once."""
    own = join(
        NONE, *(span(each.start, each.end) for each in state.rises if each.broker_id == replica.broker_id)
    )
    return cut(span(0, state.start or 0), own)


def _as_piece(removal: Removal) -> Segment:
    return Segment(
        base=removal.base,
        end=removal.end,
        size_bytes=removal.size_bytes,
        max_timestamp_ms=removal.max_timestamp_ms,
        bytes_at_most=removal.bytes_at_most,
    )


def _by_retention(
    state: LogState, piece: Segment, sort: str, from_ms: int, to_ms: int
) -> tuple[list[int], bool]:
    """The policies, by offset, under which it may go, and whether that cannot be told."""
    offsets: list[int] = []
    is_unknown = False
    for offset, keeps in authority.authorised(state, sort, from_ms, to_ms):
        has_time = piece.max_timestamp_ms is not None and piece.max_timestamp_ms >= 0
        by_time = has_time and keeps.expires(piece.max_timestamp_ms or 0, to_ms)
        by_size = piece.bytes_at_most is not None and keeps.exceeds(piece.bytes_at_most, piece.size_bytes)
        if by_time or by_size:
            offsets.append(offset)
        is_unknown |= (not has_time and keeps.ms != UNLIMITED) or (
            piece.bytes_at_most is None and keeps.bytes != UNLIMITED
        )
    return offsets, is_unknown and not offsets


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
    if not _went_with_the_topic(state, to_ms, terms) and not meet(excused, span(at - 1, at)):
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
        _unexplained(state, rise.not_before_ms, rise.at_ms, span(rise.start, rise.end))
        return
    mine = [each for each in leader.advances if each.start < rise.end and each.end > rise.start]
    if now_ms < rise.due_ms or any(each.uncovered is None for each in mine):
        return
    rise.due_ms = max(rise.due_ms, *(each.due_ms for each in mine), 0)
    rise.uncovered = meet(span(rise.start, rise.end), in_doubt(leader))
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


def _start_in_doubt(state: LogState) -> Spans:
    return join(
        NONE,
        *(span(each.start, each.end) if each.uncovered is None else each.uncovered for each in state.rises),
    )


def _removal(state: LogState, removal: Removal, terms: Terms, now_ms: int) -> None:
    if now_ms < removal.due_ms:
        return
    if not removal.was_led:
        removal.is_decided = True
        return
    if is_blocked(state, None, removal.not_before_ms, removal.at_ms + terms.settle_ms):
        return
    whole = span(removal.base, removal.end)
    if any(each.uncovered is None and meet(span(each.start, each.end), whole) for each in state.rises):
        return
    cause, offsets, is_unknown = _why(state, removal, terms)
    if cause is None and not is_unknown and _waits(state, removal, terms) > now_ms:
        return
    removal.is_decided = True
    if cause is None and is_unknown:
        _unexplained(state, removal.not_before_ms, removal.at_ms, whole)
    elif cause is None:
        removal.is_unjustified = True
        _charge(state, removal, terms)
    if cause == "retention":
        _shrunk(state, removal, offsets, terms)
    elif cause not in ("free", "superseded"):
        hour = removal.at_ms // HOUR_MS
        state.blast[hour] = state.blast.get(hour, 0) + 1
    if removal.where == "local":
        _uploaded(state, removal, terms)


def _why(state: LogState, removal: Removal, terms: Terms) -> tuple[str | None, list[int], bool]:
    """The first cause that holds, the policies under which it does, and whether it cannot be told."""
    from_ms = removal.not_before_ms - terms.clock_tolerance_ms
    to_ms = removal.at_ms + terms.clock_tolerance_ms
    whole = span(removal.base, removal.end)
    mode = authority.deployment(state)
    is_local = removal.where == "local"
    if _went_with_the_topic(state, removal.at_ms, terms):
        return "topic", [], False
    sort = LOCAL if is_local and mode == "ours" else TOTAL
    offsets, is_unknown = _by_retention(state, _as_piece(removal), sort, from_ms, to_ms)
    if offsets:
        return "retention", offsets, False
    if is_local and (covers(removal.covered, whole) or covers(coverage.tiered(state), whole)):
        return "tier", [], False
    if not is_local and covers(coverage.tiered(state, [removal.segment_id]), whole):
        return "superseded", [], False
    if covers(authority.permitted(state, from_ms, to_ms, removal.end, terms), whole):
        return "free", [], False
    is_below = (state.start or 0) >= removal.end and not meet(_start_in_doubt(state), whole)
    if is_below and mode != "ours":
        return "start", [], False
    if not authority.authorised(state, sort, from_ms, to_ms):
        is_unknown = True
    return None, [], is_unknown


def _charge(state: LogState, removal: Removal, terms: Terms) -> None:
    """To what effective settings explain: time, then size, then the start, then nothing (RULES)."""
    mode = authority.deployment(state)
    is_local = removal.where == "local"
    if is_local and mode == "kip405":
        return  # below the log's start that is START-02's, above it SEG-09's
    from_ms = removal.not_before_ms - terms.clock_tolerance_ms
    to_ms = removal.at_ms + terms.clock_tolerance_ms
    rule_id: str | None = None if is_local else "DEL-01"
    why = "unexplained"
    if is_local or mode == "kip405":
        newest_ms = removal.max_timestamp_ms
        times = authority.effective(state, "retention.ms", from_ms, to_ms)
        sizes = authority.effective(state, "retention.bytes", from_ms, to_ms)
        counted = _counted(state, removal)
        if newest_ms is not None and any(e != UNLIMITED and to_ms - newest_ms >= e for e in times):
            rule_id, why = "RET-01", f"effective retention.ms was {authority.least(times)}"
        elif counted is not None and any(e != UNLIMITED and counted >= e for e in sizes):
            rule_id = "RET-02"
            why = f"unique bytes {removal.bytes_at_most}, effective retention.bytes {authority.least(sizes)}"
    if rule_id is None:
        return
    opened(
        state,
        rule_id,
        subject="log",
        anchor=str(removal.base),
        severity="C",
        ranges=span(removal.base, removal.end),
        interval=(removal.not_before_ms, removal.at_ms),
        note=f"removed from {'the tier' if not is_local else f'broker {removal.broker_id}'}: {why}",
        at_ms=removal.due_ms,
    )


def _counted(state: LogState, removal: Removal) -> int | None:
    counts = [removal.bytes_counted]
    if state.is_kip405:  # it moves the start first, by what it counted then
        over = [each for each in state.rises if each.start < removal.end and each.end > removal.base]
        counts += [each.bytes_counted for each in over]
    return max((each for each in counts if each is not None), default=None)


def _shrunk(state: LogState, removal: Removal, offsets: list[int], terms: Terms) -> None:
    """RET-04: allowed only since a declared change that is young enough to be undone."""
    first = min(offsets)
    earlier = [each.policy_offset for each in state.policy if each.policy_offset < first]
    if first < 0:
        return
    sort = LOCAL if removal.where == "local" and authority.deployment(state) == "ours" else TOTAL
    before = authority.authorised_before(state, sort, max(earlier, default=-1))
    piece = _as_piece(removal)
    if before is None or piece.max_timestamp_ms is None:
        return
    by_time = before.expires(piece.max_timestamp_ms, removal.at_ms + terms.clock_tolerance_ms)
    by_size = piece.bytes_at_most is not None and before.exceeds(piece.bytes_at_most, piece.size_bytes)
    if by_time or by_size:
        return
    found = opened(
        state,
        "RET-04",
        subject="topic",
        anchor=str(first),
        severity="W",
        ranges=span(removal.base, removal.end),
        interval=(removal.not_before_ms, removal.at_ms),
        note=f"the policy's change at {first} lets go of what was kept before it",
        at_ms=removal.due_ms,
    )
    if found is not None:
        found.opened_ms = min(found.opened_ms, removal.due_ms)


def _uploaded(state: LogState, removal: Removal, terms: Terms) -> None:
    """SEG-09: it went from the disk, is in no finished copy, and is no justified loss of the log itself."""
    mode = authority.deployment(state)
    if mode == "none" or _went_with_the_topic(state, removal.at_ms, terms):
        return
    if mode == "kip405" and (state.start or 0) >= removal.end:
        return
    from_ms = removal.not_before_ms - terms.clock_tolerance_ms
    to_ms = removal.at_ms + terms.clock_tolerance_ms
    whole = span(removal.base, removal.end)
    offsets, is_unknown = _by_retention(state, _as_piece(removal), TOTAL, from_ms, to_ms)
    if offsets or is_unknown:
        return
    held = join(removal.covered, coverage.tiered(state))
    allowed = authority.permitted(state, from_ms, to_ms, removal.end, terms)
    for start, end in cut(whole, join(held, allowed)):
        opened(
            state,
            "SEG-09",
            subject="log",
            anchor=str(start),
            severity="C",
            ranges=span(start, end),
            interval=(removal.not_before_ms, removal.at_ms),
            note=f"broker {removal.broker_id} dropped it before a finished copy covered it",
            at_ms=removal.due_ms,
        )


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


# --- deviations of effective from declared retention (RET-03)


def track_deviations(
    state: LogState, terms: Terms, *, at_ms: int, anchor: str, changed_key: str | None
) -> None:
    """After a change of a setting (`changed_key`) or of the policy (None)."""
    mode = authority.deployment(state)
    for key in RETENTION_KEYS:
        if key.startswith("local.") and mode != "kip405":
            continue
        alive = next(
            (each for each in state.deviations if each.key == key and each.reverted_ms is None), None
        )
        now = authority.effective_now(state, key)
        keeps = authority.authorised_now(state, _sort_of(key, mode))
        if now is None or keeps is None or now == SAME_AS_TOTAL:
            continue
        limit = keeps.ms if key.endswith(".ms") else keeps.bytes
        if changed_key == key and alive is not None:
            alive.changes += 1
        if authority.keeps_less(now, limit):
            _deviates(state, alive, key, anchor, at_ms, now)
        elif alive is not None:
            _agrees_again(state, alive, at_ms, is_declared=changed_key is None)


def _deviates(state: LogState, alive: Deviation | None, key: str, anchor: str, at_ms: int, now: int) -> None:
    if alive is not None:
        alive.least = now if authority.keeps_less(now, alive.least) else alive.least
        return
    grace_ms = authority.policy_now(state).declare_grace_ms
    state.deviations.append(
        Deviation(
            key=key,
            anchor=f"{key}@{anchor}",
            since_ms=at_ms,
            due_ms=at_ms + grace_ms,
            least=now,
            changes=1,
        )
    )


def _agrees_again(state: LogState, alive: Deviation, at_ms: int, *, is_declared: bool) -> None:
    if not is_declared:
        alive.reverted_ms = at_ms
    else:
        state.deviations.remove(alive)
    known = state.findings.get(f"RET-03|topic|{alive.anchor}")
    if known is not None and known.closed_ms is None:
        _note(known, alive)
        if is_declared and at_ms <= alive.due_ms:
            close(known, at_ms, "withdrawn")
        else:
            known.cleared_ms = at_ms


def _sort_of(key: str, mode: str) -> str:
    return LOCAL if mode == "ours" or key.startswith("local.") else TOTAL


def _deviations(state: LogState, terms: Terms, now_ms: int) -> None:
    mode = authority.deployment(state)
    for each in list(state.deviations):
        is_due = now_ms >= each.due_ms and not is_blocked(state, None, each.since_ms, each.due_ms)
        if each.is_open or not is_due:
            continue
        allowed = authority.declared_within(state, _sort_of(each.key, mode), each.since_ms, each.due_ms)
        limits = [keeps.ms if each.key.endswith(".ms") else keeps.bytes for keeps in allowed]
        if any(not authority.keeps_less(each.least, limit) for limit in limits):
            state.deviations.remove(each)
            continue
        each.is_open = True
        found = opened(
            state,
            "RET-03",
            subject="topic",
            anchor=each.anchor,
            severity="E",
            ranges=NONE,
            interval=(each.since_ms, each.since_ms),
            note="",
            at_ms=each.due_ms,
        )
        if found is not None:
            found.cleared_ms = each.reverted_ms
            _note(found, each)


def _note(found: Found, each: Deviation) -> None:
    reverted = ", reverted" if each.reverted_ms is not None else ""
    found.note = f"{each.key} was {each.least}, less than was declared; changes={each.changes}{reverted}"


def _worsen(state: LogState) -> None:
    """RET-03 is C once it deletes."""
    for each in state.deviations:
        known = state.findings.get(f"RET-03|topic|{each.anchor}")
        if known is None:
            continue
        _note(known, each)
        if any(
            found.rule_id in ("RET-01", "RET-02") and found.happened[1] >= each.since_ms
            for found in state.findings.values()
        ):
            known.severity = worse(known.severity, "C")
