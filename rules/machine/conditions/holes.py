"""SEG-02 and START-06: from the log's start to its watermark, what its leader can read nowhere.

Owns these predicates.
"""

from __future__ import annotations

from collections.abc import Iterator

from rules.machine import authority, coverage
from rules.machine.conditions.condition import Condition
from rules.machine.spans import Spans, count, cut, join, span
from rules.machine.state import LogState, Replica
from rules.machine.terms import Terms


def of_leader(state: LogState, leader: Replica, terms: Terms) -> Iterator[Condition]:
    """SEG-02 and START-06: from the log's start to its watermark, in the leader's view."""
    if state.watermark is None or leader.local_start is None:
        return
    mode = authority.deployment(state)
    start = leader.start or 0
    if mode == "ours":
        start = min([start, *(each.base for each in coverage.finished(state))])
    there = join(coverage.readable(state, leader, has_tier=mode != "none"), state.accepted)
    # A tier is told of little by little when a log is seen for the first time.
    not_before_ms = (state.born_ms or 0) + terms.retention_ms
    for hole in cut(span(start, state.watermark), there):
        is_head = hole[0] == start and mode != "ours"
        yield Condition(
            rule_id="START-06" if is_head else "SEG-02",
            subject="log",
            anchor=str(hole[0]),
            severity="C",
            grace_ms=terms.settle_ms,
            ranges=(hole,),
            not_before_ms=not_before_ms,
            note=_where_else(state, (hole,), leader),
        )


def _where_else(state: LogState, hole: Spans, leader: Replica) -> str:
    tier, brokers = coverage.recoverable(state, hole)
    told = f"broker {leader.broker_id}, which leads, can read it nowhere; in the tier {count(tier)} offsets"
    return told + (f", on brokers {', '.join(map(str, brokers))}" if brokers else ", on no other disk")
