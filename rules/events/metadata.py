"""What the cluster's metadata says: topics, partitions, leaders, configuration, brokers.

Read from `__cluster_metadata` below the committed offset, or polled from the admin API and marked so.

Invariant: what was swallowed by a snapshot is `is_coalesced`; a reader may not take it for the whole history.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rules.events.base import ClusterEvent, PartitionMetadataEvent, Source, TopicEvent


class ConfigResource(str, Enum):
    """Whose configuration."""

    TOPIC = "topic"
    BROKER = "broker"


class ConfigSource(str, Enum):
    """Where the value that is in force was set: DescribeConfigs' own words."""

    TOPIC = "dynamic_topic_config"
    BROKER = "dynamic_broker_config"
    ALL_BROKERS = "dynamic_default_broker_config"
    STATIC = "static_broker_config"
    DEFAULT = "default_config"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated(TopicEvent):
    """A topic is there that was not: a new id, also under an old name. Does not say who made it."""

    kind: ClassVar[str] = "topic_created"

    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsAdded(TopicEvent):
    """A topic has more partitions: new logs, each from offset 0."""

    kind: ClassVar[str] = "partitions_added"

    old_partition_count: int
    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDeleted(TopicEvent):
    """The metadata no longer has this topic id. Does not say who deleted it, nor that its files have gone."""

    kind: ClassVar[str] = "topic_deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(PartitionMetadataEvent):
    """A partition has another leader, or the same in a new epoch; `leader_id` -1 is none.

    `is_unclean` is the LeaderRecoveryState: elected from outside the in-sync replicas; None: not known here.
    Does not say where the epoch begins in the log (`epoch_started`).
    """

    kind: ClassVar[str] = "leader_changed"

    leader_id: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    is_unclean: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChanged(PartitionMetadataEvent):
    """Other replicas are in sync than before, under the same leader and epoch."""

    kind: ClassVar[str] = "isr_changed"

    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAdded(PartitionMetadataEvent):
    """A broker was assigned a replica. Does not say that it holds anything yet (`replica_started` will)."""

    kind: ClassVar[str] = "replica_added"

    broker_id: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEffective(ClusterEvent):
    """One key's value in force, of a topic or of a broker, static defaults included, and what it was before.

    `old_value` is None at first sight, either is None where the key is unset or its value is kept secret.
    `broker_id` is the broker whose configuration it is; of a topic, the broker that goes by it, with its own
    defaults where the topic sets nothing. The same value from another place is told. `metadata_offset` dates
    a dynamic change; None: a static one, or polled. Does not say who set it, nor whether it deleted anything.
    """

    kind: ClassVar[str] = "config_effective"

    resource: ConfigResource
    topic_id: str | None
    topic: str | None
    broker_id: int | None
    key: str
    old_value: str | None
    new_value: str | None
    config_source: ConfigSource
    is_first_sight: bool
    source: Source
    metadata_offset: int | None
    is_coalesced: bool
    not_before_ms: int | None
    old_config_source: ConfigSource | None = None  # where the old value was set, if that is known


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStarted(ClusterEvent):
    """A broker runs again, or was seen for the first time. Not clean: some log dir lacked the mark of one.

    `is_clean` is None where the mark had gone before it was looked for. Does not end any replica's life.
    """

    kind: ClassVar[str] = "broker_started"

    broker_id: int
    is_clean: bool | None
    not_before_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryOffline(ClusterEvent):
    """A log dir cannot be read, or is not the one it was: evidence is missing. Does not say that data is.

    `problem` is stable, for programs. What comes back is said by `log_baseline`, log by log.
    """

    kind: ClassVar[str] = "directory_offline"

    broker_id: int
    directory_id: str | None
    path: str
    problem: str
    detail: str
    not_before_ms: int | None
