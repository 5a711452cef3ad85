"""What Seawall would cost a month at today's rates: S3 for each topic if it were tiered, Spark for the audit.

Storage is what is kept once retention is full: a day's bytes times the days that are declared, at most what
retention.bytes allows, at least what is there now, and for some days more what was deleted already. One copy
goes to S3, whatever the replication factor. A topic without any limit grows: it is told as in a year.

Owns the arithmetic; `assumed` has the numbers. Refuses to count what was not told: such a topic has a reason
in place of a sum, and the total says how many there are.

Invariant: the total is the sum of the topics that have one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from seawall.init.assumed import DAYS_A_MONTH, GIB, Prices, Work
from seawall.init.rates import DAY_MS, TopicRate
from seawall.init.seen import Seen
from tiering.cluster.interface import TopicSettings, Unknown
from tiering.cluster.topics import is_internal

DAYS_A_YEAR = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCost:
    """If the topic were tiered. `kept_bytes` is with what was deleted and can still be put back."""

    topic: str
    bytes_now: int
    bytes_per_day: float
    kept_bytes: float
    grows: bool  # nothing limits it: kept_bytes is what there will be in a year
    segments_per_day: float
    puts_per_month: float
    gets_per_month: float
    storage_usd: float
    requests_usd: float

    @property
    def usd(self) -> float:
        return self.storage_usd + self.requests_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCounted:
    """A topic without a sum, and why."""

    topic: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCost:
    """A day of evidence, and the Spark that takes it in and judges it."""

    events_per_day: float
    topic_bytes_per_day: float  # of `__seawall_audit`, in one copy
    table_bytes_per_month: float
    spark_s_per_day: float
    spark_usd: float  # a month


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """All of it. `observing` is the audit as it begins, `tiered` with every topic that could be."""

    topics: tuple[TopicCost, ...]
    not_counted: tuple[NotCounted, ...]
    observing: AuditCost
    tiered: AuditCost

    @property
    def kept_bytes(self) -> float:
        return sum(each.kept_bytes for each in self.topics)

    @property
    def storage_usd(self) -> float:
        return sum(each.storage_usd for each in self.topics)

    @property
    def requests_usd(self) -> float:
        return sum(each.requests_usd for each in self.topics)


def estimate(seen: Seen, rates: Mapping[str, TopicRate], *, prices: Prices, work: Work) -> Estimate:
    costs: list[TopicCost] = []
    left_out: list[NotCounted] = []
    for topic, rate in rates.items():
        if is_internal(topic):
            continue
        found = _topic(seen, rate, prices, work)
        if isinstance(found, NotCounted):
            left_out.append(found)
        else:
            costs.append(found)
    tiered = {each.topic for each in costs}
    return Estimate(
        topics=tuple(sorted(costs, key=lambda each: -each.usd)),
        not_counted=tuple(left_out),
        observing=_audit(sum(_events(seen, rates, set(), work)), prices, work),
        tiered=_audit(sum(_events(seen, rates, tiered, work)), prices, work),
    )


def _topic(seen: Seen, rate: TopicRate, prices: Prices, work: Work) -> TopicCost | NotCounted:
    found = seen.settings[rate.topic]
    if isinstance(found, Unknown):
        return NotCounted(topic=rate.topic, why=f"its settings are not known: {found.reason}")
    settings = found.settings
    if settings.is_compacted:
        return NotCounted(topic=rate.topic, why="it is compacted, and never tiered")
    if settings.remote_storage_enable.value:
        return NotCounted(topic=rate.topic, why="Kafka's own tiered storage is on")
    if rate.bytes_per_day is None or rate.bytes_now is None:
        return NotCounted(topic=rate.topic, why="how large it is is not known")
    if rate.missing:
        return NotCounted(topic=rate.topic, why=f"{len(rate.missing)} of its partitions did not answer")
    kept, grows = _kept(settings, rate, work)
    segments = segments_per_day(settings, rate)
    puts, gets = _requests(rate.bytes_per_day, kept, segments, work)
    return TopicCost(
        topic=rate.topic,
        bytes_now=rate.bytes_now,
        bytes_per_day=rate.bytes_per_day,
        kept_bytes=kept,
        grows=grows,
        segments_per_day=segments,
        puts_per_month=puts,
        gets_per_month=gets,
        storage_usd=kept / GIB * prices.s3_gb_month,
        requests_usd=puts / 1000 * prices.s3_put_1000 + gets / 1000 * prices.s3_get_1000,
    )


def _kept(settings: TopicSettings, rate: TopicRate, work: Work) -> tuple[float, bool]:
    """What S3 holds in the end, and whether that is no end."""
    a_day = rate.bytes_per_day or 0.0
    limits: list[float] = []
    if settings.retention_ms.value >= 0:
        limits.append(a_day * settings.retention_ms.value / DAY_MS)
    if settings.retention_bytes.value >= 0:
        limits.append(float(settings.retention_bytes.value * len(rate.partitions)))
    if not limits:
        return ((rate.bytes_now or 0) + a_day * DAYS_A_YEAR) * (1 + work.side_share), True
    # At least what is there: a topic may be quiet today, and its last days are on disk.
    kept = max(min(limits), float(rate.bytes_now or 0)) + a_day * work.kept_after_days
    return kept * (1 + work.side_share), False


def segments_per_day(settings: TopicSettings, rate: TopicRate) -> float:
    """Closed in a day: by size, or by time where records come. A segment is closed by a record after it."""
    total = 0.0
    for each in rate.partitions:
        by_size = (each.bytes_per_day or 0.0) / max(settings.segment_bytes.value, 1)
        by_time = DAY_MS / max(settings.segment_ms.value, 1)
        total += max(by_size, min(by_time, each.records_per_day))
    return total


def _requests(a_day: float, kept: float, segments: float, work: Work) -> tuple[float, float]:
    """A month's PUTs (with lists) and GETs (with heads)."""
    if segments <= 0:
        return 0.0, 0.0
    size = a_day / segments
    sends = 1 if size <= work.part_bytes else math.ceil(size / work.part_bytes) + 2
    scrubs = DAYS_A_MONTH / work.scrub_days
    objects = work.objects * (kept / size if size > 0 else 0.0)
    puts = segments * (sends + work.objects - 1) * DAYS_A_MONTH + objects / work.listed_at_once * scrubs
    gets = segments * work.read_backs * DAYS_A_MONTH + objects * scrubs
    return puts, gets


