"""One segment that went, from the tier or from the head of the leader's disk: what of it is found.

RET-01, RET-02, RET-04, DEL-01 and SEG-09. What no cause explains is charged to what effective settings do, in
this order: time, size, the start, nothing (RULES, "Reasons are inferred"). What else justifies it, the tier
and the log's start, is taken as it was when the removal settled: a start that is justified later justifies no
removal before it.

Owns these decisions. Invariant: a removal is decided once; only a declaration or a permit that is heard later
withdraws what was found.
"""

from __future__ import annotations

from rules.machine import authority, coverage
from rules.machine.authority import LOCAL, TOTAL, UNLIMITED
from rules.machine.findings import close, opened
from rules.machine.justified import (
    as_piece,
    by_retention,
    is_blocked,
    unexplained,
    waits,
    went_with_the_topic,
)
from rules.machine.spans import NONE, Spans, covers, cut, join, meet, span
from rules.machine.state import LogState, Removal
from rules.machine.terms import HOUR_MS, Terms


def reconsider(state: LogState, terms: Terms, now_ms: int) -> None:
    """After a declaration or a permit."""
    for removal in [each for each in state.removals if each.is_unjustified]:
        cause, offsets, _ = _why(state, removal, terms)
        happened = (removal.not_before_ms, removal.at_ms)
        if cause is not None:
            _withdraw(state, ("RET-01", "RET-02", "DEL-01"), removal.base, happened, now_ms)
        if cause == "retention":
            _shrunk(state, removal, offsets, terms)
            _counts(state, removal, 0)
        if not _not_uploaded(state, removal, terms):
            _withdraw(state, ("SEG-09",), removal.base, happened, now_ms)
            removal.is_unjustified = cause is None


def _withdraw(
    state: LogState, rule_ids: tuple[str, ...], base: int, happened: tuple[int, int], now_ms: int
) -> None:
    for rule_id in rule_ids:
        known = state.findings.get(f"{rule_id}|log|{base}")
        if known is not None and known.happened == happened:
            close(known, now_ms, "withdrawn")


def decide(state: LogState, removal: Removal, terms: Terms, now_ms: int) -> None:
    if now_ms < removal.due_ms:
        return
    _settle(state, removal)
    _lets_starts_pass(state, removal, terms)
    if not removal.was_led:
        removal.is_decided = True
        return
    if is_blocked(state, None, removal.not_before_ms, removal.at_ms + terms.settle_ms):
        return
    whole = span(removal.base, removal.end)
    if any(each.uncovered is None and meet(span(each.start, each.end), whole) for each in state.rises):
        return
    cause, offsets, is_unknown = _why(state, removal, terms)
    if cause is None and not is_unknown and waits(state, removal, terms) > now_ms:
        return
    removal.is_decided = True
    if cause is None and is_unknown:
        unexplained(state, removal.not_before_ms, removal.at_ms, whole)
    elif cause is None:
        removal.is_unjustified = True
        _charge(state, removal, terms)
    if cause == "retention":
        _shrunk(state, removal, offsets, terms)
    elif cause == "request" or removal.is_unjustified:
        _counts(state, removal, 1)
    if removal.where == "local":
        _uploaded(state, removal, terms)


def _counts(state: LogState, removal: Removal, segments: int) -> None:
    """OPS-02: one of its hour, or none of it."""
    hour = removal.at_ms // HOUR_MS
    left = state.blast.get(hour, 0) + segments - removal.is_counted
    removal.is_counted = segments > 0
    state.blast.pop(hour, None)
    if left > 0:
        state.blast[hour] = left


def _lets_starts_pass(state: LogState, removal: Removal, terms: Terms) -> None:
    """A loss of the log that is justified by itself: when a start passes it, it asks for no other cause."""
    from_ms = removal.not_before_ms - terms.clock_tolerance_ms
    to_ms = removal.at_ms + terms.clock_tolerance_ms
    whole = span(removal.base, removal.end)
    newest_ms = removal.max_timestamp_ms
    # What has expired stays so; what a size let go then, it need not let go now.
    has_expired = newest_ms is not None and newest_ms >= 0
    has_expired = has_expired and any(
        keeps.expires(newest_ms or 0, to_ms)
        for _, keeps in authority.authorised(state, TOTAL, from_ms, to_ms)
    )
    if not has_expired and not covers(authority.permitted(state, from_ms, to_ms, removal.end, terms), whole):
        return
    replica = state.replicas.get(removal.broker_id)
    if state.is_kip405:
        state.went = join(state.went, whole)
    elif removal.where == "local" and replica is not None:
        replica.passed = join(replica.passed, whole)


