"""What the cluster's metadata and people say, taken into the state: leaders, settings, policy, permits, gaps.

Owns how these facts are kept. Timelines are in the order of their own clock (KRaft's offset, the policy
topic's), so that one that is heard late takes its place, and one that is heard twice is one.

Invariant: a setting that was read from a snapshot stands for more changes than it shows: it leaves a gap.
"""

from __future__ import annotations

from rules.events import (
    BrokerStarted,
    ConfigEffective,
    ConfigResource,
    ConfigSource,
    DirectoryOffline,
    EvidenceGap,
    IsrChanged,
    LeaderChanged,
    Operation,
    OperationAuthorised,
    PolicyDeclared,
    RecordsDeleteRequested,
    ReplicaAdded,
    Restored,
    RestoreTarget,
    TopicDeleted,
)
from rules.machine import authority, fabricated
from rules.machine.findings import close_covered, happened
from rules.machine.lives import seen_in_sync
from rules.machine.spans import cut, meet, normal, span
from rules.machine.state import (
    EPOCHS_KEPT,
    TIMELINE_MAX,
    Declared,
    Gap,
    LogState,
    Permit,
    Setting,
    missing,
)
from rules.machine.terms import BROKER_INTERVALS, KAFKAS, OF_TOPIC, TOPIC_INTERVALS, Terms
from rules.machine.told import Speaker

RETENTION_KEYS = ("retention.ms", "retention.bytes", "local.retention.ms", "local.retention.bytes")
TOPIC_KEYS = frozenset({*RETENTION_KEYS, "remote.storage.enable", "cleanup.policy"})
BROKER_KEYS = frozenset(
    {
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
        "log.retention.bytes",
        "log.local.retention.ms",
        "log.local.retention.bytes",
    }
)
LOST_FOR_GOOD = "lost_for_good"  # of an emitter that watches no disk: no baseline makes up for it
# What a range that is whole again closes, and what somebody can take as lost.
LOSSES = frozenset(
    {
        "START-01",
        "START-02",
        "RET-01",
        "RET-02",
        "RET-04",
        "SEG-09",
        "SEG-10",
        "DEL-01",
        "HWM-01",
        "HWM-02",
        "HWM-03",
        "EPO-01",
        "OPS-01",
        "OPS-03",
        "START-05",
    }
)


def leader_changed(state: LogState, event: LeaderChanged, terms: Terms) -> None:
    offset = event.metadata_offset
    known = state.leaders.get(event.leader_epoch)
    if known is not None and known != event.leader_id and -1 not in (known, event.leader_id):
        _two_leaders(state, event, known)
    newest = max(state.leaders, default=-1)
    is_later = offset is not None and offset > state.kraft_offset
    if is_later and event.leader_epoch < newest:
        happened(
            state,
            "EPO-01",
            subject="log",
            anchor=f"fell to {event.leader_epoch}",
            severity="C",
            ranges=(),
            interval=(event.occurred_at_ms, event.occurred_at_ms),
            note=f"the leader epoch fell from {newest} to {event.leader_epoch}",
        )
    if known is None or known == -1:
        state.leaders[event.leader_epoch] = event.leader_id
        while len(state.leaders) > EPOCHS_KEPT:
            del state.leaders[min(state.leaders)]
    if event.is_unclean and event.leader_epoch not in state.unclean_epochs:
        state.unclean_epochs = sorted([*state.unclean_epochs, event.leader_epoch])[-EPOCHS_KEPT:]
    if event.leader_epoch < newest or (offset is not None and offset < state.kraft_offset):
        return  # of a time that is past
    if event.leader_id != state.leader_id:
        for replica in state.replicas.values():
            replica.low_since_ms = None
    state.leader_epoch = event.leader_epoch
    state.leader_id = event.leader_id
    state.in_sync, state.assigned = event.isr, event.replicas
    state.kraft_offset = max(state.kraft_offset, offset if offset is not None else -1)
    seen_in_sync(state, event.occurred_at_ms)


def _two_leaders(state: LogState, event: LeaderChanged, known: int) -> None:
    happened(
        state,
        "EPO-01",
        subject="log",
        anchor=f"leaders of {event.leader_epoch}",
        severity="C",
        ranges=(),
        interval=(event.occurred_at_ms, event.occurred_at_ms),
        note=f"brokers {known} and {event.leader_id} both lead epoch {event.leader_epoch}",
    )


def isr_changed(state: LogState, event: IsrChanged, terms: Terms) -> None:
    if event.metadata_offset is not None and event.metadata_offset < state.kraft_offset:
        return
    state.in_sync = event.isr
    state.kraft_offset = max(
        state.kraft_offset, event.metadata_offset if event.metadata_offset is not None else -1
    )
    seen_in_sync(state, event.occurred_at_ms)


