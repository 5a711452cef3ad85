"""A log in the tier and on the leader's disk, agents that say their digests, a store and a leader: for trim.

Built on the expiry's world for the table and the topic. Everything a trim asks can be made to answer wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rules.events import LogEvent, TrimCertified, TrimOutcome
from tests.tiering.retention.world import DAY_MS, EPOCH, NOW_MS, World
from tests.tiering.segments.strategies import LOG
from tests.tiering.uploader import brokers
from tiering.cluster.gate import Eligible, Verdict
from tiering.cluster.interface import (
    Cause,
    LeaderOffsets,
    Leadership,
    Recovery,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.settings import Setting, Source, topic_settings
from tiering.log.wire import Uuid
from tiering.retention.digests import Said
from tiering.retention.facts import TierCopy, facts_of
from tiering.retention.local import Certificate, LocalSegment, Trim, TrimFacts
from tiering.retention.local_policy import LocalPolicy
from tiering.retention.local_trim import Answer, Answered, TrimPorts, TrimRun, trim
from tiering.segments.records import EpochStart, SegmentRecord
from tiering.store.errors import Missing
from tiering.store.interface import Stored

__all__ = ["LOG", "PARTITION", "TrimWorld", "certified", "settings_with"]

DEFAULTS = {**brokers.DEFAULTS, "unclean.leader.election.enable": "false"}
PARTITION = TopicPartition("orders", LOG.partition)
BROKER, OTHERS = 1, (2, 3)


def settings_with(**changed: str) -> TopicSettings:
    """Kafka's names with _ for . in them."""
    entries = {name: Setting(value=value, source=Source.DEFAULT) for name, value in DEFAULTS.items()}
    entries |= {name.replace("_", "."): Setting(value=v, source=Source.TOPIC) for name, v in changed.items()}
    return topic_settings("orders", entries)


def certified(up_to: int) -> Trim:
    """A decision that somebody made."""
    case = Certificate(
        leader_epoch=EPOCH,
        frontier=up_to,
        metadata_partition=0,
        metadata_offset=0,
        digest="0" * 64,
        agreeing_brokers=(1,),
        copies=(),
    )
    return Trim(old_start=0, up_to=up_to, certificate=case)


