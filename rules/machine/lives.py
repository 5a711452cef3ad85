"""A replica's lives: where each begins, which of them an event is about, and where its start moves.

Owns how a start is kept, and what each move of it is to be asked for (`obligations` asks).

Invariant: nothing of one life is compared with another's; a life's first start is where it begins.
"""

from __future__ import annotations

from rules.events import ReplicaEvent, Source
from rules.machine import coverage
from rules.machine.spans import NONE, cut, join, span
from rules.machine.state import Advance, Fallback, LogState, Replica
from rules.machine.terms import Terms


def life(state: LogState, event: ReplicaEvent) -> Replica | None:
    """The life that an event is about; None for one that is over. A beginning that was missed begins here."""
    known = state.replicas.get(event.broker_id)
    if known is None:
        return begin(state, event, None, True)
    if event.replica_incarnation is None or known.incarnation is None or is_life_of(known, event):
        return known
    return None if is_older(event, known) else begin(state, event, None, True)


def is_life_of(known: Replica, event: ReplicaEvent) -> bool:
    return (known.directory_id, known.incarnation) == (event.directory_id, event.replica_incarnation)


def is_older(event: ReplicaEvent, known: Replica) -> bool:
    if event.replica_incarnation is None or known.incarnation is None:
        return False
    return event.replica_incarnation < known.incarnation


def begin(state: LogState, event: ReplicaEvent, start: int | None, is_first_sight: bool) -> Replica:
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


def since(event: ReplicaEvent) -> int:
    return event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms


def seen_in_sync(state: LogState, at_ms: int) -> None:
    """After a word about leaders or in-sync replicas: whoever is among them is judged from here on."""
    state.leadership_ms = max(state.leadership_ms, at_ms)
    for broker_id, replica in state.replicas.items():
        is_among = state.in_sync is None or broker_id in state.in_sync or broker_id == state.leader_id
        if is_among and at_ms > replica.began_ms:
            replica.has_been_in_sync = True


def read_start(state: LogState, replica: Replica, event: ReplicaEvent, start: int, terms: Terms) -> None:
    """A reading beside others: equal as a rule; where it is not, a move was missed."""
    at_ms = event.occurred_at_ms
    if replica.start is None:
        replica.start = start
        replica.start_since_ms = replica.start_read_ms = at_ms
    elif start == replica.start:
        replica.start_read_ms = max(replica.start_read_ms, at_ms)
    else:
        moved(state, replica, event, replica.start, start, terms)


def moved(state: LogState, replica: Replica, event: ReplicaEvent, old: int, new: int, terms: Terms) -> None:
    at_ms = event.occurred_at_ms
    since_ms = min(since(event), at_ms)
    if new < old and replica.has_been_in_sync:
        state.fallbacks.append(
            Fallback(
                broker_id=replica.broker_id,
                old=old,
                new=new,
                not_before_ms=since_ms,
                at_ms=at_ms,
                due_ms=at_ms + terms.settle_ms,
                moved_ms=replica.start_moved_ms,
            )
        )
    if new < old:
        _fell(replica, new, old)
    elif new > old:
        _advanced(state, replica, event, old, new, since_ms, terms)
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
    state: LogState, replica: Replica, event: ReplicaEvent, old: int, new: int, since_ms: int, terms: Terms
) -> None:
    replica.advances.append(
        Advance(
            start=old,
            end=new,
            not_before_ms=since_ms,
            at_ms=event.occurred_at_ms,
            due_ms=event.occurred_at_ms + terms.settle_ms,
            is_blind=event.source is not Source.LOG_DIR,
            pieces=coverage.pieces(state, replica, old, new),
        )
    )