def replica_added(state: LogState, event: ReplicaAdded, terms: Terms) -> None:
    if event.metadata_offset is None or event.metadata_offset >= state.kraft_offset:
        state.assigned = event.replicas


def config_effective(state: LogState, event: ConfigEffective, terms: Terms) -> None:
    is_topic = event.resource is ConfigResource.TOPIC
    _interval(state, event, is_topic=is_topic)
    if event.key not in (TOPIC_KEYS if is_topic else BROKER_KEYS):
        return
    name = f"topic|{event.key}" if is_topic else f"broker:{event.broker_id}|{event.key}"
    timeline = state.config.setdefault(name, [])
    made = Setting(
        not_before_ms=event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms,
        at_ms=event.occurred_at_ms,
        metadata_offset=event.metadata_offset,
        value=event.new_value,
        is_own=event.config_source is ConfigSource.TOPIC,
    )
    if _is_known(timeline, made):
        return
    if event.is_first_sight or not timeline:
        # In force for as long as anybody can tell, for all that is judged here.
        made.not_before_ms = min(made.not_before_ms, state.born_ms or made.at_ms, made.at_ms)
    timeline.append(made)
    timeline.sort(key=_setting_order)
    del timeline[:-TIMELINE_MAX]
    _taken_up(state, event, is_topic=is_topic)


def _interval(state: LogState, event: ConfigEffective, *, is_topic: bool) -> None:
    """How often a broker looks, as it was told last; of it the graces are made."""
    name = (TOPIC_INTERVALS if is_topic else BROKER_INTERVALS).get(event.key)
    broker_id = OF_TOPIC if is_topic else event.broker_id
    if name is None or broker_id is None:
        return
    told = state.intervals.get(name, {})
    value = event.new_value or ""
    is_own = not is_topic or event.config_source is ConfigSource.TOPIC
    if value.isdecimal() and is_own and (is_topic or int(value) != KAFKAS[name]):
        told[broker_id] = int(value)
    else:
        told.pop(broker_id, None)
    if told:
        state.intervals[name] = dict(sorted(told.items()))
    else:
        state.intervals.pop(name, None)


def _is_known(timeline: list[Setting], made: Setting) -> bool:
    """Each broker's observer tells the same; a value that did not change is no change."""
    if made.metadata_offset is not None:
        return any(each.metadata_offset == made.metadata_offset for each in timeline)
    before = [each for each in timeline if each.at_ms <= made.at_ms]
    return bool(before) and (before[-1].value, before[-1].is_own) == (made.value, made.is_own)


def _setting_order(each: Setting) -> tuple[int, int]:
    return (each.at_ms, -1 if each.metadata_offset is None else each.metadata_offset)


def _taken_up(state: LogState, event: ConfigEffective, *, is_topic: bool) -> None:
    if not is_topic:
        return
    if event.key == "remote.storage.enable" and event.new_value == "true":
        state.is_kip405 = True
    if event.key == "cleanup.policy" and "compact" in (event.new_value or ""):
        state.was_compacted = True
    if event.key in RETENTION_KEYS:
        _adopt(state, event)
    if event.is_coalesced and not event.is_first_sight and event.key in RETENTION_KEYS:
        _gap(
            state,
            "coalesced",
            None,
            event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms,
            event.occurred_at_ms,
            f"{event.key}: a snapshot stands for changes that nobody saw",
            is_closed=True,
        )


def _adopt(state: LogState, event: ConfigEffective) -> None:
    """The value at the log's first sight. A topic is made with its settings before its replicas are there:
    these are what it begins with, and change nothing. None: its brokers' default."""
    if event.is_first_sight:
        state.adopted.setdefault(event.key, event.new_value)
    elif state.born_ms is None or event.occurred_at_ms <= state.born_ms:
        state.adopted[event.key] = event.new_value
    else:
        state.adopted.setdefault(event.key, event.old_value)


def broker_started(state: LogState, event: BrokerStarted, terms: Terms) -> None:
    fabricated.started(state, event, terms)
    if event.is_clean:
        return
    since = event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms
    starts = state.unclean_starts.setdefault(event.broker_id, [])
    if (since, event.occurred_at_ms) not in starts:
        starts.append((since, event.occurred_at_ms))


def directory_offline(state: LogState, event: DirectoryOffline, terms: Terms) -> None:
    replica = state.replicas.get(event.broker_id)
    if replica is None or event.directory_id not in (None, replica.directory_id):
        return
    replica.is_dark = True
    since = event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms
    _gap(state, "directory_offline", event.broker_id, since, event.occurred_at_ms, event.problem)


def topic_deleted(state: LogState, event: TopicDeleted, terms: Terms) -> None:
    since = event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms
    if state.deleted_ms is None:
        state.deleted_ms = (since, event.occurred_at_ms)
        state.topic_deletion_due_ms = event.occurred_at_ms + terms.settle_ms
        state.is_gone = True


