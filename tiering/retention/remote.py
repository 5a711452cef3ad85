"""What to do next about the expiry of one log in the tier: a pure function of what is known (T5).

    the policy does not opt in, the table is doubted, the claim is not ours,
    a restore asked for time, nobody knows whether the topic is there           Keep
    the topic is gone, and that is not on record                                RecordTopicGone
    it is on record, and its grace has passed                                   Remove: all of the topic id
    finished copies wholly below the recorded start, its grace not passed       Keep
    the same, and its grace has passed                                          Remove: the first of them
    the log's head has expired                                                  Advance: a new start
    everything else                                                             Keep

The two acts on a live log never meet: its start moves only once all that the last move freed is gone. So the
time of the log's record is the time of its start, or later, and no memory of it is needed beside the topic.
(Any other rewriting of the record, such as a claim, makes the grace begin again: late, never early.)

Owns the order of these cases. Refuses to look at a clock, a disk or a network; who acts on it is `expire`.

Invariant: what is to be removed ends at or below a start that was recorded a grace ago, is a prefix of what
lies there, and touches no hold. A start moves only over offsets of which each is in a copy that has expired,
or in a recorded gap; never past the frontier, and never into a hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from rules.events import DeleteCause
from tiering.retention.expiry import Advance, new_start
from tiering.retention.facts import DOUBTS, TierCopy, TierFacts, overlaps
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote_policy import BlastLimit, RemotePolicy
from tiering.retention.unique_bytes import Extent
from tiering.segments.records import LogRecord, SegmentState


class Presence(Enum):
    """What the cluster's committed metadata says of a topic id. Nobody's silence is GONE."""

    THERE = "there"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that is known of one log at one moment."""

    facts: TierFacts
    policy: RemotePolicy
    now_ms: int
    leader_epoch: int  # at which this agent's broker leads the log
    topic: Presence = Presence.THERE
    local: tuple[Extent, ...] = ()  # the leader's segments on disk; less than all is safe
    may_advance: BlastLimit  # left for this run
    may_remove: BlastLimit

    @property
    def record(self) -> LogRecord:
        assert self.facts.record is not None, "a guard comes first"
        return self.facts.record

    @property
    def is_topic_gone(self) -> bool:
        record = self.facts.record
        return self.topic is Presence.GONE or (record is not None and record.topic_deleted_at_ms is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """These copies go, in this order. `then`: why not more of them."""

    copies: tuple[TierCopy, ...]
    cause: DeleteCause
    then: Keep | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTopicGone:
    """The log's record has to say that its topic was deleted; its grace begins with that."""

    deleted_at_ms: int


@dataclass(frozen=True, slots=True)
class ForgetLog:
    """Nothing is left of a deleted topic's log but its own record."""


OFF = Keep(reason=Reason.OFF, detail="remote_deletion is off for this topic")

Act: TypeAlias = Advance | Remove | RecordTopicGone | ForgetLog | Keep
Guard: TypeAlias = Callable[[Situation], Keep | None]


def next_act(now: Situation) -> Act:
    """The one thing to do now. Doing it changes the facts; ask again."""
    for guard in GUARDS:
        if kept := guard(now):
            return kept
    if now.is_topic_gone:
        return _of_gone_topic(now)
    below = [copy for copy in _removable(now.facts) if copy.end_offset <= now.record.log_start]
    if below:
        return _removal(now, below, _grace_of_start(now), DeleteCause.LOG_START)
    return new_start(now.facts, now.policy, now_ms=now.now_ms, local=now.local, may_advance=now.may_advance)


def _guard(doubt: Callable[[TierFacts], str | None]) -> Guard:
    def guard(now: Situation) -> Keep | None:
        detail = doubt(now.facts)
        return Keep(reason=Reason.TABLE_DOUBTED, detail=detail) if detail else None

    guard.__name__ = doubt.__name__
    return guard


def topic_is_known(now: Situation) -> Keep | None:
    if now.topic is Presence.UNKNOWN:
        return Keep(reason=Reason.TOPIC_UNKNOWN, detail="nobody could say whether the topic is there")
    record = now.facts.record
    if now.topic is Presence.THERE and record is not None and record.topic_deleted_at_ms is not None:
        detail = "on record as deleted, and the cluster has it"
        return Keep(reason=Reason.TOPIC_THERE, detail=detail)
    return None


def claim_is_ours(now: Situation) -> Keep | None:
    """A deleted topic has no leader: any agent may act on what is left of it, each act being repeatable."""
    claim = now.facts.claim
    if now.is_topic_gone or (claim is not None and claim.epoch == now.leader_epoch):
        return None
    detail = f"we lead at epoch {now.leader_epoch}, and the highest claim is {claim.epoch if claim else None}"
    return Keep(reason=Reason.NOT_LEADING, detail=detail)


def policy_opts_in(now: Situation) -> Keep | None:
    """A topic's end is put on record all the same: that removes nothing."""
    if now.policy.deletes or _is_to_be_recorded(now):
        return None
    return OFF


def no_restore_asks_for_time(now: Situation) -> Keep | None:
    until_ms = now.facts.record.keep_until_ms if now.facts.record is not None else None
    if until_ms is None or now.now_ms >= until_ms or _is_to_be_recorded(now):
        return None
    return Keep(reason=Reason.KEEP_UNTIL, detail=f"restored; kept until {until_ms}")


TABLE_GUARDS: tuple[Guard, ...] = tuple(map(_guard, DOUBTS))
GUARDS: tuple[Guard, ...] = (
    *TABLE_GUARDS,
    topic_is_known,
    claim_is_ours,
    policy_opts_in,
    no_restore_asks_for_time,
)


def _is_to_be_recorded(now: Situation) -> bool:
    record = now.facts.record
    return now.topic is Presence.GONE and record is not None and record.topic_deleted_at_ms is None


def _of_gone_topic(now: Situation) -> Act:
    deleted_at_ms = now.record.topic_deleted_at_ms
    if deleted_at_ms is None:
        return RecordTopicGone(deleted_at_ms=now.now_ms)
    grace = _grace(now, deleted_at_ms, now.policy.topic_grace_ms, "the topic's end")
    if now.facts.copies:
        return _removal(now, now.facts.copies, grace, DeleteCause.TOPIC_DELETED)
    if grace is not None:
        return grace
    if now.facts.row_count or now.record.holds:
        left = f"{now.facts.row_count} records of removed segments, {len(now.record.holds)} holds"
        return Keep(reason=Reason.GRACE, detail=f"still on record: {left}")
    return ForgetLog()


def _removable(facts: TierFacts) -> Iterator[TierCopy]:
    """An unfinished copy is its uploader's to give up."""
    return (copy for copy in facts.copies if copy.state is not SegmentState.COPY_STARTED)


def _removal(
    now: Situation, candidates: Sequence[TierCopy], grace: Keep | None, cause: DeleteCause
) -> Remove | Keep:
    """A prefix of the candidates. What is half gone has had its grace, and was counted before."""
    chosen: list[TierCopy] = []
    counted = size_bytes = 0
    then: Keep | None = None
    for copy in candidates:
        then = _held(now, copy) or (grace if copy.state is not SegmentState.DELETE_STARTED else None)
        if copy.state is not SegmentState.DELETE_STARTED:
            counted, size_bytes = counted + 1, size_bytes + copy.size_bytes
        if then is None and not now.may_remove.allows(counted, size_bytes):
            detail = f"{now.may_remove.segments} segments, {now.may_remove.size_bytes} bytes may go now"
            then = Keep(reason=Reason.BLAST_LIMIT, detail=detail)
        if then is not None:
            break
        chosen.append(copy)
    if not chosen:
        assert then is not None
        return then
    return Remove(copies=tuple(chosen), cause=cause, then=then)


def _held(now: Situation, copy: TierCopy) -> Keep | None:
    for hold in now.record.holds:
        if overlaps(hold, copy.base_offset, copy.end_offset):
            return Keep(reason=Reason.HELD, detail=f"{hold.hold_id}: {hold.reason}")
    return None


def _grace_of_start(now: Situation) -> Keep | None:
    return _grace(now, now.record.occurred_at_ms, now.policy.grace_ms, "the log's start")


def _grace(now: Situation, since_ms: int, grace_ms: int, of: str) -> Keep | None:
    if now.now_ms - since_ms >= grace_ms:
        return None
    detail = f"{of} is on record since {since_ms}; removal {grace_ms} ms later"
    return Keep(reason=Reason.GRACE, detail=detail)