@dataclass
class TrimWorld:
    """Three replicas; broker 1 leads. `disk_start` is the log's start on all of them."""

    tier: World = field(default_factory=World)
    now_ms: int = NOW_MS
    policy: LocalPolicy = field(
        default_factory=lambda: LocalPolicy(trims=True, local_ms=DAY_MS, local_bytes=None)
    )
    settings: TopicSettings | Unknown = field(default_factory=settings_with)
    lead: Verdict | None = None  # None: this broker's, at EPOCH, as far as is committed
    high_watermark: int = 1_000
    disk_start: int = 0
    segments: list[LocalSegment] = field(default_factory=list)
    active_bytes: int = 50
    was_compacted: bool = False
    doubts: tuple[str, ...] = ()
    epochs: tuple[EpochStart, ...] = (EpochStart(0, 0),)
    age_of_answers_ms: int = 10
    said: dict[int, Said] | None = None  # None: all agree
    complete_from: int = 0
    lag: int = 0
    answer: Answered = field(default_factory=lambda: Answered(answer=Answer.DONE, reason="done"))
    applies: bool = True  # whether the leader does what it is asked
    is_silent: bool = False  # afterwards, when it is read back
    asked: list[int] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)  # keys the store does not show
    headed: list[str] = field(default_factory=list)
    looks: int = 0
    at_look: dict[int, Callable[[], None]] = field(default_factory=dict)
    events: list[LogEvent] = field(default_factory=list)
    emitted: Callable[[LogEvent], None] = lambda event: None
    records: list[SegmentRecord] = field(default_factory=list)

    def fill(self, *bases: int, size: int = 100) -> None:
        """A claim, and a copy and a local segment of `size` offsets at each base, long expired."""
        self.tier.claim()
        for base in bases:
            self.copy(base, base + size)
            self.segments.append(LocalSegment(base, base + size, 100 * size))

    def copy(self, base: int, end: int, **fields: Any) -> SegmentRecord:
        made = self.tier.copy(base, end, **fields)
        self.records.append(made)
        return made

    def facts(self) -> TrimFacts:
        digest = self.tier.table.digest(LOG)
        if digest is not None:
            digest = replace(digest, complete_from=self.complete_from)
        tier = facts_of(
            LOG,
            self.tier.table.view(LOG),
            applied_to=self.tier.table.position - self.lag,
            end_offset=len(self.tier.topic_records),
        )
        agreed = {} if digest is None else dict.fromkeys(OTHERS, Said(digest.offset, digest.hex()))
        return TrimFacts(
            tier=tier,
            digest=digest,
            said=agreed if self.said is None else self.said,
            metadata_partition=0,
            policy=self.policy,
            broker_id=BROKER,
            lead=self.lead or Eligible(leader_epoch=EPOCH, bound=self.high_watermark),
            leadership=Leadership(
                topic="orders",
                topic_id=Uuid(LOG.topic_id),
                partition=LOG.partition,
                leader_id=BROKER,
                leader_epoch=EPOCH,
                replicas=(BROKER, *OTHERS),
                isr=(BROKER,),
                recovery=Recovery.RECOVERED,
            ),
            log_start=self.disk_start,
            settings=self.settings,
            was_compacted=self.was_compacted,
            doubts=self.doubts,
            segments=tuple(self.segments),
            active_bytes=self.active_bytes,
            epochs=self.epochs,
            asked_at_ms=self.now_ms - self.age_of_answers_ms,
            now_ms=self.now_ms,
        )

    # The ports.

    @property
    def ports(self) -> TrimPorts:
        return TrimPorts(
            look=self._look,
            segment=self.tier.segment,
            objects=self,
            requests=self,
            offsets=self,
            sink=self,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"id-{next(self.tier.numbers)}",
        )

    def trim(self) -> TrimRun:
        return trim(LOG, PARTITION, self.ports)

    def _look(self) -> TrimFacts:
        look, self.looks = self.looks, self.looks + 1
        if look in self.at_look:
            self.at_look.pop(look)()
        return self.facts()

    def head(self, key: str, version_id: str | None = None) -> Stored:
        self.headed.append(key)
        for record in self.records:
            for _, ref in record.objects.present():
                if ref.key == key and key not in self.lost:
                    return Stored(
                        size_bytes=ref.size_bytes, checksum=ref.checksum, version_id=version_id or ""
                    )
        raise Missing(bucket="memory", key=key, operation="head", why="not there")

    def delete_records(self, partition: TopicPartition, up_to: int) -> Answered:
        assert partition == PARTITION
        self.asked.append(up_to)
        if self.applies:
            self.disk_start = max(self.disk_start, up_to)
            self.segments = [each for each in self.segments if each.end_offset > self.disk_start]
        return self.answer

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]:
        answer: LeaderOffsets | Unknown = LeaderOffsets(
            topic_id=Uuid(LOG.topic_id),
            leader_id=BROKER,
            leader_epoch=EPOCH,
            high_watermark=self.high_watermark,
            last_stable_offset=self.high_watermark,
            log_start=self.disk_start,
        )
        if self.is_silent:
            answer = Unknown(cause=Cause.NO_ANSWER, reason="silence")
        return dict.fromkeys(partitions, answer)

    def emit(self, event: LogEvent) -> None:
        self.emitted(event)
        self.events.append(event)

    def certificates(self) -> list[TrimCertified]:
        return [event for event in self.events if isinstance(event, TrimCertified)]

    def outcomes(self) -> list[TrimOutcome]:
        return [event for event in self.events if isinstance(event, TrimOutcome)]

    def covering(self) -> list[TierCopy]:
        return list(facts_of(LOG, self.tier.view, applied_to=0, end_offset=0).finished())
