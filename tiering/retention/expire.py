"""Carries out what `remote.next_act` decides for one log, one step at a time, deciding anew before each.

    Advance           the log's record with the new start, based on the record that the decision was made from
    Remove, for each  1  look again: it is still the first to go
                         and the audit's own machine would not condemn it (`audit_gate`)
                  2  DELETE_STARTED, read back
                      3  look again: nothing came in between (a hold, a restore, another leader)
                      4  a delete marker on .json, .aux and .log, each at its pace
                      5  DELETE_FINISHED, read back
    RecordTopicGone   the log's record with the time at which the topic was found gone
    ForgetLog         a tombstone for the log's record

Owns this order (T5: metadata first, objects second, ascending, stopping at the first failure). Refuses to put
a marker where the record's key is not of the log and segment that the record is of, and to do anything that a
dry run would not have said: a run only ever does a prefix of its plan.

Invariant: a hold that is in the topic before a segment's DELETE_STARTED, or before step 3, leaves its objects
alone. Everything can be cut off anywhere and is taken up by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rules.events import DeleteCause, DeleteFinished, DeleteStarted, EventSink
from rules.identity import LogId
from tiering.errors import StatedError
from tiering.retention.audit_gate import before_removal
from tiering.retention.expiry import Advance
from tiering.retention.facts import TierCopy, TierFacts
from tiering.retention.forgetting import to_forget
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import Act, ForgetLog, RecordTopicGone, Remove, Situation, next_act
from tiering.segments.event_fields import about
from tiering.segments.records import LogRecord, SegmentId, SegmentRecord, SegmentState
from tiering.store.keys import KeyLayout, ObjectKind, SegmentKey

# The .json first: a bucket alone then no longer tells of the segment, while its bytes are still there.
REMOVAL_ORDER = (ObjectKind.JSON, ObjectKind.AUX, ObjectKind.LOG)


class Table(Protocol):
    """The reference table, read up to the topic's end as it is when asked."""

    def look(self, log: LogId) -> Situation: ...

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None: ...

    def removed(self, log: LogId) -> Iterable[SegmentRecord]:
        """Those in DELETE_FINISHED, in the order in which they got there."""


class Tier(Protocol):
    """The metadata topic, as one agent writes and reads it."""

    def publish(self, record: SegmentRecord | LogRecord) -> int:
        """The record's offset, once our own table has followed it; NotFollowed where it does not."""

    def forget(self, log: LogId, segment_id: SegmentId | None) -> None:
        """A tombstone for a segment's record, or for the log's own."""


