"""Whether the brokers may forget the head of a log that is in the tier: a function of what is known (T4).

DeleteRecords moves the start of every replica, and no replica can veto it. So one agent decides for all, the
one beside the leader, and only where each of these is so; the first that is not is the reason to keep:

    off by default          the policy asks for it, and limits what is local
    not ours to cut         remote storage is off, the topic is not and was not compacted; just asked
    the table is believed   it has read to the topic's end, has a record of the log, can read all of it, and
                            nobody's lost word stands behind it (`facts.DOUBTS`)
    we lead                 the leader, the metadata and this disk agree on the epoch; the highest claim is of
                            it, and the topic's end was asked for after that claim
    nobody objects          no hold on any of the log, no restore that asked for time
    all agents agree        the digest of every replica's agent is there, at our offset, and is ours
    it is in the tier       from the log's start on, finished copies of the lineage without a break; recorded
                            gaps do not count: the bytes may be on this disk after all. What lies below the
                            recorded start was there, and has expired even from there: that needs no copy,
                            else an expiry that comes first would keep the brokers' disks full for ever
    it has expired          every record of it by time, or by the bytes that are local behind it
    its epochs are saved    trimming cuts the broker's history of epochs; the log's record has it

Owns the order of these rules and the offset. Refuses to look at a clock, a disk or a network.

Invariant: `up_to` is the end of a closed segment of the leader, at or below the frontier and what is
committed; and each offset of [old_start, up_to) is in a copy that the certificate names, or was in the tier
and lies below the start that the log's record has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tiering.cluster.gate import Eligible, NotLeader, Verdict
from tiering.cluster.interface import Leadership, TopicSettings, Unknown
from tiering.log.checkpoints import EpochStart
from tiering.retention.digests import Said
from tiering.retention.facts import DOUBTS, TierCopy, TierFacts
from tiering.retention.local_policy import LocalPolicy
from tiering.retention.reasons import Keep, Reason
from tiering.segments.digest import LogDigest
from tiering.segments.records import NO_TIMESTAMP_MS, LogRecord

ANSWERS_MAX_AGE_MS = 60_000


class LocalSegment(NamedTuple):
    """A closed segment on the leader's disk."""

    base_offset: int
    end_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimFacts:
    """All that is known of one log at one moment. `asked_at_ms` is before the first question to anyone."""

    tier: TierFacts
    digest: LogDigest | None  # our table's, of the same moment as `tier`
    said: Mapping[int, Said]  # by the other agents
    metadata_partition: int
    policy: LocalPolicy
    broker_id: int
    lead: Verdict
    leadership: Leadership | Unknown
    log_start: int | None  # by the leader; None: it did not say
    settings: TopicSettings | Unknown
    was_compacted: bool
    doubts: tuple[str, ...]  # about this replica's files
    segments: tuple[LocalSegment, ...]
    active_bytes: int
    epochs: tuple[EpochStart, ...]  # the broker's own history
    asked_at_ms: int
    now_ms: int

    @property
    def record(self) -> LogRecord:
        assert self.tier.record is not None, "a guard comes first"
        return self.tier.record


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The whole case for a trim."""

    leader_epoch: int
    frontier: int
    metadata_partition: int
    metadata_offset: int
    digest: str
    agreeing_brokers: tuple[int, ...]
    copies: tuple[TierCopy, ...]  # that cover [old_start, up_to), by rising base


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """Every replica's start is to move from `old_start` to `up_to`."""

    old_start: int
    up_to: int
    certificate: Certificate


Guard: TypeAlias = Callable[[TrimFacts], Keep | None]


def trim_decision(facts: TrimFacts) -> Trim | Keep:
    """What may be trimmed now. Doing it changes the facts; ask again."""
    for guard in GUARDS:
        if kept := guard(facts):
            return kept
    return _furthest(facts)


def policy_opts_in(facts: TrimFacts) -> Keep | None:
    if not facts.policy.trims:
        return Keep(reason=Reason.OFF, detail="trim is off for this topic")
    if facts.policy.local_ms is None and facts.policy.local_bytes is None:
        return Keep(reason=Reason.UNLIMITED, detail="no local retention is declared")
    return None


def answers_are_of_this_minute(facts: TrimFacts) -> Keep | None:
    age_ms = facts.now_ms - facts.asked_at_ms
    if 0 <= age_ms <= ANSWERS_MAX_AGE_MS:
        return None
    return Keep(reason=Reason.ANSWERS_TOO_OLD, detail=f"the broker was asked {age_ms} ms ago")


def remote_storage_is_off(facts: TrimFacts) -> Keep | None:
    if isinstance(facts.settings, Unknown):
        return Keep(reason=Reason.SETTINGS_UNKNOWN, detail=facts.settings.reason)
    if facts.settings.remote_storage_enable.value:
        detail = "Kafka's own remote storage is on, and DeleteRecords would delete its segments"
        return Keep(reason=Reason.REMOTE_STORAGE, detail=detail)
    return None