def _settle(state: LogState, removal: Removal) -> None:
    """As things were when whoever watches had looked again: of what comes later nothing counts."""
    if removal.start_then is None:
        removal.start_then = state.start or 0
        by_others = coverage.tiered(state, [removal.segment_id])
        removal.covered = join(removal.covered, meet(by_others, span(removal.base, removal.end)))


def _why(state: LogState, removal: Removal, terms: Terms) -> tuple[str | None, list[int], bool]:
    """The first cause that holds, the policies under which it does, and whether it cannot be told."""
    from_ms = removal.not_before_ms - terms.clock_tolerance_ms
    to_ms = removal.at_ms + terms.clock_tolerance_ms
    whole = span(removal.base, removal.end)
    mode = authority.deployment(state)
    is_local = removal.where == "local"
    if went_with_the_topic(state, removal.at_ms, terms):
        return "topic", [], False
    sort = LOCAL if is_local and mode == "ours" else TOTAL
    if covers(removal.covered, whole):
        return ("tier" if is_local else "superseded"), [], False
    offsets, is_unknown = by_retention(state, as_piece(removal), sort, from_ms, to_ms)
    if offsets:
        return "retention", offsets, False
    if covers(authority.permitted(state, from_ms, to_ms, removal.end, terms), whole):
        return "request", [], False
    is_below = (removal.start_then or 0) >= removal.end and not meet(_start_in_doubt(state), whole)
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
        counted = _counted(state, removal, terms)
        if newest_ms is not None and any(e != UNLIMITED and to_ms - newest_ms >= e for e in times):
            rule_id, why = "RET-01", f"effective retention.ms was {authority.least(times)}"
        elif counted is not None and any(e != UNLIMITED and counted >= e for e in sizes):
            rule_id = "RET-02"
            removal.bytes_counted = counted  # what went on from here goes by it, too
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


def _counted(state: LogState, removal: Removal, terms: Terms) -> int | None:
    """KIP-405 counts once and then goes on to delete, the start, the tier, its disk: what it counted is what
    there was before any of it was seen to go, whichever of them was told first."""
    counts = [removal.bytes_counted]
    if state.is_kip405:
        around = (removal.at_ms - terms.settle_ms, removal.at_ms + terms.settle_ms)
        over = [each for each in state.rises if each.start < removal.end and each.end > removal.base]
        counts += [each.bytes_counted for each in over if around[0] <= each.at_ms <= around[1]]
        counts += [each.bytes_counted for each in state.removals if around[0] <= each.at_ms <= around[1]]
    return max((each for each in counts if each is not None), default=None)


def _shrunk(state: LogState, removal: Removal, offsets: list[int], terms: Terms) -> None:
    """RET-04: allowed only since a declared change that is young enough to be undone."""
    first = min(offsets)
    earlier = [each.policy_offset for each in state.policy if each.policy_offset < first]
    if first < 0:
        return
    sort = LOCAL if removal.where == "local" and authority.deployment(state) == "ours" else TOTAL
    before = authority.authorised_before(state, sort, max(earlier, default=-1))
    piece = as_piece(removal)
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
    for start, end in _not_uploaded(state, removal, terms):
        removal.is_unjustified = True
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


def _not_uploaded(state: LogState, removal: Removal, terms: Terms) -> Spans:
    """SEG-09: it went from the disk, is in no finished copy, and is no justified loss of the log itself."""
    mode = authority.deployment(state)
    is_below = mode == "kip405" and (removal.start_then or 0) >= removal.end
    if removal.where != "local" or mode == "none" or is_below:
        return NONE
    if went_with_the_topic(state, removal.at_ms, terms):
        return NONE
    from_ms = removal.not_before_ms - terms.clock_tolerance_ms
    to_ms = removal.at_ms + terms.clock_tolerance_ms
    offsets, is_unknown = by_retention(state, as_piece(removal), TOTAL, from_ms, to_ms)
    if offsets or is_unknown:
        return NONE
    allowed = authority.permitted(state, from_ms, to_ms, removal.end, terms)
    return cut(span(removal.base, removal.end), join(removal.covered, allowed))


def _start_in_doubt(state: LogState) -> Spans:
    return join(
        NONE,
        *(span(each.start, each.end) if each.uncovered is None else each.uncovered for each in state.rises),
    )
