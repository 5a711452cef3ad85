"""START-03 and START-04: where replicas' starts lie, beside the watermark and beside their leader's.

Owns these predicates. A replica that has not been in sync yet is still on its way.
"""

from __future__ import annotations

from collections.abc import Iterator

from rules.machine.conditions.condition import Condition
from rules.machine.obligations import in_doubt
from rules.machine.spans import meet, span
from rules.machine.state import LogState, Replica
from rules.machine.terms import Terms


def of_replicas(state: LogState, terms: Terms) -> Iterator[Condition]:
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    for broker_id, replica in sorted(state.replicas.items()):
        if replica.start is None or replica.is_dark:
            continue
        yield from _above_watermark(state, replica, terms)
        if leader is None or leader.start is None or broker_id == state.leader_id:
            continue
        yield from _beside_leader(state, replica, leader, terms)


def _above_watermark(state: LogState, replica: Replica, terms: Terms) -> Iterator[Condition]:
    start = replica.start or 0
    read_for_ms = replica.start_read_ms - replica.start_since_ms
    is_confirmed = read_for_ms >= terms.start_checkpoint_ms
    if state.watermark is not None and start > state.watermark and is_confirmed:
        yield Condition(
            rule_id="START-03",
            subject=f"replica {replica.broker_id}",
            anchor=str(start),
            severity="C",
            grace_ms=0,
            ranges=span(state.watermark, start),
            note=f"broker {replica.broker_id} starts at {start}; {state.watermark} is the highest watermark",
        )


def _beside_leader(state: LogState, replica: Replica, leader: Replica, terms: Terms) -> Iterator[Condition]:
    """START-04, above and below. A replica that has not been in sync yet is still on its way."""
    start, leader_start = replica.start or 0, leader.start or 0
    since_ms = max(replica.start_since_ms, leader.start_since_ms, state.leadership_ms)
    is_in_sync = state.in_sync is None or replica.broker_id in state.in_sync
    if not replica.has_been_in_sync:
        return
    if start > leader_start:
        passed = span(leader_start, start)
        uncovered = passed if state.is_kip405 else meet(passed, in_doubt(replica))
        if uncovered:
            yield Condition(
                rule_id="START-04",
                subject=f"replica {replica.broker_id}",
                anchor="above",
                severity="C" if is_in_sync else "E",
                grace_ms=terms.retention_ms,
                ranges=uncovered,
                grows=True,
                since_ms=since_ms,
                note=f"broker {replica.broker_id} starts at {start}, the leader at {leader_start}",
            )
    elif start < leader_start and is_in_sync:
        yield Condition(
            rule_id="START-04",
            subject=f"replica {replica.broker_id}",
            anchor="below",
            severity="E",
            grace_ms=terms.retention_ms,
            ranges=span(start, leader_start),
            since_ms=since_ms,
            note=f"broker {replica.broker_id} starts at {start}, the leader at {leader_start}",
        )