def policy_declared(state: LogState, event: PolicyDeclared, terms: Terms) -> None:
    if not authority.matches(event.pattern, state.topic):
        return
    made = Declared(
        policy_offset=event.policy_offset,
        at_ms=event.occurred_at_ms,
        pattern=event.pattern,
        key=event.key,
        after=event.after,
    )
    if made not in state.policy and event.policy_offset > state.policy_base_offset:
        state.policy.append(made)
        state.policy.sort(key=lambda each: (each.policy_offset, each.pattern, each.key))


def operation_authorised(state: LogState, event: OperationAuthorised, terms: Terms) -> None:
    if event.partition not in (None, state.log.partition):
        return
    sort = "delete_topic" if event.operation is Operation.DELETE_TOPIC else "delete_records"
    _permit(
        state,
        Permit(
            sort=sort,
            principal=event.principal,
            change_id=event.change_id,
            start=event.start_offset,
            end=event.end_offset,
            from_ms=event.valid_from_ms,
            to_ms=event.expires_at_ms,
        ),
    )


def records_delete_requested(state: LogState, event: RecordsDeleteRequested, terms: Terms) -> None:
    _permit(
        state,
        Permit(
            sort="request",
            principal=event.principal,
            change_id=event.change_id,
            start=None,
            end=event.new_start,
            from_ms=event.occurred_at_ms,
            to_ms=event.occurred_at_ms + terms.settle_ms,
        ),
    )


def _permit(state: LogState, permit: Permit) -> None:
    if permit not in state.permits:
        state.permits.append(permit)


def restored(state: LogState, event: Restored, terms: Terms) -> None:
    """Back again: what was lost there is closed, and the log's start may stand below it once more."""
    at_ms = event.occurred_at_ms
    if event.start_offset >= event.end_offset:
        happened(
            state,
            "RST-01",
            subject="log",
            anchor=str(event.start_offset),
            severity="C",
            ranges=(),
            interval=(at_ms, at_ms),
            note=f"restore {event.restore_id} put back nothing: its range is empty",
        )
        return
    planned = (event.planned_start, event.planned_end)
    if None not in planned and planned != (event.start_offset, event.end_offset):
        happened(
            state,
            "RST-01",
            subject="log",
            anchor=f"plan of {event.restore_id}",
            severity="C",
            ranges=span(event.start_offset, event.end_offset),
            interval=(at_ms, at_ms),
            note=f"[{planned[0]}, {planned[1]}) was planned, by plan {event.plan_hash}, and not done",
        )
    if event.restore_target is RestoreTarget.TOPIC:
        return  # another log has it now: this one is as short as before
    if (at_ms, event.start_offset, event.end_offset) not in state.restores:
        state.restores.append((at_ms, event.start_offset, event.end_offset))
    if event.keep_until_ms is not None:
        state.keep_until_ms = max(state.keep_until_ms or 0, event.keep_until_ms)
    whole = span(event.start_offset, event.end_offset)
    if state.start is not None and event.start_offset < state.start <= event.end_offset:
        state.start = event.start_offset
    state.went = cut(state.went, whole)
    for replica in state.replicas.values():
        replica.advances = [each for each in replica.advances if not meet(span(each.start, each.end), whole)]
        replica.doubt = cut(replica.doubt, whole)
        replica.passed = cut(replica.passed, whole)
        if event.restore_target is RestoreTarget.LOG_DIRECTORY and event.broker_id == replica.broker_id:
            replica.holes = cut(replica.holes, whole)
    state.rises = [each for each in state.rises if not meet(span(each.start, each.end), whole)]
    everything = normal((start, end) for _, start, end in state.restores)
    close_covered(state, everything, at_ms, "restored", LOSSES)


def evidence_gap(state: LogState, event: EvidenceGap, terms: Terms, speaker: Speaker) -> None:
    since = event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms
    broker_id = None if event.problem == LOST_FOR_GOOD else speaker.broker_id
    hosts = {*state.replicas, *(state.assigned or ())}
    is_heard = any(name.startswith(f"{broker_id}/") for name in state.heard)
    if broker_id is not None and hosts and broker_id not in hosts and not is_heard:
        return  # what it can tell beside its own logs, all tell (decision 13)
    _gap(state, event.problem, broker_id, since, event.occurred_at_ms, event.detail)


def _gap(
    state: LogState,
    sort: str,
    broker_id: int | None,
    from_ms: int,
    to_ms: int,
    detail: str,
    *,
    is_closed: bool = False,
) -> None:
    closed_ms = to_ms if is_closed else None
    gap = Gap(
        sort=sort, broker_id=broker_id, from_ms=from_ms, to_ms=to_ms, detail=detail, closed_ms=closed_ms
    )
    missing(state, gap)
