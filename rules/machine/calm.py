"""Whether a log is so much at rest that its next day can be excused without a fold, and by which numbers.

A calm log has no finding, no gap, nothing that waits for its cause, no condition that holds but those that
every healthy log waits with (RET-05, until its head goes; AUD-05, until its copies are read again). Then:

    time alone      changes nothing that is said of it before `until_ms`
    readings        of a known life, that leave its start where it is, and of the leader's watermark that does
                    not fall below what was published, change the highest watermark and nothing else
    closed segments that are whole and of a sane time add to what is there; one may be the head, whose time is
                    over `keep_ms` after its newest record

Whatever else is said of the log asks for the machine. `audit_engine.run.screen` looks for exactly this.

Owns these conditions. Changes nothing. Invariant: with these numbers equal and nothing else said, the machine
finds nothing, and misses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.machine import authority
from rules.machine.authority import TOTAL, UNLIMITED
from rules.machine.conditions import NEVER_MS, holds
from rules.machine.spans import NONE
from rules.machine.state import LogState, Replica
from rules.machine.terms import Terms

_STAYS_MISSING = frozenset({"cause_unknown", "coalesced", "unread_kind", "too_many"})
# What every healthy log waits with: its head for its end, its copies for the next look at them.
WAITED_WITH = frozenset({"RET-05", "AUD-05"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One replica as it stands: readings must agree with it."""

    broker_id: int
    directory_id: str
    incarnation: int
    start: int
    local_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardTo:
    """All that this run of an emitter said of the log is known below `next_seq`."""

    broker_id: int
    component: str
    incarnation: int
    next_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calm:
    """`keep_ms`: after its newest record, how long a head may lie there; None: for ever. `until_ms`: before
    it nothing that is said of the log changes by time alone."""

    until_ms: int
    keep_ms: int | None
    position_ms: int
    events: int
    leader_id: int
    leader_epoch: int
    watermark: int
    brokers: tuple[int, ...]
    lives: tuple[Life, ...]
    heard: tuple[HeardTo, ...]


def calm_of(state: LogState, terms: Terms) -> Calm | None:
    """None where anything may come of the state by itself, or is not known."""
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    if leader is None or state.watermark is None or state.start is None or state.position is None:
        return None
    lives = [_life(each, state.watermark) for _, each in sorted(state.replicas.items())]
    heard = _heard(state)
    until_ms = _until(state, authority.terms_here(state, terms))
    is_at_rest = not _waits(state) and not _lacks(state) and (leader.start or 0) <= state.start
    if not is_at_rest or until_ms is None or heard is None:
        return None
    return Calm(
        until_ms=until_ms,
        keep_ms=_kept_ms(state, authority.terms_here(state, terms)),
        position_ms=state.position[0],
        events=state.events,
        leader_id=leader.broker_id,
        leader_epoch=state.leader_epoch,
        watermark=state.watermark,
        brokers=tuple(sorted({*state.replicas, *(state.assigned or ())})),
        lives=tuple(each for each in lives if each is not None),
        heard=heard,
    )


def _waits(state: LogState) -> bool:
    """For a cause, for a declaration, for the end of a grace; or is to be told of in every run."""
    return bool(
        state.findings
        or state.findings_left_out
        or state.rises
        or state.fallbacks
        or state.above
        or state.deviations
        or state.blast
        or state.is_gone
        or state.deleted_ms
        or state.topic_deletion_due_ms is not None
        or any(not each.is_decided or each.is_unjustified for each in state.removals)
        or any(each.sort == "request" for each in state.permits)
        or any(key.partition("|")[0] not in WAITED_WITH for key in state.pending)
    )


def _lacks(state: LogState) -> bool:
    """Evidence, or what the verdict needs: it would be no PASS."""
    return bool(
        state.born_ms is None
        or state.leader_epoch < 0
        or max(state.epoch_starts, default=-1) > state.leader_epoch
        or any(each.closed_ms is None or each.sort in _STAYS_MISSING for each in state.gaps)
        or any(_life(each, state.watermark or 0) is None for each in state.replicas.values())
        or authority.authorised_now(state, TOTAL) is None
    )


def _life(replica: Replica, watermark: int) -> Life | None:
    """None for one of which anything is open, or not known."""
    start, local_start = replica.start, replica.local_start
    if start is None or local_start is None or replica.incarnation is None or replica.directory_id is None:
        return None
    is_open = replica.is_dark or replica.advances or replica.low_since_ms is not None
    if is_open or replica.holes != NONE or replica.doubt != NONE or start > watermark:
        return None
    return Life(
        broker_id=replica.broker_id,
        directory_id=replica.directory_id,
        incarnation=replica.incarnation,
        start=start,
        local_start=local_start,
    )


def _heard(state: LogState) -> tuple[HeardTo, ...] | None:
    """None where numbers are missing."""
    found = []
    for name, numbers in sorted(state.heard.items()):
        broker_id, component, incarnation = name.split("/")
        if len(numbers) != 1 or numbers[0][0] != 0:
            return None
        found.append(
            HeardTo(
                broker_id=int(broker_id),
                component=component,
                incarnation=int(incarnation),
                next_seq=numbers[0][1],
            )
        )
    return tuple(found)


def _until(state: LogState, terms: Terms) -> int | None:
    """When the first condition that holds would be found; None where one is not WAITED_WITH."""
    until_ms = NEVER_MS
    for each in holds(state, terms):
        if each.rule_id not in WAITED_WITH or each.since_ms is None:
            return None
        until_ms = min(until_ms, each.since_ms + each.grace_ms)
    return until_ms


def _kept_ms(state: LogState, terms: Terms) -> int | None:
    """At the least, of any segment that becomes the head: RET-05's limit without what lengthens it."""
    keeps = authority.authorised_now(state, TOTAL)
    effective = authority.effective_now(state, "retention.ms")
    known = [each for each in (None if keeps is None else keeps.ms, effective) if each is not None]
    limits = [each for each in known if each != UNLIMITED]
    return min(limits) if limits else None
