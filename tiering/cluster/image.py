"""The cluster as its metadata log describes it: one frozen value, and the changes that led to it.

Owns the values. How a change alters an image is `fold`; how records are read from files is `metadata_files`.
Refuses to say what is committed: a follower's log holds records that are not yet (KAFKA_FACTS 16).

Invariant: an image that may lack something says so in `unread`, until it is made anew from a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from tiering.log.framed import SkippedRecord
from tiering.log.kraft.control import ControlRecord
from tiering.log.kraft.records import MetadataRecord
from tiering.log.kraft.topics import LeaderRecovery
from tiering.log.wire import Uuid

NO_EPOCH = -1
NO_TIMESTAMP = -1

LogRecord: TypeAlias = MetadataRecord | ControlRecord | SkippedRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One record of the metadata log, where it stands. `epoch` is that of the controller that wrote it.

    It is committed once the quorum's high watermark is past `decided_at`, not before: a record of a metadata
    transaction may be committed long before it is decided whether it counts.
    """

    offset: int
    decided_at: int  # the offset of the record that makes it count: itself, or the end of its transaction
    epoch: int
    timestamp_ms: int
    record: LogRecord
    batch_end: int = field(default=0, compare=False)  # behind its batch: a controller's act is one, or more


class PartitionKey(NamedTuple):
    """A partition, by its topic's id."""

    topic_id: Uuid
    partition: int


class ConfigKey(NamedTuple):
    """What is configured. For brokers the name is the id, or empty for the default of all."""

    resource: int  # a ConfigResource, or a number of a newer Kafka's
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition. `directories` go with `replicas`; empty where the log was written without them."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader_id: int | None
    leader_epoch: int
    partition_epoch: int
    recovery: LeaderRecovery


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """A registered broker process and its log dirs."""

    broker_id: int
    incarnation_id: Uuid
    broker_epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[Uuid, ...]
    rack: str | None


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    """All that is known after the records below `end_offset`, the last of them of `epoch`."""

    end_offset: int = 0
    epoch: int = NO_EPOCH
    timestamp_ms: int = NO_TIMESTAMP
    topics: Mapping[Uuid, str] = field(default_factory=_nothing)
    topic_ids: Mapping[str, Uuid] = field(default_factory=_nothing)
    partitions: Mapping[PartitionKey, PartitionState] = field(default_factory=_nothing)
    configs: Mapping[ConfigKey, Mapping[str, str]] = field(default_factory=_nothing)
    brokers: Mapping[int, BrokerState] = field(default_factory=_nothing)
    undecided: tuple[Change, ...] | None = None  # of the open metadata transaction, if one is open
    unread: str | None = None  # why this image cannot be relied on

    def partitions_of(self, topic_id: Uuid) -> Mapping[int, PartitionState]:
        """The partitions of a topic, by number; Kafka numbers them from 0 without a gap."""
        found: dict[int, PartitionState] = {}
        for number in count():
            state = self.partitions.get(PartitionKey(topic_id, number))
            if state is None:
                break
            found[number] = state
        return found
