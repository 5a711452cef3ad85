"""Asks the audit's own machine before anything is deleted: what it would condemn is not done.

What the agent knows of the log is told to the machine as the events that it would have become: the policy in
force, the copies, the holds, the disk. Then the deletion is told, with all that can be decided about it
decided. What the machine would find, or cannot tell, is a reason to keep (AUDIT_FACTS 24).

    of expiry  DELETE_STARTED of the copy, by DEL-01, HLD-01, SEG-02 and what else is about it
    of trim    the start's move without any permit, by START-02, and its certificate, by HLD-01

Owns the telling. Refuses to be the only guard: it stands behind those of `remote` and `local`, and shares no
code with them. Invariant: a function of the facts; it changes nothing and fails nobody but the one deletion.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from rules.events import (
    BaselineOccasion,
    CopyFinished,
    CopyStarted,
    DeleteCause,
    DeleteStarted,
    Event,
    HoldPlaced,
    LeaderChanged,
    LeadershipClaimed,
    LogBaseline,
    LogEvent,
    LogStartAdvanced,
    PolicyDeclared,
    ReplicaAppearance,
    ReplicaEvent,
    ReplicaStarted,
    Source,
    TopicDeleted,
    TrimCertified,
)
from rules.identity import LogId
from rules.machine import LogState, Speaker, Terms, Told, fold, newborn
from rules.machine.gate import MayDelete, would_be
from tiering.retention.facts import TierCopy, TierFacts
from tiering.retention.local import Trim, TrimFacts
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import Situation
from tiering.segments.records import SegmentState

DAY_MS = 24 * 3_600_000
TERMS = Terms()
_NAME = "log"  # one log is judged alone, and the policy that is told is its own
_BROKER = 1
_KRAFT = {"source": Source.KRAFT, "is_coalesced": False, "not_before_ms": None}


def before_removal(now: Situation, copy: TierCopy, cause: DeleteCause) -> Keep | None:
    """Why this copy's DELETE_STARTED is not to be written, if so."""
    facts = now.facts
    record = facts.record
    gone_ms = record.topic_deleted_at_ms if record is not None else None
    telling = _Telling(facts.log, min(now.now_ms, gone_ms or now.now_ms) - DAY_MS)
    telling.policy(total_ms=now.policy.total_ms, total_bytes=now.policy.total_bytes)
    telling.tier(facts)
    if now.local:
        on_disk = sum(each.size_bytes for each in now.local)
        start = min(each.base_offset for each in now.local)
        telling.disk(start, max(each.end_offset for each in now.local), on_disk)
    if cause is DeleteCause.TOPIC_DELETED and gone_ms is not None:
        telling.now_ms = gone_ms
        telling.say(TopicDeleted, topic_id=facts.log.topic_id, topic=_NAME, metadata_offset=1, **_KRAFT)
    known = telling.known(now.now_ms)
    telling.say(
        DeleteStarted,
        segment_id=copy.segment_id,
        base_offset=copy.base_offset,
        end_offset=copy.end_offset,
        generation=0,
        cause=cause,
        metadata_offset=telling.next_offset(),
    )
    return _answer(known, telling.asked(), f"segment {copy.segment_id}")


def before_trim(facts: TrimFacts, plan: Trim) -> Keep | None:
    """Why the leader is not to be asked to move the start, if so."""
    tier = facts.tier
    moved = _Telling(tier.log, facts.now_ms - DAY_MS)
    moved.policy(total_ms=None, total_bytes=None)  # by retention it may go, and yet trim is no retention
    moved.tier(tier)
    moved.disk(plan.old_start, max(plan.up_to, tier.frontier or 0), 0)
    known = moved.known(facts.now_ms)
    moved.replica(
        LogStartAdvanced,
        old_start=plan.old_start,
        new_start=plan.up_to,
        local_start=plan.up_to,
        checkpoint_entry=plan.up_to,
        high_watermark=None,
        reason_hint=None,
    )
    what = f"trim to {plan.up_to}"
    # Inside a segment it may end: for that the certificate is the permit.
    if kept := _answer(known, moved.asked(), what, but="START-05"):
        return kept
    held = _Telling(tier.log, facts.now_ms - DAY_MS)
    held.tier(tier)
    known = held.known(facts.now_ms)
    case = plan.certificate
    held.say(
        TrimCertified,
        certificate_id="asked",
        old_start=plan.old_start,
        new_start=plan.up_to,
        frontier=case.frontier,
        metadata_partition=case.metadata_partition,
        metadata_offset=held.next_offset(),
        digest=case.digest,
        agreeing_brokers=case.agreeing_brokers,
        segments=(),
    )
    return _answer(known, held.asked(), what)


