"""Histories for tests: what the emitters beside three brokers would say, told in a few words.

    h = kip405()              F-kip405 of RULES.md, as it is before anything happens
    h.after(minutes=5)        time passes
    h.start(1, 0, 3000)       broker 1's observer says that its log start went from 0 to 3000
    h.told                    all of it, as the machine takes it

Owns the saying. Each broker has an observer of its own, with numbers and a clock that does not fall; the
metadata is read beside broker 1.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rules.events import (
    BaselineOccasion,
    BrokerStarted,
    ConfigEffective,
    ConfigResource,
    ConfigSource,
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    Event,
    HighWatermark,
    IsrChanged,
    LeaderChanged,
    LogBaseline,
    LogEvent,
    LogStartAdvanced,
    Operation,
    OperationAuthorised,
    PolicyDeclared,
    ReplicaAppearance,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
    SegmentRemoval,
    Source,
    TierSet,
    TierState,
    TimestampBasis,
)
from rules.identity import LogId, ObjectRef
from rules.machine import LogState, Speaker, Terms, Told, fold, newborn
from rules.machine.verdict import Judgement, Status, judge

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
MIB = 1 << 20
T0_MS = 1_763_424_000_000
LOG = LogId("c1", "T1", 0)
TOPIC = "orders"
TERMS = Terms()
BROKERS = (1, 2, 3)
FOUND = tuple[str, str, tuple[tuple[int, int], ...]]


@dataclass
class History:
    """`mode` is none, ours or kip405; `now_ms` moves by `after`."""

    mode: str = "kip405"
    now_ms: int = T0_MS
    log: LogId = LOG
    told: list[Told] = field(default_factory=list)
    seqs: Counter[Speaker] = field(default_factory=Counter)
    log_seqs: Counter[Speaker] = field(default_factory=Counter)
    ordinals: Counter[int] = field(default_factory=Counter)
    lives: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, 100))
    epoch: int = 5
    leader: int = 1
    in_sync: tuple[int, ...] = BROKERS
    kraft_offset: int = 1_000
    tier_offset: int = 5_000
    policy_offset: int = 0
    last_look_ms: dict[int, int] = field(default_factory=dict)

    def after(self, *, minutes: float = 0, seconds: float = 0, hours: float = 0) -> History:
        self.now_ms += int(hours * HOUR_MS + minutes * MINUTE_MS + seconds * 1_000)
        return self

    def say(self, kind: type[Event], broker: int = 1, component: str = "agent", **own: Any) -> Event:
        speaker = Speaker(broker, component, 7)
        is_of_log = issubclass(kind, LogEvent)
        seq = self.seqs[speaker]
        about: dict[str, Any] = {"cluster_id": self.log.cluster_id}
        if is_of_log:
            about = {"log": self.log, "topic": TOPIC, "leader_epoch": own.pop("leader_epoch", self.epoch)}
        event = kind(
            event_id=hashlib.sha256(f"{speaker} {seq}".encode()).hexdigest()[:16],
            occurred_at_ms=own.pop("at_ms", self.now_ms),
            **about,
            **own,
        )
        self.told.append(
            Told(
                event=event,
                speaker=speaker,
                seq=seq,
                log_seq=self.log_seqs[speaker] if is_of_log else None,
                observed_at_ms=self.now_ms,
            )
        )
        self.seqs[speaker] += 1
        if is_of_log:
            self.log_seqs[speaker] += 1
        self.now_ms += 1
        return event

    # --- what disks show

    def replica(self, kind: type[Event], broker: int, **own: Any) -> None:
        since_ms = own.pop("not_before_ms", self.now_ms - 10_000)
        self.say(
            kind,
            broker,
            broker_id=broker,
            directory_id=f"d{broker}",
            replica_incarnation=self.lives[broker],
            ordinal=self.ordinals[broker],
            source=Source.LOG_DIR,
            not_before_ms=since_ms,
            **own,
        )
        self.ordinals[broker] += 1

    def started(
        self,
        broker: int,
        *,
        start: int | None,
        local: int | None,
        watermark: int | None,
        how: ReplicaAppearance = ReplicaAppearance.CREATED,
    ) -> None:
        """A new life, unless it is seen for the first time."""
        if how is not ReplicaAppearance.FIRST_SEEN:
            self.lives[broker] += 1
            self.ordinals[broker] = 0
        self.replica(
            ReplicaStarted,
            broker,
            appearance=how,
            log_start=start,
            local_start=local,
            high_watermark=watermark,
            log_end=None,
        )

    def baseline(
        self, broker: int, *, start: int, local: int, watermark: int, size_bytes: int, periodic: bool = True
    ) -> None:
        self.replica(
            LogBaseline,
            broker,
            occasion=BaselineOccasion.PERIODIC if periodic else BaselineOccasion.ONBOARDING,
            log_start=start,
            local_start=local,
            high_watermark=watermark,
            log_end=None,
            epochs=((self.epoch, 0),),
            segment_count=None,
            size_bytes=size_bytes,
            segments_digest=None,
            metadata_offset=None,
        )

    def closed(
        self, broker: int, base: int, end: int, newest_ms: int, size_bytes: int = MIB, **own: Any
    ) -> None:
        fields = {"data_end": None, "record_count": None, **own}
        self.replica(
            SegmentClosed,
            broker,
            base_offset=base,
            end_offset=end,
            size_bytes=size_bytes,
            max_timestamp_ms=newest_ms,
            timestamp_basis=TimestampBasis.INDEXED,
            **fields,
        )

    def dropped(
        self,
        broker: int,
        base: int,
        end: int,
        newest_ms: int | None,
        size_bytes: int = MIB,
        how: SegmentRemoval = SegmentRemoval.RENAMED,
    ) -> None:
        self.replica(
            SegmentDeletedLocal,
            broker,
            base_offset=base,
            end_offset=end,
            size_bytes=size_bytes,
            max_timestamp_ms=newest_ms,
            timestamp_basis=TimestampBasis.INDEXED,
            segment_removal=how,
            reason_hint=None,
        )

    def start(
        self, broker: int, old: int, new: int, *, local: int | None = None, watermark: int | None = 10_500
    ) -> None:
        self.replica(
            LogStartAdvanced,
            broker,
            old_start=old,
            new_start=new,
            local_start=local,
            checkpoint_entry=new,
            high_watermark=watermark,
            reason_hint=None,
        )

    def watermark(
        self, broker: int, watermark: int, *, start: int = 0, size_bytes: int | None = None
    ) -> None:
        self.replica(
            HighWatermark,
            broker,
            log_start=start,
            high_watermark=watermark,
            log_end=None,
            size_bytes=size_bytes,
        )

    def restarted(self, broker: int, *, clean: bool | None) -> None:
        self.say(BrokerStarted, broker, broker_id=broker, is_clean=clean, not_before_ms=self.now_ms - 10_000)

    # --- what the metadata says

    def elects(self, leader: int, in_sync: Sequence[int] | None = None, *, unclean: bool = False) -> None:
        self.epoch += 1
        self.leader = leader
        self.in_sync = tuple(in_sync) if in_sync is not None else self.in_sync
        self.leadership(unclean=unclean)

    def leadership(self, *, unclean: bool = False, replicas: tuple[int, ...] = BROKERS) -> None:
        self.kraft_offset += 1
        self.say(
            LeaderChanged,
            component="metadata",
            source=Source.KRAFT,
            metadata_offset=self.kraft_offset,
            is_coalesced=False,
            not_before_ms=None,
            leader_id=self.leader,
            isr=self.in_sync,
            replicas=replicas,
            is_unclean=unclean,
        )

    def syncs(self, *in_sync: int) -> None:
        self.in_sync = in_sync
        self.kraft_offset += 1
        self.say(
            IsrChanged,
            component="metadata",
            source=Source.KRAFT,
            metadata_offset=self.kraft_offset,
            is_coalesced=False,
            not_before_ms=None,
            isr=in_sync,
        )

    def config(self, key: str, new: str | None, old: str | None = None, *, first: bool = False) -> None:
        self.kraft_offset += 1
        self.say(
            ConfigEffective,
            component="metadata",
            resource=ConfigResource.TOPIC,
            topic_id=self.log.topic_id,
            topic=TOPIC,
            broker_id=None,
            key=key,
            old_value=old,
            new_value=new,
            config_source=ConfigSource.TOPIC,
            is_first_sight=first,
            source=Source.KRAFT,
            metadata_offset=self.kraft_offset,
            is_coalesced=False,
            not_before_ms=None,
        )

    def declares(self, change_id: str, **keys: str | None) -> None:
        """One change of the policy, for this topic; values as JSON."""
        self.policy_offset += 1
        for key, after in keys.items():
            self.say(
                PolicyDeclared,
                component="policy",
                principal="alice",
                change_id=change_id,
                policy_hash="0" * 64,
                policy_offset=self.policy_offset,
                pattern=TOPIC,
                key=key,
                before=None,
                after=after,
            )

    def allows(
        self,
        operation: Operation,
        *,
        start: int | None = None,
        end: int | None = None,
        at_ms: int | None = None,
        principal: str = "alice",
        hours: int = 1,
    ) -> None:
        from_ms = self.now_ms if at_ms is None else at_ms
        self.say(
            OperationAuthorised,
            component="policy",
            principal=principal,
            change_id="CHG-7",
            operation=operation,
            topic_id=self.log.topic_id,
            topic=TOPIC,
            partition=None,
            start_offset=start,
            end_offset=end,
            valid_from_ms=from_ms,
            expires_at_ms=from_ms + hours * HOUR_MS,
            reason="it was asked for",
        )

    # --- the tier

    def tier(self, kind: type[Event], segment_id: str, base: int, end: int, **own: Any) -> None:
        self.tier_offset += 1
        source = Source.REMOTE_LOG_METADATA if self.mode == "kip405" else None
        fields = {"source": source, "generation": 0, "metadata_offset": self.tier_offset, **own}
        self.say(
            kind,
            fields.pop("broker", self.leader),
            segment_id=segment_id,
            base_offset=base,
            end_offset=end,
            **fields,
        )

    def copy_started(
        self, segment_id: str, base: int, end: int, newest_ms: int, size_bytes: int = MIB
    ) -> None:
        self.tier(
            CopyStarted,
            segment_id,
            base,
            end,
            data_end=end,
            record_count=end - base,
            size_bytes=size_bytes,
            max_timestamp_ms=newest_ms,
        )

    def copied(
        self, segment_id: str, base: int, end: int, newest_ms: int, size_bytes: int = MIB, **own: Any
    ) -> None:
        self.copy_started(segment_id, base, end, newest_ms, size_bytes)
        self.tier(
            CopyFinished,
            segment_id,
            base,
            end,
            data_end=end,
            record_count=end - base,
            size_bytes=size_bytes,
            max_timestamp_ms=newest_ms,
            **{"objects": (), **own},
        )

    def expunged(self, segment_id: str, base: int, end: int, *, finish: bool = True) -> None:
        self.tier(DeleteStarted, segment_id, base, end, cause=None)
        if finish:
            self.tier(DeleteFinished, segment_id, base, end, cause=None)

    def table(self, broker: int, digest: str, offset: int | None = None) -> None:
        self.say(
            TierState,
            broker,
            metadata_partition=0,
            metadata_offset=self.tier_offset if offset is None else offset,
            digest=digest,
            tiered_start=0,
            frontier=10_000,
            segment_count=10,
            size_bytes=10 * MIB,
        )

    def table_set(self, broker: int, members: dict[str, str], offset: int | None = None) -> None:
        self.say(
            TierSet,
            broker,
            metadata_partition=0,
            metadata_offset=self.tier_offset if offset is None else offset,
            members=tuple(sorted((f"T1:0:{key}", content) for key, content in members.items())),
        )

    # --- judging

    def state(self, terms: Terms = TERMS, as_of_ms: int | None = None) -> LogState:
        cut_ms = self.now_ms if as_of_ms is None else as_of_ms
        return fold(newborn(self.log, TOPIC), self.told, terms, as_of_ms=cut_ms)

    def judged(self, terms: Terms = TERMS) -> Judgement:
        return judge(self.state(terms), terms, from_ms=T0_MS)


def found(
    judgement: Judgement, *, open_only: bool = False
) -> set[tuple[str, str, tuple[tuple[int, int], ...]]]:
    """Rule, severity and range of each finding that was not withdrawn."""
    return {
        (each.rule_id, each.severity, each.ranges)
        for each in judgement.findings
        if each.status is not Status.WITHDRAWN and (not open_only or each.status is Status.OPEN)
    }


def parent_of(judgement: Judgement, rule_id: str) -> str | None:
    """The rule that explains a finding; None: it is a root."""
    by_id = {each.finding_id: each.rule_id for each in judgement.findings}
    [*_, child] = [each for each in judgement.findings if each.rule_id == rule_id]
    return None if child.parent is None else by_id[child.parent]


def newest(index: int) -> int:
    """Of S_index, as RULES.md has it, and a minute (AUDIT_FACTS 17)."""
    return T0_MS - (10 - index) * HOUR_MS + MINUTE_MS


def segment(index: int) -> tuple[str, int, int, int]:
    return f"s{index}", index * 1_000, (index + 1) * 1_000, newest(index)


def fixture(
    mode: str,
    *,
    local_from: int | None = None,
    declared: dict[str, str] | None = None,
    retention_ms: int = 7 * DAY_MS,
    retention_bytes: int = -1,
    expire_together: int = 0,
    versioned: bool = False,
) -> History:
    """F-kip405, F-ours or F-none, as it is at T0, seen for the first time a day ago."""
    h = History(mode=mode, now_ms=T0_MS - DAY_MS)
    first_local = 0 if mode == "none" else 9_000
    first_local = first_local if local_from is None else local_from
    start = 9_000 if mode == "ours" else 0
    base = {"total_retention_ms": '"7d"', "declare_grace_ms": '"1h"'}
    if mode == "ours":
        base |= {"local_retention_ms": '"1h"', "tiering": "true"}
    if mode == "kip405":
        base |= {"local_retention_ms": '"1h"'}
    h.declares("CHG-0", **(declared or base))
    if mode == "kip405":
        h.config("remote.storage.enable", "true", first=True)
        h.config("local.retention.ms", str(HOUR_MS), first=True)
    h.config("retention.ms", str(HOUR_MS if mode == "ours" else retention_ms), first=True)
    h.config("retention.bytes", str(retention_bytes), first=True)
    h.leadership()
    for broker in BROKERS:
        h.started(
            broker,
            start=start,
            local=first_local,
            watermark=10_500,
            how=ReplicaAppearance.FIRST_SEEN,
        )
        h.baseline(
            broker,
            start=start,
            local=first_local,
            watermark=10_500,
            size_bytes=(10_000 - first_local) // 1_000 * MIB + MIB // 2,
            periodic=False,
        )
        for index in range(first_local // 1_000, 10):
            _, low, high, newest_ms = segment(index)
            h.closed(broker, low, high, newest_ms)
    if mode != "none":
        for index in range(10):
            segment_id, low, high, newest_ms = segment(index)
            if index < expire_together:
                newest_ms = newest(expire_together - 1)
            ref = ObjectRef("k", MIB, "CRC64NVME", "x", "v1" if versioned else None)
            h.copied(segment_id, low, high, newest_ms, objects=(ref,))
    h.now_ms = T0_MS
    return h


def kip405(**own: Any) -> History:
    return fixture("kip405", **own)


def ours(**own: Any) -> History:
    return fixture("ours", **own)


def untiered(**own: Any) -> History:
    return fixture("none", **own)
