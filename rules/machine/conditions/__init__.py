"""The rules about a state of things, looked at anew after every event: which of them are violated now.

Each condition has a key that stays the same while it lasts, a time since which it holds, and the grace of its
rule. `watch` remembers what holds, opens a finding when the grace is over, and clears it when the condition
is evaluated and false. What the mere passing of time brings about (an expired head, a copy that does not end)
says since when by its own arithmetic: it does not matter when anybody looks.

    condition    one of them, violated now
    starts       where replicas' starts lie
    holes        what can be read nowhere
    ages         what has expired, or never can
    copies       what the tier holds
    differences  what brokers should say alike

Owns when a predicate becomes a finding, and when it ends. Invariant: whether a finding is opened, and as of
when, depends on the events alone, and never on when a run was cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from rules.machine.conditions import ages, copies, differences, holes, starts
from rules.machine.conditions.condition import NEVER_MS, Condition
from rules.machine.findings import opened
from rules.machine.spans import join
from rules.machine.state import Found, LogState, Pending
from rules.machine.terms import Terms

__all__ = ["NEVER_MS", "Condition", "Holding", "holds", "watch"]

Holding: TypeAlias = Mapping[str, Condition]


def watch(state: LogState, terms: Terms, now_ms: int, known: Holding | None = None) -> Holding:
    """What holds now, against what held before. `known`: what is found to hold, of a state that is as it was:
    what holds is a function of the state, and time alone only makes it due."""
    holding = {each.key: each for each in holds(state, terms)} if known is None else known
    turns = {key: _turn_ms(state, each, now_ms) for key, each in holding.items() if each.is_in_turn}
    for key in [key for key in state.pending if key not in holding]:
        del state.pending[key]
        if key in state.findings:
            _clear(state.findings[key], now_ms)
    for key, each in holding.items():
        pending = state.pending.get(key)
        if pending is None:
            since_ms = max(now_ms, each.not_before_ms)
            pending = Pending(since_ms=since_ms, severity=each.severity, ranges=each.ranges, note=each.note)
            state.pending[key] = pending
        if each.since_ms is not None:
            pending.since_ms = max(each.since_ms, turns.get(key, each.since_ms))
        pending.severity, pending.ranges, pending.note = each.severity, each.ranges, each.note
        due_ms = pending.since_ms + terms.grace_of(each.rule_id, each.grace_ms)
        if due_ms <= now_ms and not _is_doubtful(state, key):
            _open(state, each, pending, due_ms)
        elif pending.since_ms > now_ms and key in state.findings:
            _clear(state.findings[key], now_ms)  # it was so, and is only to come again
    return holding


def _turn_ms(state: LogState, each: Condition, now_ms: int) -> int:
    """Since when it, or what lay before it, has held without a break."""
    place = f"{each.rule_id}|{each.subject}|"
    waited = (
        pending.since_ms
        for key, pending in state.pending.items()
        if key.startswith(place) and int(key.removeprefix(place)) <= int(each.anchor)
    )
    return min([now_ms, *waited])


def _clear(found: Found, now_ms: int) -> None:
    if found.cleared_ms is None:
        found.cleared_ms = now_ms


def _is_doubtful(state: LogState, key: str) -> bool:
    """While evidence is missing, what is lost may be the very event that ended it: nothing new is said."""
    is_missing = any(each.closed_ms is None for each in state.gaps)
    return is_missing and key not in state.findings


def _open(state: LogState, each: Condition, pending: Pending, due_ms: int) -> None:
    since_ms = pending.since_ms
    found = opened(
        state,
        each.rule_id,
        subject=each.subject,
        anchor=each.anchor,
        severity=each.severity,
        ranges=each.ranges,
        interval=(since_ms, since_ms),
        note=each.note,
        at_ms=due_ms,
    )
    if found is not None:
        found.ranges = join(found.ranges, each.ranges) if each.grows else each.ranges
        if found.closed_by == "withdrawn":  # and now it is so again
            found.closed_ms, found.closed_by = None, ""


def holds(state: LogState, terms: Terms) -> Iterator[Condition]:
    if state.is_gone:
        return
    yield from starts.of_replicas(state, terms)
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    if leader is not None and leader.start is not None and not leader.is_dark:
        yield from holes.of_leader(state, leader, terms)
    yield from ages.lying_ahead(state, leader)
    yield from ages.expired(state, leader, terms)
    yield from copies.in_the_tier(state, terms)
    yield from copies.unread(state)
    yield from differences.of_tables(state)
    yield from differences.of_defaults(state, terms)