class Objects(Protocol):
    """Where segments are."""

    def mark_deleted(self, key: str) -> object: ...

    def keeps_versions(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world, as far as expiry touches it. `pace` waits for its turn before each request to the store.

    `removing` is told of each segment before anything happens to it, for the blast limit's ledger.
    """

    table: Table
    tier: Tier
    objects: Objects
    sink: EventSink
    pace: Callable[[], None]
    removing: Callable[[TierCopy], None]
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run came to. `removed` is a prefix of the plan; `stopped` says why it is not all of it."""

    plan: Act | None  # None: it could not be made
    removed: tuple[SegmentId, ...] = ()
    stopped: StatedError | Keep | None = None


def dry_run(log: LogId, ports: Ports) -> Act:
    """What a run would do now, all of it."""
    return next_act(ports.table.look(log))


def expire(log: LogId, ports: Ports) -> Run:
    """Do it. A failure is part of what comes back: the next log's turn comes all the same."""
    plan: Act | None = None
    try:
        now = ports.table.look(log)
        plan = next_act(now)
        match plan:
            case Keep():
                pass
            case Remove():
                return _remove_all(log, plan, ports)
            case _:
                _rewrite(now.facts, plan, ports)
    except StatedError as failed:
        return Run(plan=plan, stopped=failed)
    return Run(plan=plan)


def forget(log: LogId, ports: Ports) -> tuple[SegmentId, ...] | Keep:
    """Tombstones for what was removed longer than the backup window ago; what was forgotten."""
    due = to_forget(ports.table.look(log), ports.table.removed(log))
    if not isinstance(due, Keep):
        for segment_id in due:
            ports.tier.forget(log, segment_id)
    return due


def _rewrite(facts: TierFacts, act: Advance | RecordTopicGone | ForgetLog, ports: Ports) -> None:
    match act:
        case Advance():
            ports.tier.publish(_next_record(facts, ports, log_start=act.new_start))
        case RecordTopicGone():
            ports.tier.publish(_next_record(facts, ports, topic_deleted_at_ms=act.deleted_at_ms))
        case ForgetLog():
            ports.tier.forget(facts.log, None)


def _next_record(facts: TierFacts, ports: Ports, **changes: Any) -> LogRecord:
    """Another record under the standing claim, based on the one that the decision was made from.

    Should anybody have written in between, this one is not followed: whoever did may have placed a hold.
    """
    assert facts.record is not None
    assert facts.claim is not None
    return replace(
        facts.record,
        broker_id=ports.broker_id,
        claim_offset=facts.claim.offset,
        earlier_claims=facts.claims_to_repeat,
        based_on=facts.record_offset,
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
        **changes,
    )


def _remove_all(log: LogId, plan: Remove, ports: Ports) -> Run:
    removed: list[SegmentId] = []
    stopped: StatedError | Keep | None = None
    try:
        if not ports.objects.keeps_versions():
            detail = "the bucket keeps no versions: what is deleted in it cannot be put back"
            return Run(plan=plan, stopped=Keep(reason=Reason.NOT_VERSIONED, detail=detail))
        for copy in plan.copies:
            stopped = _remove(log, copy, plan.cause, ports)
            if stopped is not None:
                break
            removed.append(copy.segment_id)
    except StatedError as failed:
        stopped = failed
    return Run(plan=plan, removed=tuple(removed), stopped=stopped)


def _remove(log: LogId, copy: TierCopy, cause: DeleteCause, ports: Ports) -> Keep | None:
    """One segment, as far as it may go; why it may not, if so."""
    now = ports.table.look(log)
    record = ports.table.segment(log, copy.segment_id)
    if kept := _still_first(now, copy, cause):
        return kept
    if record is None or not is_own_key(record, log):
        detail = f"segment {copy.segment_id} has no record, or one with a key of something else"
        return Keep(reason=Reason.TABLE_DOUBTED, detail=detail)
    if record.state is SegmentState.DELETE_STARTED:
        offset, deleting = copy.metadata_offset, record  # said once more, in the same words: it may be lost
    else:
        if kept := before_removal(now, copy, cause):
            return kept
        ports.removing(copy)
        deleting = _next_state(record, SegmentState.DELETE_STARTED, now.facts, ports)
        offset = ports.tier.publish(deleting)
    ports.sink.emit(
        DeleteStarted(
            **about(deleting),
            generation=deleting.generation,
            cause=_cause(deleting, cause),
            metadata_offset=offset,
        )
    )
    if kept := _still_first(ports.table.look(log), copy, cause):
        return kept
    for kind in REMOVAL_ORDER:
        ports.pace()
        ports.objects.mark_deleted(f"{record.key_stem}.{kind.value}")
    deleted = _next_state(deleting, SegmentState.DELETE_FINISHED, now.facts, ports)
    offset = ports.tier.publish(deleted)
    ports.sink.emit(
        DeleteFinished(
            **about(deleted),
            generation=deleted.generation,
            cause=_cause(deleted, cause),
            metadata_offset=offset,
        )
    )
    return None


def _still_first(now: Situation, copy: TierCopy, cause: DeleteCause) -> Keep | None:
    """Why a copy is not to go now, deciding from scratch."""
    act = next_act(now)
    if isinstance(act, Keep):
        return act
    if isinstance(act, Remove) and act.cause is cause and act.copies[0].segment_id == copy.segment_id:
        return None
    detail = f"segment {copy.segment_id} is not the next to go any more"
    return Keep(reason=Reason.CHANGED_MEANWHILE, detail=detail)


def _next_state(record: SegmentRecord, state: SegmentState, facts: TierFacts, ports: Ports) -> SegmentRecord:
    """The record as the claim's holder writes it; of a deleted topic, as its last one would have."""
    assert facts.claim is not None
    return replace(
        record,
        state=state,
        broker_id=ports.broker_id,
        leader_epoch=max(facts.claim.epoch, record.leader_epoch),
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
    )


def _cause(record: SegmentRecord, cause: DeleteCause) -> DeleteCause:
    """A copy without a .log never was one."""
    never_finished = record.objects.log is None and cause is DeleteCause.LOG_START
    return DeleteCause.FAILED_COPY if never_finished else cause


def is_own_key(record: SegmentRecord, log: LogId) -> bool:
    """Whether the key of a segment's objects is that of this very segment, under whatever prefix."""
    own = SegmentKey(log=log, base_offset=record.base_offset, segment_id=record.segment_id)
    stem = KeyLayout("").stem(own)
    return record.log == log and (record.key_stem == stem or record.key_stem.endswith(f"/{stem}"))
