"""What was seen of a cluster: its brokers, its topics, and two looks at how far and how large its logs are.

Owns values and the port that gives them. A thing that nobody told is `Unknown`, in its own place: the rest
still counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from seawall.policy.cluster import ClusterSource, SeenTopic
from tiering.cluster.interface import (
    BrokerSettings,
    DescribedPartition,
    LeaderOffsets,
    OffsetsSource,
    TopicPartition,
    Unknown,
)
from tiering.cluster.log_sizes import BrokerWord, Features, LogDir, Quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress:
    """A broker where it says that it is."""

    broker_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one broker answers to Metadata: of topics, those that the principal may describe."""

    cluster_id: str | None
    brokers: tuple[BrokerAddress, ...]
    topics: Mapping[str, Mapping[int, DescribedPartition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSince:
    """The first record of a partition that is as young as was asked, or younger."""

    offset: int
    timestamp_ms: int


class Cluster(ClusterSource, OffsetsSource, Protocol):
    """All that is asked. Nothing here changes anything."""

    def listing(self) -> Listing: ...

    def word_of(self, broker: BrokerAddress) -> BrokerWord: ...

    def first_since(
        self, partitions: Iterable[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, FirstSince | Unknown | None]:
        """None: no record is so young."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBroker:
    """A broker, by its own word."""

    address: BrokerAddress
    log_dirs: tuple[LogDir, ...] | Unknown
    features: Features | Unknown
    settings: BrokerSettings | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How far each log was, and how large each replica, at one moment. `size_bytes` is by broker."""

    at_s: float
    offsets: Mapping[TopicPartition, LeaderOffsets | Unknown]
    size_bytes: Mapping[tuple[int, TopicPartition], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """By time: the oldest record of each partition, and the first one of the last day."""

    now_ms: int
    oldest: Mapping[TopicPartition, FirstSince | Unknown | None]
    last_day: Mapping[TopicPartition, FirstSince | Unknown | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A cluster as it was seen. `topics` are all, internal ones too; `settings` has the same names."""

    cluster_id: str | None
    brokers: tuple[SeenBroker, ...]
    quorum: Quorum | Unknown
    topics: Mapping[str, Mapping[int, DescribedPartition]]
    settings: Mapping[str, SeenTopic | Unknown]
    first: Look
    last: Look
    ages: Ages

    @property
    def broker_ids(self) -> frozenset[int]:
        return frozenset(each.address.broker_id for each in self.brokers)

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in sorted(self.topics[topic])]

    def leader_bytes(self, partition: TopicPartition) -> int | None:
        """How large the leader's replica is on its disk; None where that is not known."""
        leader_id = self.topics[partition.topic][partition.partition].leader_id
        return None if leader_id is None else self.last.size_bytes.get((leader_id, partition))
