"""RET-05 and RET-06: what has expired and is still there, and what can never expire.

Owns these predicates. Invariant: what lies behind the head of a log waits for it, and has its grace after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rules.machine import authority, coverage
from rules.machine.authority import TOTAL, UNLIMITED
from rules.machine.conditions.condition import NEVER_MS, Condition
from rules.machine.spans import span
from rules.machine.state import Copy, LogState, Replica
from rules.machine.terms import DAY_MS, Terms


def lying_ahead(state: LogState, leader: Replica | None) -> Iterator[Condition]:
    if _lies_ahead(state, leader):
        for base, end, newest_ms, told_ms in _segments(state, leader):
            yield from _never_expires(state, base, end, newest_ms, told_ms)


def expired(state: LogState, leader: Replica | None, terms: Terms) -> Iterator[Condition]:
    head = _head(state, leader)
    if head is None or state.was_compacted:
        return
    base, end, newest_ms = head
    limits = [keeps.ms for keeps in [authority.authorised_now(state, TOTAL)] if keeps is not None]
    effective = authority.effective_now(state, "retention.ms")
    mode = authority.deployment(state)
    if effective is not None and mode != "ours":
        limits.append(effective)
    if not limits or UNLIMITED in limits or newest_ms is None or newest_ms < 0:
        return
    grace_ms = terms.retention_ms
    if mode == "ours":
        grace_ms += authority.policy_now(state).delete_grace_ms
    is_held = any(each.released_at is None for each in state.holds.values())
    since_ms = max(newest_ms + max(limits), state.keep_until_ms or 0)
    yield Condition(
        rule_id="RET-05",
        subject="log",
        anchor=str(base),
        severity="W",
        grace_ms=grace_ms,
        ranges=span(base, end),
        since_ms=NEVER_MS if is_held else since_ms,
        is_in_turn=True,
        note="it has expired, and is still there",
    )


def _head(state: LogState, leader: Replica | None) -> tuple[int, int, int | None] | None:
    """The first segment of the log, where it is known: what is behind it waits for it."""
    mode = authority.deployment(state)
    copies = sorted(coverage.finished(state), key=lambda each: (each.base, each.end, each.segment_id))
    if mode == "ours":
        may_go = authority.policy_now(state).remote_deletion
        return _span_of(copies[0]) if copies and may_go else None
    if mode == "kip405" and copies:
        return _span_of(copies[0])
    if leader is None or leader.local_start is None or leader.local_start not in leader.segments:
        return None
    first = leader.segments[leader.local_start]
    return first.base, first.end, first.max_timestamp_ms


def _span_of(copy: Copy) -> tuple[int, int, int | None]:
    return copy.base, copy.end, copy.max_timestamp_ms


def _lies_ahead(state: LogState, leader: Replica | None) -> bool:
    """Whether there is anything to look at: it is asked after each event, of all that lies there."""
    held = leader.segments.values() if leader is not None else ()
    return any(
        each.max_timestamp_ms is not None and each.max_timestamp_ms > each.told_ms + DAY_MS for each in held
    ) or any(
        each.max_timestamp_ms is not None and each.max_timestamp_ms > each.started_ms + DAY_MS
        for each in state.tier.values()
    )


def _segments(state: LogState, leader: Replica | None) -> Iterator[tuple[int, int, int | None, int]]:
    known: dict[int, tuple[int, int, int | None, int]] = {}
    for copy in coverage.finished(state):
        lies = (copy.base, copy.end, copy.max_timestamp_ms, copy.started_ms)
        known[copy.base] = max(known.get(copy.base, lies), lies, key=_ahead)
    if leader is not None:
        for each in leader.segments.values():
            known.setdefault(each.base, (each.base, each.end, each.max_timestamp_ms, each.told_ms))
    yield from (known[base] for base in sorted(known))


def _ahead(lies: tuple[int, int, int | None, int]) -> int:
    """Of several copies that begin at one offset, the one whose newest record is furthest ahead counts."""
    _, _, newest_ms, told_ms = lies
    return -told_ms if newest_ms is None else newest_ms - told_ms


def _never_expires(
    state: LogState, base: int, end: int, newest_ms: int | None, told_ms: int
) -> Iterator[Condition]:
    if newest_ms is None or newest_ms <= told_ms + DAY_MS:
        return
    keeps = authority.authorised_now(state, TOTAL)
    if keeps is None or keeps.ms == UNLIMITED or newest_ms - told_ms <= keeps.ms:
        return
    yield Condition(
        rule_id="RET-06",
        subject="log",
        anchor=str(base),
        severity="W",
        grace_ms=0,
        ranges=span(base, end),
        note=f"a timestamp lies {newest_ms - told_ms} ms ahead: with it, this and all behind it stays",
    )
