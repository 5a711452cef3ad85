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

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rules.events import (
    BaselineOccasion,
    CopyFinished,
    CopyStarted,
    DeleteCause,
    DeleteStarted,
    HoldPlaced,
    LeaderChanged,
    LeadershipClaimed,
    LogBaseline,
    LogStartAdvanced,
    PolicyDeclared,
    ReplicaAppearance,
    ReplicaStarted,
    Source,
    TopicDeleted,
    TrimCertified,
)
from rules.identity import LogId
from rules.machine import LogState, Speaker, Terms, Told, fold, newborn
from rules.machine.gate import MayDelete, would_be
from rules.machine.saying import Saying
from tiering.retention.facts import TierCopy, TierFacts
from tiering.retention.local import Trim, TrimFacts
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import Situation

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
    telling = _telling(facts.log, min(now.now_ms, gone_ms or now.now_ms) - DAY_MS)
    telling.policy(total_ms=now.policy.total_ms, total_bytes=now.policy.total_bytes)
    telling.tier(facts, copy)
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
    tier, what = facts.tier, f"trim to {plan.up_to}"
    moved = _telling(tier.log, facts.now_ms - DAY_MS)
    moved.policy(total_ms=None, total_bytes=None)  # by retention it may go, and yet trim is no retention
    moved.tier(tier)
    # What lies below the log's own start is no part of it any more: its expiry was asked about by itself.
    start = max(plan.old_start, min(facts.record.log_start, plan.up_to))
    moved.disk(start, max(plan.up_to, tier.frontier or 0), 0)
    known = moved.known(facts.now_ms)
    if start == plan.up_to:
        return _held(facts, plan, what)
    moved.say(
        LogStartAdvanced,
        old_start=start,
        new_start=plan.up_to,
        local_start=plan.up_to,
        checkpoint_entry=plan.up_to,
        high_watermark=None,
        reason_hint=None,
    )
    # Inside a segment it may end: for that the certificate is the permit.
    if kept := _answer(known, moved.asked(), what, but="START-05"):
        return kept
    return _held(facts, plan, what)


def _held(facts: TrimFacts, plan: Trim, what: str) -> Keep | None:
    """Whether a hold is on what is to go."""
    tier = facts.tier
    held = _telling(tier.log, facts.now_ms - DAY_MS)
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


class _Run(NamedTuple):
    """Offsets that copies cover without a break, each counted once."""

    start: int
    end: int
    size_bytes: int
    newest_ms: int


def _runs(copies: Iterable[TierCopy]) -> list[_Run]:
    """By rising offset. A log has ten thousand copies, and few runs."""
    found: list[_Run] = []
    for copy in sorted(copies, key=lambda each: each.order):
        if copy.covered_end <= copy.base_offset:
            continue
        last = found[-1] if found else None
        reached = last.end if last is not None else copy.base_offset
        fresh = copy.covered_end - max(copy.base_offset, reached)
        size_bytes = copy.size_bytes * max(fresh, 0) // (copy.covered_end - copy.base_offset)
        if last is None or copy.base_offset > last.end:
            found.append(_Run(copy.base_offset, copy.covered_end, copy.size_bytes, copy.max_timestamp_ms))
        else:
            found[-1] = _Run(
                last.start,
                max(last.end, copy.covered_end),
                last.size_bytes + size_bytes,
                max(last.newest_ms, copy.max_timestamp_ms),
            )
    return found


def _telling(log: LogId, at_ms: int) -> _Telling:
    return _Telling(log=log, topic=_NAME, now_ms=at_ms, speaker=Speaker(_BROKER, "gate", 0))


@dataclass(kw_only=True)
class _Telling(Saying):
    """What is known, said as the machine takes it."""

    told_before: int = 0
    offset: int = 0

    def next_offset(self) -> int:
        self.offset += 1
        return self.offset

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

    def tier(self, facts: TierFacts, asked: TierCopy | None = None) -> None:
        """The copies that count: the one that is asked about by itself, all others by what they cover."""
        self.say(LeadershipClaimed, broker_id=_BROKER, metadata_offset=self.next_offset())
        others = [copy for copy in facts.finished() if asked is None or copy.segment_id != asked.segment_id]
        for number, run in enumerate(_runs(others)):
            self._copy(f"run {number}", run.start, run.end, run.end, run.size_bytes, run.newest_ms)
        if asked is not None:
            end, covered_end = asked.end_offset, asked.covered_end
            times = asked.size_bytes, asked.max_timestamp_ms
            self._copy(asked.segment_id, asked.base_offset, end, covered_end, *times)
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

    def _copy(
        self, segment_id: str, base: int, end: int, data_end: int, size_bytes: int, newest_ms: int
    ) -> None:
        about: dict[str, Any] = {
            "segment_id": segment_id,
            "base_offset": base,
            "end_offset": end,
            "generation": 0,
            "data_end": data_end,
            "size_bytes": size_bytes,
            "record_count": None,
            "max_timestamp_ms": newest_ms,
        }
        self.say(CopyStarted, **about, metadata_offset=self.next_offset())
        self.say(CopyFinished, **about, objects=(), metadata_offset=self.next_offset())

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
        self.say(ReplicaStarted, appearance=ReplicaAppearance.FIRST_SEEN, **at)
        self.say(
            LogBaseline,
            occasion=BaselineOccasion.ONBOARDING,
            epochs=(),
            segment_count=None,
            size_bytes=size_bytes,
            segments_digest=None,
            metadata_offset=None,
            **at,
        )
