"""Tables of the metadata records about topics, partitions and configurations.

How a table is written: `tiering.log.schema`. In a change record a field that is None, or the value that its
class names, was not changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, ClassVar

from tiering.log.schema import (
    Int8,
    Int32,
    Int32s,
    NullableInt32s,
    NullableString,
    NullableUuids,
    Since,
    String,
    Tag,
    UuidField,
    Uuids,
)

NO_LEADER = -1
LEADER_UNCHANGED = -2


class ConfigResource(IntEnum):
    """What a ConfigRecord configures."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class LeaderRecovery(IntEnum):
    """Whether a leader came by an unclean election and has not recovered from it."""

    UNCHANGED = -1
    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A topic was created."""

    api_key: ClassVar[int] = 2
    versions: ClassVar[range] = range(1)

    name: String
    topic_id: UuidField


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition was created; in a snapshot, its whole state. `directories` go with `replicas`."""

    api_key: ClassVar[int] = 3
    versions: ClassVar[range] = range(3)

    partition_id: Int32
    topic_id: UuidField
    replicas: Int32s
    isr: Int32s
    removing_replicas: Int32s
    adding_replicas: Int32s
    leader: Int32
    leader_recovery_state: Annotated[Int8, Tag(0)] = LeaderRecovery.RECOVERED
    leader_epoch: Int32
    partition_epoch: Int32
    directories: Annotated[Uuids, Since(1)] = ()
    eligible_leader_replicas: Annotated[NullableInt32s, Since(2), Tag(1)] = None
    last_known_elr: Annotated[NullableInt32s, Since(2), Tag(2)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """A partition changed: None, LEADER_UNCHANGED and LeaderRecovery.UNCHANGED mean "as it was"."""

    api_key: ClassVar[int] = 5
    versions: ClassVar[range] = range(3)

    partition_id: Int32
    topic_id: UuidField
    isr: Annotated[NullableInt32s, Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = LEADER_UNCHANGED
    replicas: Annotated[NullableInt32s, Tag(2)] = None
    removing_replicas: Annotated[NullableInt32s, Tag(3)] = None
    adding_replicas: Annotated[NullableInt32s, Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = LeaderRecovery.UNCHANGED
    directories: Annotated[NullableUuids, Since(1), Tag(8)] = None
    eligible_leader_replicas: Annotated[NullableInt32s, Since(2), Tag(6)] = None
    last_known_elr: Annotated[NullableInt32s, Since(2), Tag(7)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """A topic was deleted, all its partitions with it."""

    api_key: ClassVar[int] = 9
    versions: ClassVar[range] = range(1)

    topic_id: UuidField


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord:
    """The eligible leader replicas of a topic (of all, if the name is empty) were forgotten (KIP-966)."""

    api_key: ClassVar[int] = 28
    versions: ClassVar[range] = range(1)

    topic_name: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """A dynamic configuration was set, or, where the value is None, removed."""

    api_key: ClassVar[int] = 4
    versions: ClassVar[range] = range(1)

    resource_type: Int8
    resource_name: String
    name: String
    value: NullableString