def never_compacted(facts: TrimFacts) -> Keep | None:
    is_compacted = isinstance(facts.settings, TopicSettings) and facts.settings.is_compacted
    if not is_compacted and not facts.was_compacted:
        return None
    return Keep(reason=Reason.COMPACTED, detail="the topic is or was compacted")


def _doubt(doubt: Callable[[TierFacts], str | None]) -> Guard:
    def guard(facts: TrimFacts) -> Keep | None:
        detail = doubt(facts.tier)
        return Keep(reason=Reason.TABLE_DOUBTED, detail=detail) if detail else None

    guard.__name__ = doubt.__name__
    return guard


def topic_is_not_recorded_as_gone(facts: TrimFacts) -> Keep | None:
    if facts.record.topic_deleted_at_ms is None:
        return None
    return Keep(reason=Reason.TOPIC_THERE, detail="on record as deleted, and the cluster has it")


def this_broker_leads(facts: TrimFacts) -> Keep | None:
    """And everybody who was asked says the same epoch."""
    lead = facts.lead
    if isinstance(lead, NotLeader):
        return Keep(reason=Reason.NOT_LEADING, detail=f"broker {lead.leader_id} leads")
    if not isinstance(lead, Eligible):
        return Keep(reason=Reason.EPOCH_UNCONFIRMED, detail=lead.reason)
    if facts.log_start is None or not isinstance(facts.leadership, Leadership):
        return Keep(reason=Reason.EPOCH_UNCONFIRMED, detail="the leader did not say where the log starts")
    return None


def files_are_read(facts: TrimFacts) -> Keep | None:
    return Keep(reason=Reason.REPLICA_DOUBTED, detail="; ".join(facts.doubts)) if facts.doubts else None


def claim_is_ours(facts: TrimFacts) -> Keep | None:
    claim, lead = facts.tier.claim, facts.lead
    assert isinstance(lead, Eligible), "a guard comes first"
    if claim is not None and claim.epoch == lead.leader_epoch:
        return None
    epoch = claim.epoch if claim is not None else None
    return Keep(reason=Reason.NOT_LEADING, detail=f"the highest claim is of epoch {epoch}")


def end_was_asked_after_the_claim(facts: TrimFacts) -> Keep | None:
    claim = facts.tier.claim
    if claim is not None and facts.tier.end_offset > claim.offset:
        return None
    return Keep(reason=Reason.CLAIM_UNREAD, detail="the topic's end was asked for before our claim was in it")


def nobody_holds(facts: TrimFacts) -> Keep | None:
    """Anything of the log: what a finding is about may be known too narrowly."""
    for hold in facts.record.holds:
        return Keep(reason=Reason.HELD, detail=f"{hold.hold_id}: {hold.reason}")
    return None


def no_restore_asks_for_time(facts: TrimFacts) -> Keep | None:
    until_ms = facts.record.keep_until_ms
    if until_ms is None or facts.now_ms >= until_ms:
        return None
    return Keep(reason=Reason.KEEP_UNTIL, detail=f"restored; kept until {until_ms}")


def digests_agree(facts: TrimFacts) -> Keep | None:
    ours = facts.digest
    if ours is None or not ours.comparable:
        detail = "our own table's digest is from before its replay's end"
        return Keep(reason=Reason.DIGEST_MISSING, detail=detail)
    missing = []
    for broker_id in _other_replicas(facts):
        said = facts.said.get(broker_id)
        if said is None or said.metadata_offset != ours.offset:
            missing.append(broker_id)
        elif said.digest != ours.hex():
            detail = f"at offset {ours.offset} broker {broker_id} has {said.digest}, we have {ours.hex()}"
            return Keep(reason=Reason.DIGEST_DIFFERS, detail=detail)
    if missing:
        detail = f"brokers {missing} have not said theirs at offset {ours.offset}"
        return Keep(reason=Reason.DIGEST_MISSING, detail=detail)
    return None


GUARDS: tuple[Guard, ...] = (
    policy_opts_in,
    answers_are_of_this_minute,
    remote_storage_is_off,
    never_compacted,
    *map(_doubt, DOUBTS),
    topic_is_not_recorded_as_gone,
    this_broker_leads,
    files_are_read,
    claim_is_ours,
    end_was_asked_after_the_claim,
    nobody_holds,
    no_restore_asks_for_time,
    digests_agree,
)


def _other_replicas(facts: TrimFacts) -> list[int]:
    replicas = facts.leadership.replicas if isinstance(facts.leadership, Leadership) else ()
    return sorted(set(replicas) - {facts.broker_id})


