"""Readings that change nothing but numbers: nearly all that is said of a log, taken without a look at rules.

A log is at rest where nothing waits to be decided, and time alone brings nothing about before a known moment.
Of such a log, a replica's next reading in line, of the life and with the start that are known, by which the
leader's watermark does not fall, moves clocks and marks; every condition that held, holds; none comes to be.

    Rest       until when, and for which epochs, that is so
    rest_of    whether a state is at rest, after a step
    passed     takes one event, if it is such a reading

Owns these conditions, and no rule. Invariant: a fold with them and one without come to the same state, byte
for byte (`tests/rules/machine/test_quiet.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rules.events import HighWatermark, Source
from rules.machine import authority, obligations
from rules.machine.conditions import NEVER_MS, Condition
from rules.machine.findings import is_open
from rules.machine.state import FINDINGS_MAX, LogState
from rules.machine.terms import DAY_MS, HOUR_MS, Terms
from rules.machine.told import Reading, Told


@dataclass(frozen=True, slots=True)
class Rest:
    """Before `until_ms`; of `least_epoch` and later ones."""

    until_ms: int
    least_epoch: int


def rest_of(state: LogState, terms: Terms, holding: Mapping[str, Condition]) -> Rest | None:
    """`holding`: what was found to hold of this very state. None where another look is needed."""
    if not _is_settled(state) or not _lies_below_watermark(state):
        return None
    terms = authority.terms_here(state, terms)
    now_ms = state.clock_ms
    until_ms = min(
        (*_turns(state, terms, holding, now_ms), *_forgotten(state, terms), *_cast_off(state, terms)),
        default=NEVER_MS,
    )
    if until_ms <= now_ms:
        return None
    return Rest(until_ms, max(state.epoch_starts, default=-1))


def passed(state: LogState, told: Told | Reading, rest: Rest) -> bool:
    """Whether it was such a reading; then the state has it."""
    reading = told if isinstance(told, Reading) else _reading_of(told, state)
    if reading is None:
        return False
    now_ms = max(state.clock_ms, reading.observed_at_ms)
    name = str(reading.speaker)
    heard = state.heard.get(name)
    replica = state.replicas.get(reading.broker_id)
    if now_ms >= rest.until_ms or heard is None or heard[-1][1] != reading.log_seq or replica is None:
        return False
    size_bytes = reading.size_bytes
    is_its = (
        reading.log_start == replica.start
        and reading.replica_incarnation == replica.incarnation
        and reading.directory_id == replica.directory_id
        and (size_bytes is None or size_bytes > 0)
    )
    epoch = reading.leader_epoch if reading.leader_epoch >= 0 else state.leader_epoch
    highest = state.watermarks.get(epoch)
    mark, published = reading.high_watermark, state.watermark
    if not is_its or highest is None or epoch < rest.least_epoch or published is None:
        return False
    if reading.broker_id == state.leader_id:
        if mark < published:
            return False
        replica.low_since_ms = None
    state.heard[name] = (*heard[:-1], (heard[-1][0], reading.log_seq + 1))
    replica.start_read_ms = max(replica.start_read_ms, reading.occurred_at_ms)
    replica.watermark, replica.log_end = mark, reading.log_end
    if size_bytes is not None:
        replica.disk_bytes = size_bytes
    if mark > highest:
        state.watermarks[epoch] = mark
    if mark > published:
        state.watermark = mark
    state.clock_ms = now_ms
    place = (reading.observed_at_ms, reading.speaker, reading.seq)
    if state.position is None or place > state.position:
        state.position = place
    state.events += 1
    return True


def _reading_of(told: Told, state: LogState) -> Reading | None:
    """Of this log; None of what is none, or was not read off a disk that is known."""
    event = told.event
    if type(event) is not HighWatermark or event.source is not Source.LOG_DIR or event.log != state.log:
        return None
    directory_id, incarnation = event.directory_id, event.replica_incarnation
    if told.log_seq is None or directory_id is None or incarnation is None:
        return None
    return Reading(
        speaker=told.speaker,
        seq=told.seq,
        log_seq=told.log_seq,
        observed_at_ms=told.observed_at_ms,
        occurred_at_ms=event.occurred_at_ms,
        leader_epoch=event.leader_epoch,
        broker_id=event.broker_id,
        directory_id=directory_id,
        replica_incarnation=incarnation,
        log_start=event.log_start,
        high_watermark=event.high_watermark,
        log_end=event.log_end,
        size_bytes=event.size_bytes,
        whole=lambda: told,
    )


def _is_settled(state: LogState) -> bool:
    """Nothing waits for a cause, and no reading can be the one that it waits for."""
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    is_led = leader is not None and leader.start is not None and state.start is not None
    return not (
        obligations.is_waiting(state)
        or not is_led
        or state.is_gone
        or state.born_ms is None
        or state.first_ms is None
        or state.above
        or len(state.findings) >= FINDINGS_MAX
        or any(each.released_at is not None for each in state.holds.values())
        or any(replica.is_dark for replica in state.replicas.values())
        or any(
            each.at_ms >= state.clock_ms or each.not_before_ms > state.clock_ms
            for timeline in state.config.values()
            for each in timeline
        )
    )


def _lies_below_watermark(state: LogState) -> bool:
    """All starts and holes do, so that whatever it rises by is on the leader's disk; and no epoch began below
    what was committed before it."""
    mark = state.watermark
    leader = state.replicas[state.leader_id] if state.leader_id is not None else None
    if mark is None or leader is None or leader.local_start is None or leader.local_start > mark:
        return False
    if leader.holes and leader.holes[-1][1] > mark:
        return False
    if any(replica.start is not None and replica.start > mark for replica in state.replicas.values()):
        return False
    if state.start is None or leader.start is None or leader.start > state.start:
        return False
    return not any(
        start < old_mark
        for epoch, start in state.epoch_starts.items()
        for old, old_mark in state.watermarks.items()
        if old < epoch
    )


def _turns(state: LogState, terms: Terms, holding: Mapping[str, Condition], now_ms: int) -> Iterator[int]:
    """When what holds begins to, or is due."""
    for key, each in holding.items():
        since_ms = state.pending[key].since_ms
        for at_ms in (since_ms, since_ms + terms.grace_of(each.rule_id, each.grace_ms)):
            if at_ms > now_ms:
                yield at_ms


def _forgotten(state: LogState, terms: Terms) -> Iterator[int]:
    """When something falls behind the horizon (`rules.machine.fold`): what was found, and what allowed it."""
    gone_ms = terms.lateness_ms + 1
    for found in state.findings.values():
        if not is_open(found):
            yield max(found.cleared_ms or 0, found.closed_ms or 0) + gone_ms
    for gap in state.gaps:
        if gap.closed_ms is not None:
            yield gap.closed_ms + gone_ms
    for permit in state.permits:
        yield permit.to_ms + gone_ms
    for timeline in state.config.values():
        if len(timeline) > 1:
            yield timeline[1].at_ms + gone_ms
    for declared in state.policy:
        yield declared.at_ms + gone_ms


def _cast_off(state: LogState, terms: Terms) -> Iterator[int]:
    """The same of what came to pass."""
    gone_ms, decided_ms = terms.lateness_ms + 1, 2 * terms.retention_ms + 1
    for removal in state.removals:
        yield removal.at_ms + (gone_ms if removal.is_unjustified else decided_ms)
    for at_ms, _, _ in state.restores:
        yield at_ms + gone_ms
    for starts in (*state.unclean_starts.values(), *state.broker_starts.values()):
        for _, at_ms in starts:
            yield at_ms + gone_ms
    for rise in state.empty_rises:
        yield rise.at_ms + gone_ms
    for hour in state.blast:
        yield (hour + 1) * HOUR_MS + gone_ms
    for copy in state.tier.values():
        if copy.state == "DELETE_FINISHED":
            yield copy.changed_ms + decided_ms
    window_ms = authority.policy_now(state).backup_window_days * DAY_MS + 1
    for buried in state.buried.values():
        yield buried.at_ms + max(gone_ms, window_ms)