def _events(seen: Seen, rates: Mapping[str, TopicRate], tiered: set[str], work: Work) -> Iterator[float]:
    """Events of a day, source by source."""
    agents = len(seen.brokers)
    yield agents * work.heartbeats_a_day
    for topic, rate in rates.items():
        copies = {number: len(each.replicas) for number, each in seen.topics[topic].items()}
        yield sum(copies.values()) * work.baselines_a_day
        for each in rate.partitions:
            yield copies[each.partition.partition] * min(each.records_per_day, work.watermarks_a_day)
        found = seen.settings[topic]
        if not isinstance(found, Unknown) and copies:
            closed = segments_per_day(found.settings, rate)
            yield closed * max(copies.values()) * work.events_a_segment
            if topic in tiered:
                yield closed * (work.tier_events + work.tier_records * agents)


def _audit(events: float, prices: Prices, work: Work) -> AuditCost:
    spark_s = (
        work.ingests_a_day * work.start_s
        + events / work.ingest_events_per_s
        + work.start_s
        + work.judge_s
        + events / 1e6 * work.judge_s_per_million
    )
    an_hour = work.vcpus * prices.spark_vcpu_hour + work.memory_gb * prices.spark_gb_hour
    return AuditCost(
        events_per_day=events,
        topic_bytes_per_day=events * work.event_bytes,
        table_bytes_per_month=events * work.row_bytes * DAYS_A_MONTH,
        spark_s_per_day=spark_s,
        spark_usd=spark_s / 3600 * an_hour * DAYS_A_MONTH,
    )
