"""What an agent asks of its cluster: who leads, how far is committed, what is configured.

Owns the values of these answers and the protocols that give them. Adapters: `kafka` (the admin API),
`leadership` (the KRaft metadata log on this host, or the admin API), and in-memory ones in the tests.

Refuses to turn a partial answer into a fact. What could not be learnt is an `Unknown` with its cause, for
that topic or partition alone; it is a different type from every answer, so that no caller takes "nobody told
me" for "not led by this broker". What was asked for and what is answered are the same keys, always.

Invariant: an answer holds only what one leader, one image or one broker said at one moment. Nothing in it is
filled in from an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tiering.cluster.settings import BrokerSettings, TopicSettings
from tiering.log.checkpoints import TopicPartition
from tiering.log.wire import Uuid

__all__ = [
    "BrokerIdentity",
    "BrokerSettings",
    "Cause",
    "ClusterIdentity",
    "DescribedPartition",
    "DescribedTopic",
    "LeaderOffsets",
    "Leadership",
    "LeadershipSource",
    "OffsetsSource",
    "Recovery",
    "SettingsSource",
    "TopicDescriber",
    "TopicPartition",
    "TopicSettings",
    "Unknown",
]


class Cause(str, Enum):
    """Why something is not known. The values are stable: they label metrics."""

    NO_ANSWER = "no_answer"  # timed out, or the connection broke: ask again
    REFUSED = "refused"  # the cluster does not let us ask: an operator has to act
    NO_SUCH_TOPIC = "no_such_topic"  # the broker that answered knows no such topic, or partition, (yet)
    STALE = "stale"  # the answer belongs to another epoch, even after a refresh
    NOT_READY = "not_ready"  # a new leader that does not know its high watermark yet (KIP-207)
    PARTIAL = "partial"  # an answer that lacks what was asked for
    QUIET = "quiet"  # the metadata log on this host has not grown for too long
    UNREADABLE = "unreadable"  # a file, or a record of the metadata log, that this reader cannot read
    ERROR = "error"  # an error that has no name here


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It was asked for, and it is not known. Never a fact about the thing itself."""

    cause: Cause
    reason: str


class Recovery(str, Enum):
    """Whether the leader came by an unclean election (KIP-704)."""

    RECOVERED = "recovered"
    RECOVERING = "recovering"
    NOT_TOLD = "not_told"  # the admin API has no such field


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Who leads a partition. `leader_id` is None when nobody does, which is an answer, not its absence.

    `leader_epoch` is None where the source cannot tell: the admin API names leaders and no epochs.
    `metadata_offset` is how far into the metadata log the answer reaches, where it came from there.
    """

    topic: str
    topic_id: Uuid
    partition: int
    leader_id: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    recovery: Recovery
    metadata_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderOffsets:
    """What the leader of a partition says of its log, all at one leader epoch.

    `log_start` is the first readable offset: with KIP-405 in either tier. `topic_id` is what the name stood
    for just before the leader was asked, as ListOffsets itself goes by name.
    """

    topic_id: Uuid
    leader_id: int
    leader_epoch: int
    high_watermark: int
    last_stable_offset: int
    log_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition:
    """A partition as the admin API tells of it: a leader, and no epoch."""

    leader_id: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopic:
    """A topic as the admin API tells of it."""

    topic: str
    topic_id: Uuid
    partitions: Mapping[int, DescribedPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """The broker that an agent stands beside, by its log dirs."""

    cluster_id: str
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """The cluster that answers at the bootstrap address, and its live brokers."""

    cluster_id: str
    broker_ids: frozenset[int]


class LeadershipSource(Protocol):
    """Knows who leads."""

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]: ...


class TopicDescriber(Protocol):
    """Asks any broker what it knows of topics."""

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]: ...


class OffsetsSource(Protocol):
    """Asks the leaders how far their logs are committed."""

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]: ...


class SettingsSource(Protocol):
    """Knows what is configured now, dynamically or statically."""

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]: ...

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown: ...