def _furthest(facts: TrimFacts) -> Trim | Keep:
    """The last end of a local segment up to which all has expired and is in the tier."""
    assert isinstance(facts.lead, Eligible)
    assert facts.log_start is not None
    assert facts.digest is not None
    start, frontier = facts.log_start, facts.tier.frontier or 0
    needed_from = _needed_from(facts, start)
    chain = _chain(facts.tier.finished(), needed_from)
    if not chain and needed_from == start:
        return Keep(reason=Reason.NOT_IN_TIER, detail=f"offset {start} is in no finished copy")
    bound = _bound(facts, chain, needed_from)
    up_to, why = _expired_up_to(facts, start, bound, max(needed_from, _old_up_to(facts, chain)))
    if up_to is None:
        return why
    if unsaved := _unsaved_epoch(facts, up_to):
        return unsaved
    return Trim(
        old_start=start,
        up_to=up_to,
        certificate=Certificate(
            leader_epoch=facts.lead.leader_epoch,
            frontier=frontier,
            metadata_partition=facts.metadata_partition,
            metadata_offset=facts.digest.offset,
            digest=facts.digest.hex(),
            agreeing_brokers=tuple(sorted({*_other_replicas(facts), facts.broker_id})),
            copies=tuple(copy for copy in chain if copy.base_offset < up_to),
        ),
    )


def _needed_from(facts: TrimFacts, start: int) -> int:
    """Where the copies must begin: the recorded start, if all from the log's start to there was in the tier.

    What was never tiered is below `first_tiered_offset`, or in a gap: it did not expire there.
    """
    record = facts.tier.record
    assert record is not None, "a table without a record is doubted"
    was_never_there = start < record.first_tiered_offset or any(
        gap.start_offset < record.log_start and start < gap.end_offset for gap in record.gaps
    )
    return start if was_never_there else max(start, record.log_start)


def _bound(facts: TrimFacts, chain: Sequence[TierCopy], needed_from: int) -> int:
    """The least of what is covered without a break, the frontier, and what is committed."""
    assert isinstance(facts.lead, Eligible)
    return min(_covered_end(chain, needed_from), facts.tier.frontier or 0, facts.lead.bound)


def _covered_end(chain: Sequence[TierCopy], start: int) -> int:
    return max((copy.covered_end for copy in chain), default=start)


def _chain(finished: Iterator[TierCopy], start: int) -> list[TierCopy]:
    """The copies that cover the log from `start` on without a break, by rising base."""
    chain: list[TierCopy] = []
    at = start
    for copy in finished:
        if copy.covered_end <= start:
            continue
        if copy.base_offset > at:
            break
        if copy.covered_end > copy.base_offset:
            chain.append(copy)
            at = max(at, copy.covered_end)
    return chain


def _expired_up_to(facts: TrimFacts, start: int, bound: int, old_up_to: int) -> tuple[int | None, Keep]:
    """How far the local head has expired, in whole segments; and why not further.

    By time a segment has expired when every copy that reaches into what lies before its end has: one copy
    without a timestamp, or with one that is young, keeps all behind it.
    """
    up_to: int | None = None
    left_bytes = sum(segment.size_bytes for segment in facts.segments) + facts.active_bytes
    for segment in facts.segments:
        left_bytes -= segment.size_bytes
        if segment.end_offset <= start:
            continue
        if segment.base_offset > max(start, up_to or start):
            detail = f"no file here holds offset {max(start, up_to or start)}"
            return up_to, Keep(reason=Reason.REPLICA_DOUBTED, detail=detail)
        if segment.end_offset > bound:
            detail = f"the segment ends at {segment.end_offset}, and it is in the tier up to {bound}"
            return up_to, Keep(reason=Reason.AT_FRONTIER, detail=detail)
        if segment.end_offset > old_up_to and not _is_much(facts, left_bytes):
            detail = f"the segment that ends at {segment.end_offset} is kept by local retention"
            return up_to, Keep(reason=Reason.NOT_EXPIRED, detail=detail)
        up_to = segment.end_offset
    return up_to, Keep(reason=Reason.NOT_EXPIRED, detail="no other segment is closed")


def _old_up_to(facts: TrimFacts, chain: Sequence[TierCopy]) -> int:
    """Where the first copy begins that has not expired by time."""
    limit_ms = facts.policy.local_ms
    if limit_ms is None:
        return 0
    for copy in chain:
        newest_ms = copy.max_timestamp_ms
        if newest_ms == NO_TIMESTAMP_MS or facts.now_ms - newest_ms <= limit_ms:
            return copy.base_offset
    return _covered_end(chain, 0)


def _is_much(facts: TrimFacts, left_bytes: int) -> bool:
    return facts.policy.local_bytes is not None and left_bytes >= facts.policy.local_bytes


def _unsaved_epoch(facts: TrimFacts, up_to: int) -> Keep | None:
    """An epoch of the broker's history that the trim cuts, and that the log's record does not have there."""
    saved = facts.record.leader_epochs
    for entry in facts.epochs:
        before = [each.epoch for each in saved if each.start_offset <= entry.start_offset]
        if entry.start_offset < up_to and before[-1:] != [entry.epoch]:
            detail = f"epoch {entry.epoch} from {entry.start_offset} on is not in the log's record"
            return Keep(reason=Reason.EPOCHS_NOT_SAVED, detail=detail)
    return None