def _answer(known: LogState, asked: list[Told], what: str, *, but: str | None = None) -> Keep | None:
    answer = would_be(known, asked, TERMS)
    if isinstance(answer, MayDelete):
        return None
    reasons = [each for each in answer.reasons if but is None or not each.startswith(f"{but}:")]
    if not reasons:
        return None
    return Keep(reason=Reason.AUDIT_WOULD_CONDEMN, detail=f"{what}: {'; '.join(reasons)}")


@dataclass
class _Telling:
    """What is known, said as the machine takes it."""

    log: LogId
    now_ms: int
    said: list[Told] = field(default_factory=list)
    told_before: int = 0
    log_seq: int = 0
    offset: int = 0

    def next_offset(self) -> int:
        self.offset += 1
        return self.offset

    def say(self, kind: type[Event], **own: Any) -> None:
        seq = len(self.said)
        is_of_log = issubclass(kind, LogEvent)
        about: dict[str, Any] = {"cluster_id": self.log.cluster_id}
        if is_of_log:
            about = {"log": self.log, "topic": _NAME, "leader_epoch": own.pop("leader_epoch", -1)}
        event = kind(
            event_id=hashlib.sha256(f"{self.log} {seq}".encode()).hexdigest()[:32],
            occurred_at_ms=self.now_ms,
            **about,
            **own,
        )
        self.said.append(
            Told(
                event=event,
                speaker=Speaker(_BROKER, "gate", 0),
                seq=seq,
                log_seq=self.log_seq if is_of_log else None,
                observed_at_ms=self.now_ms,
                kind=kind.kind,
            )
        )
        self.log_seq += is_of_log

    def known(self, at_ms: int) -> LogState:
        """All that was said until now; what is said from here on is asked about, as of `at_ms`."""
        state = fold(newborn(self.log, _NAME), self.said, TERMS)
        self.told_before, self.now_ms = len(self.said), at_ms
        return state

    def asked(self) -> list[Told]:
        return self.said[self.told_before :]

    def policy(self, *, total_ms: int | None, total_bytes: int | None) -> None:
        """What is undeclared keeps for ever: so does the audit where a tier is declared and no total."""
        declared = {
            "tiering": True,
            "total_retention_ms": -1 if total_ms is None else total_ms,
            "total_retention_bytes": -1 if total_bytes is None else total_bytes,
        }
        for key, value in declared.items():
            self.say(
                PolicyDeclared,
                principal="agent",
                change_id="in force",
                policy_hash="",
                policy_offset=0,
                pattern=_NAME,
                key=key,
                before=None,
                after=json.dumps("unlimited" if value == -1 else value),
            )

    def tier(self, facts: TierFacts) -> None:
        self.say(LeadershipClaimed, broker_id=_BROKER, metadata_offset=self.next_offset())
        for copy in facts.copies:
            about: dict[str, Any] = {
                "segment_id": copy.segment_id,
                "base_offset": copy.base_offset,
                "end_offset": copy.end_offset,
                "generation": 0,
            }
            content = {
                "data_end": copy.covered_end,
                "size_bytes": copy.size_bytes,
                "record_count": None,
                "max_timestamp_ms": copy.max_timestamp_ms,
            }
            self.say(CopyStarted, **about, **content, metadata_offset=self.next_offset())
            if copy.state is not SegmentState.COPY_STARTED:
                self.say(CopyFinished, **about, **content, objects=(), metadata_offset=self.next_offset())
            if copy.state is SegmentState.DELETE_STARTED:
                self.say(DeleteStarted, **about, cause=None, metadata_offset=self.next_offset())
        for hold in facts.record.holds if facts.record is not None else ():
            self.say(
                HoldPlaced,
                hold_id=hold.hold_id,
                start_offset=hold.start_offset,
                end_offset=hold.end_offset,
                principal=hold.placed_by,
                reason=hold.reason,
                finding_id=None,
                metadata_offset=self.next_offset(),
            )

    def disk(self, start: int, end: int, size_bytes: int) -> None:
        """The leader's: it leads, and holds `[start, end)`."""
        self.say(
            LeaderChanged,
            leader_id=_BROKER,
            isr=(_BROKER,),
            replicas=(_BROKER,),
            is_unclean=False,
            metadata_offset=0,
            **_KRAFT,
        )
        at = {"log_start": start, "local_start": start, "high_watermark": end, "log_end": end}
        self.replica(ReplicaStarted, appearance=ReplicaAppearance.FIRST_SEEN, **at)
        self.replica(
            LogBaseline,
            occasion=BaselineOccasion.ONBOARDING,
            epochs=(),
            segment_count=None,
            size_bytes=size_bytes,
            segments_digest=None,
            metadata_offset=None,
            **at,
        )

    def replica(self, kind: type[ReplicaEvent], **own: Any) -> None:
        self.say(
            kind,
            broker_id=_BROKER,
            directory_id="own",
            replica_incarnation=0,
            ordinal=len(self.said),
            source=Source.LOG_DIR,
            not_before_ms=self.now_ms,
            **own,
        )
