"""A cluster in memory, with a clock of its own: logs that grow while somebody sleeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seawall.init.look import Time, look
from seawall.init.seen import BrokerAddress, FirstSince, Listing, Seen
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    DescribedPartition,
    DescribedTopic,
    LeaderOffsets,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.log_sizes import Features, LogDir, Quorum
from tiering.cluster.settings import Setting, Source, topic_settings
from tiering.log.wire import ZERO_UUID

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
NEWEST_LEVEL = 30
REFUSED = Unknown(cause=Cause.REFUSED, reason="not allowed")

# As the broker gives them, by its own names, where a topic sets nothing.
BROKER_ENTRIES = {
    "log.cleanup.policy": "delete",
    "log.retention.ms": None,
    "log.retention.minutes": None,
    "log.retention.hours": "168",
    "log.retention.bytes": "-1",
    "log.local.retention.ms": "-2",
    "log.local.retention.bytes": "-2",
    "log.roll.ms": None,
    "log.roll.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.segment.delete.delay.ms": "60000",
    "min.insync.replicas": "2",
    "message.max.bytes": "1048588",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
}
TOPIC_ENTRIES = {
    "cleanup.policy": "delete",
    "remote.storage.enable": "false",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "segment.ms": "604800000",
    "segment.bytes": "1073741824",
    "file.delete.delay.ms": "60000",
    "min.insync.replicas": "2",
    "max.message.bytes": "1048588",
    "unclean.leader.election.enable": "false",
}


@dataclass(kw_only=True)
class Log:
    """Records of one size, one each `every_ms`, from `oldest_ms` on; it grows on as the clock does."""

    start: int = 0
    count: int = 0
    every_ms: int = 1000
    record_bytes: int = 100
    offsets: Unknown | None = None
    is_growing: bool = True

    def end(self, elapsed_ms: int) -> int:
        grown = elapsed_ms // self.every_ms if self.is_growing else 0
        return self.start + self.count + grown

    def first_since(self, at_ms: int) -> FirstSince | None:
        """The newest record that was there at NOW_MS is of that moment."""
        oldest_ms = NOW_MS - (self.count - 1) * self.every_ms
        at = max(0, -((oldest_ms - at_ms) // self.every_ms))
        if at >= self.count:
            return None
        return FirstSince(offset=self.start + at, timestamp_ms=oldest_ms + at * self.every_ms)


@dataclass(kw_only=True)
class Topic:
    own: dict[str, str] = field(default_factory=dict)  # set on the topic
    replicas: tuple[int, ...] = (1, 2, 3)
    isr: tuple[int, ...] | None = None
    leader_id: int | None = 1
    logs: list[Log] = field(default_factory=lambda: [Log()])
    settings: Unknown | None = None


@dataclass(kw_only=True)
class Broker:
    entries: dict[str, str | None] = field(default_factory=lambda: dict(BROKER_ENTRIES))
    settings: Unknown | None = None
    log_dirs: Unknown | None = None
    trouble: str | None = None
    total_bytes: int | None = 10**12
    usable_bytes: int | None = 5 * 10**11
    features: Features | Unknown = field(
        default_factory=lambda: Features(newest_metadata_version=NEWEST_LEVEL, metadata_version=NEWEST_LEVEL)
    )


class World:
    """A `seen.Cluster`: three brokers, three controllers apart, and whatever topics a test puts in."""

    def __init__(self) -> None:
        self.cluster_id: str | None = "ToYsBOATonAsEaOfTiDes1"
        self.brokers = {1: Broker(), 2: Broker(), 3: Broker()}
        self.topics: dict[str, Topic] = {}
        self.quorum: Quorum | Unknown = Quorum(leader_id=101, voter_ids=frozenset({101, 102, 103}))
        self.hidden: dict[str, int] = {}  # on disk, and not to be described
        self.elapsed_ms = 0
        self.told: list[tuple[str, float, float]] = []

    def seen(self, *, observe_s: float = 10.0) -> Seen:
        time = Time(now_ms=lambda: NOW_MS, monotonic_s=lambda: self.elapsed_ms / 1000, sleep=self._sleep)
        return look(self, observe_s=observe_s, time=time, progress=self._note)

    def _sleep(self, seconds: float) -> None:
        self.elapsed_ms += round(seconds * 1000)

    def _note(self, what: str, *, done: float, total: float) -> None:
        self.told.append((what, done, total))

    def listing(self) -> Listing:
        return Listing(
            cluster_id=self.cluster_id,
            brokers=tuple(BrokerAddress(broker_id=each, host="kafka", port=9092) for each in self.brokers),
            topics={name: self._partitions(topic) for name, topic in sorted(self.topics.items())},
        )

    def _partitions(self, topic: Topic) -> dict[int, DescribedPartition]:
        isr = topic.replicas if topic.isr is None else topic.isr
        each = DescribedPartition(leader_id=topic.leader_id, replicas=topic.replicas, isr=isr)
        return dict.fromkeys(range(len(topic.logs)), each)

    def word_of(self, broker: BrokerAddress) -> Word:
        return Word(self, broker.broker_id)

    def first_since(
        self, partitions: Iterable[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, FirstSince | Unknown | None]:
        return {each: self._log(each).first_since(at_ms) for each in partitions}

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]:
        return {each: self._offsets(each) for each in partitions}

    def _offsets(self, partition: TopicPartition) -> LeaderOffsets | Unknown:
        log, leader_id = self._log(partition), self.topics[partition.topic].leader_id
        if log.offsets is not None:
            return log.offsets
        if leader_id is None:
            return Unknown(cause=Cause.NOT_READY, reason="nobody leads it now")
        end = log.end(self.elapsed_ms)
        return LeaderOffsets(
            topic_id=ZERO_UUID,
            leader_id=leader_id,
            leader_epoch=0,
            high_watermark=end,
            last_stable_offset=end,
            log_start=log.start,
        )

    def _log(self, partition: TopicPartition) -> Log:
        return self.topics[partition.topic].logs[partition.partition]

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        return {
            name: DescribedTopic(
                topic=name, topic_id=ZERO_UUID, partitions=self._partitions(self.topics[name])
            )
            for name in topics
        }

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        return {name: self._settings(name) for name in topics}

    def _settings(self, name: str) -> TopicSettings | Unknown:
        topic = self.topics[name]
        if topic.settings is not None:
            return topic.settings
        entries = {key: Setting(value=value, source=Source.DEFAULT) for key, value in TOPIC_ENTRIES.items()}
        own = {key: Setting(value=value, source=Source.TOPIC) for key, value in topic.own.items()}
        return topic_settings(name, entries | own)

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown:
        broker = self.brokers[broker_id]
        if broker.settings is not None:
            return broker.settings
        entries = {key: Setting(value=value, source=Source.STATIC) for key, value in broker.entries.items()}
        return BrokerSettings(broker_id=broker_id, entries=entries)


class Word:
    """A BrokerWord."""

    def __init__(self, world: World, broker_id: int) -> None:
        self._world, self._broker_id = world, broker_id
        self._broker = world.brokers[broker_id]

    def log_dirs(self) -> tuple[LogDir, ...] | Unknown:
        if self._broker.log_dirs is not None:
            return self._broker.log_dirs
        sizes = {
            TopicPartition(name, number): (log.end(self._world.elapsed_ms) - log.start) * log.record_bytes
            for name, topic in self._world.topics.items()
            if self._broker_id in topic.replicas
            for number, log in enumerate(topic.logs)
        }
        hidden = {TopicPartition(name, 0): size for name, size in self._world.hidden.items()}
        return (
            LogDir(
                path="/var/lib/kafka",
                size_bytes=sizes | hidden,
                total_bytes=self._broker.total_bytes,
                usable_bytes=self._broker.usable_bytes,
                trouble=self._broker.trouble,
            ),
        )

    def features(self) -> Features | Unknown:
        return self._broker.features

    def quorum(self) -> Quorum | Unknown:
        return self._world.quorum


def world_of(**topics: Topic) -> World:
    """A sound cluster with these topics; `_` in a name stands for a dot."""
    world = World()
    world.topics |= {name.replace("_", "."): topic for name, topic in topics.items()}
    return world


def days(number: float, *, every_ms: int = 60_000, **more: Any) -> Log:
    """A log of so many days."""
    return Log(count=int(number * DAY_MS / every_ms), every_ms=every_ms, **more)
