"""The machine: one log's events, one after another, each changing what is known and what is found.

    told ──► in_order ──► step: the time that passed, the event, what it changes ──► state, findings

    tick      decides what became due before this moment, so that what an event finds is independent of runs
    apply     the event itself, by its kind
    watch     what holds now

The judge is this and nothing else: the daily run folds a day's events over the state of the day before, an
agent folds its own before it deletes (`gate`), a test folds a history. No clock, no I/O: time is what events
and `as_of_ms` say.

Owns the order of these steps. Invariant: folding a history in one go or in any parts comes to the same state,
byte for byte, as long as no part holds what is older than the one before (`is_late`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rules.events import (
    BrokerStarted,
    ConfigEffective,
    CopyFailed,
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    DirectoryOffline,
    EpochStarted,
    Event,
    EvidenceGap,
    HighWatermark,
    HoldPlaced,
    HoldReleased,
    Inventory,
    IsrChanged,
    LeaderChanged,
    LeadershipClaimed,
    LogBaseline,
    LogEvent,
    LogStartAdvanced,
    LossAccepted,
    OperationAuthorised,
    PolicyDeclared,
    RecordsDeleteRequested,
    ReplicaAdded,
    ReplicaRemoved,
    ReplicaStarted,
    Restored,
    Scrubbed,
    SegmentClosed,
    SegmentDeletedLocal,
    TierSet,
    TierState,
    TopicDeleted,
    TrimCertified,
    Truncated,
)
from rules.machine import (
    accepted,
    authority,
    cluster,
    conditions,
    deviations,
    fabricated,
    made_good,
    objects,
    obligations,
    quiet,
    replicas,
    tier,
)
from rules.machine.codec import copied
from rules.machine.findings import is_open
from rules.machine.spans import join, span
from rules.machine.state import RUNS_KEPT, Found, Gap, LogState, missing
from rules.machine.terms import DAY_MS, HOUR_MS, Terms
from rules.machine.told import Reading, Told, concerns, in_order, told_whole

Handler = Callable[[LogState, Any, Terms], None]

HANDLERS: Mapping[type[Event], Handler] = {
    ReplicaStarted: replicas.replica_started,
    ReplicaRemoved: replicas.replica_removed,
    SegmentClosed: replicas.segment_closed,
    SegmentDeletedLocal: replicas.segment_deleted_local,
    LogStartAdvanced: replicas.log_start_advanced,
    HighWatermark: replicas.high_watermark,
    Truncated: replicas.truncated,
    EpochStarted: replicas.epoch_started,
    LogBaseline: replicas.log_baseline,
    CopyStarted: tier.copy_told,
    CopyFinished: tier.copy_told,
    CopyFailed: tier.copy_failed,
    DeleteStarted: tier.delete_told,
    DeleteFinished: tier.delete_told,
    LeadershipClaimed: tier.leadership_claimed,
    TrimCertified: tier.trim_certified,
    HoldPlaced: tier.hold_placed,
    HoldReleased: tier.hold_released,
    Scrubbed: objects.scrubbed,
    Inventory: objects.inventory,
    LeaderChanged: cluster.leader_changed,
    IsrChanged: cluster.isr_changed,
    ReplicaAdded: cluster.replica_added,
    ConfigEffective: cluster.config_effective,
    BrokerStarted: cluster.broker_started,
    DirectoryOffline: cluster.directory_offline,
    TopicDeleted: cluster.topic_deleted,
    PolicyDeclared: cluster.policy_declared,
    OperationAuthorised: cluster.operation_authorised,
    RecordsDeleteRequested: cluster.records_delete_requested,
    Restored: cluster.restored,
    LossAccepted: accepted.loss_accepted,
}
_WITH_SPEAKER: Mapping[type[Event], Callable[..., None]] = {
    TierState: tier.tier_state,
    TierSet: tier.tier_set,
    EvidenceGap: made_good.evidence_gap,
}
_ALLOWS = (PolicyDeclared, OperationAuthorised, TrimCertified)


def fold(state: LogState, said: Iterable[Told], terms: Terms, *, as_of_ms: int | None = None) -> LogState:
    """Everything that was said, in its order, up to the cut; then the time that passes until it."""
    return fold_line(copied(state), in_order(said), terms, as_of_ms=as_of_ms)


def fold_line(
    state: LogState, line: Iterable[Told | Reading], terms: Terms, *, as_of_ms: int | None
) -> LogState:
    """The same of what comes in order, one after another. It is `state` itself that changes."""
    holding: conditions.Holding | None = None
    rest: quiet.Rest | None = None
    for told in line:
        if as_of_ms is not None and told.observed_at_ms > as_of_ms:
            continue
        if rest is not None and quiet.passed(state, told, rest):
            continue
        holding = _step(state, told_whole(told), terms, holding)
        rest = None if holding is None else quiet.rest_of(state, terms, holding)
    if as_of_ms is not None and as_of_ms > state.clock_ms and state.events:
        _tick(state, authority.terms_here(state, terms), as_of_ms)
        state.clock_ms = as_of_ms
    return state


def step(state: LogState, told: Told, terms: Terms) -> tuple[LogState, list[Found]]:
    """One event: the state after it, and the findings that it opened or changed."""
    made = copied(state)
    _step(made, told, terms)
    return made, [found for key, found in made.findings.items() if state.findings.get(key) != found]


def is_late(state: LogState, told: Told | Reading) -> bool:
    """Whether it belongs before what was folded already: its log is folded again from an earlier state."""
    if _is_heard(state, told):
        return False
    if state.position is not None and _position(told) < state.position:
        return True
    if isinstance(told, Reading):
        return False
    offset = getattr(told.event, "metadata_offset", None)
    return (
        isinstance(told.event, (CopyStarted, CopyFinished, DeleteStarted, DeleteFinished))
        and offset is not None
        and offset < state.tier_offset
    )


def _step(
    state: LogState, told: Told, terms: Terms, holding: conditions.Holding | None = None
) -> conditions.Holding | None:
    """What holds after it; `holding`: what held after the step before."""
    event = told.event
    if event is not None and not concerns(event, state.log, state.topic):
        return holding
    if _is_heard(state, told):
        return holding
    terms = authority.terms_here(state, terms)
    _hear(state, told, terms)
    now_ms = max(state.clock_ms, told.observed_at_ms)
    _tick(state, terms, now_ms, holding)
    state.clock_ms = now_ms
    state.position = max(state.position or _position(told), _position(told))
    state.events += 1
    state.first_ms = now_ms if state.first_ms is None else state.first_ms
    if event is not None:
        _apply(state, event, told, terms, now_ms)
    return conditions.watch(state, terms, now_ms)


def _apply(state: LogState, event: Event, told: Told, terms: Terms, now_ms: int) -> None:
    handler = HANDLERS.get(type(event))
    if handler is not None:
        handler(state, event, terms)
    elif type(event) in _WITH_SPEAKER:
        _WITH_SPEAKER[type(event)](state, event, terms, told.speaker)
    if isinstance(event, (CopyStarted, CopyFinished, DeleteStarted, DeleteFinished)):
        state.tier_offset = max(state.tier_offset, event.metadata_offset)
    since_ms = getattr(event, "not_before_ms", None)
    obligations.follow_start(
        state, event.occurred_at_ms if since_ms is None else since_ms, event.occurred_at_ms, terms
    )
    if isinstance(event, (ConfigEffective, PolicyDeclared)):
        deviations.track(state, event)
    if isinstance(event, _ALLOWS):
        obligations.reconsider(state, terms, now_ms)


def _tick(state: LogState, terms: Terms, now_ms: int, holding: conditions.Holding | None = None) -> None:
    if obligations.is_waiting(state):
        obligations.review(state, terms, now_ms)
        holding = None
    conditions.watch(state, terms, now_ms, holding)
    _forget(state, terms, now_ms)


def _forget(state: LogState, terms: Terms, now_ms: int) -> None:
    """What is behind the horizon, or can justify nothing any more."""
    horizon_ms = now_ms - terms.lateness_ms
    recent_ms = now_ms - 2 * terms.retention_ms
    state.removals = [
        each
        for each in state.removals
        if not each.is_decided or each.at_ms >= (horizon_ms if each.is_unjustified else recent_ms)
    ]
    state.findings = {
        key: found
        for key, found in state.findings.items()
        if max(found.cleared_ms or 0, found.closed_ms or 0) >= horizon_ms or is_open(found)
    }
    state.gaps = [each for each in state.gaps if each.closed_ms is None or each.closed_ms >= horizon_ms]
    state.permits = [each for each in state.permits if each.to_ms >= horizon_ms]
    state.deviations = [
        each for each in state.deviations if each.reverted_ms is None or each.reverted_ms >= horizon_ms
    ]
    state.restores = [each for each in state.restores if each[0] >= horizon_ms]
    state.unclean_starts = {
        broker_id: kept
        for broker_id, starts in state.unclean_starts.items()
        if (kept := [each for each in starts if each[1] >= horizon_ms])
    }
    fabricated.pruned(state, horizon_ms)
    state.blast = {hour: n for hour, n in state.blast.items() if (hour + 1) * HOUR_MS >= horizon_ms}
    window_ms = authority.policy_now(state).backup_window_days * DAY_MS
    tier.bury(state, recent_ms, min(horizon_ms, now_ms - window_ms))
    for name, timeline in state.config.items():
        while len(timeline) > 1 and timeline[1].at_ms < horizon_ms:
            timeline.pop(0)
        state.config[name] = timeline
    old = [each for each in state.policy if each.at_ms < horizon_ms]
    for each in old:
        table = state.policy_base.setdefault(each.pattern, {})
        if each.after is None:
            table.pop(each.key, None)
        else:
            table[each.key] = each.after
        state.policy.remove(each)
        state.policy_base_offset = max(state.policy_base_offset, each.policy_offset)
    state.holds = {key: each for key, each in state.holds.items() if each.released_at is None}


def _position(told: Told | Reading) -> tuple[int, tuple[int, str, int], int]:
    who = told.speaker
    return (told.observed_at_ms, (who.broker_id, who.component, who.incarnation), told.seq)


def _is_heard(state: LogState, told: Told | Reading) -> bool:
    heard = None if told.log_seq is None else state.heard.get(str(told.speaker))
    if told.log_seq is None or not heard or told.log_seq >= heard[-1][1]:
        return False
    return any(start <= told.log_seq < end for start, end in heard) and (
        isinstance(told, Reading) or isinstance(told.event, (LogEvent, type(None)))
    )


def _hear(state: LogState, told: Told, terms: Terms) -> None:
    """A number of this log that was passed over is evidence that was lost, placed here."""
    if told.log_seq is None:
        return
    name = str(told.speaker)
    heard = state.heard.get(name, ())
    state.heard[name] = join(heard, span(told.log_seq, told.log_seq + 1))
    runs = sorted((each for each in state.heard if _is_beside(each, told)), key=_incarnation)
    for old in runs[:-RUNS_KEPT]:
        del state.heard[old]
    expected = heard[-1][1] if heard else 0
    if told.log_seq < expected:
        _came_after_all(state, told)
    if told.log_seq > expected:
        gap = Gap(
            sort="sequence",
            broker_id=told.speaker.broker_id,
            from_ms=state.position[0] if state.position is not None else 0,
            to_ms=told.observed_at_ms,
            detail=f"{name} numbers of this log {expected} to {told.log_seq - 1} are missing",
        )
        missing(state, gap)
    if told.event is None:
        gap = Gap(
            sort="unread_kind",
            broker_id=told.speaker.broker_id,
            from_ms=told.observed_at_ms,
            to_ms=told.observed_at_ms,
            detail=f"an event of kind {told.kind}, which is not known here",
            closed_ms=told.observed_at_ms,
        )
        missing(state, gap)


def _came_after_all(state: LogState, told: Told) -> None:
    """What was passed over only because facts take each other's places in the line (`told.in_line`): one run
    says two of them and goes on, others say older ones later. Where no number is missing of any run beside
    that broker, what was said to be missing of this one never was."""
    of_broker = [spans for name, spans in state.heard.items() if _broker_of(name) == told.speaker.broker_id]
    if all(len(spans) == 1 and spans[0][0] == 0 for spans in of_broker):
        own = f"{told.speaker} numbers of this log "
        state.gaps = [
            each
            for each in state.gaps
            if each.sort != "sequence" or each.closed_ms is not None or not each.detail.startswith(own)
        ]


def _broker_of(name: str) -> int:
    return int(name.partition("/")[0])


def _is_beside(name: str, told: Told) -> bool:
    return name.rpartition("/")[0] == f"{told.speaker.broker_id}/{told.speaker.component}"


def _incarnation(name: str) -> int:
    return int(name.rpartition("/")[2])
