"""What every event says, by what it is about, and the sinks that take events.

    Event           an id and a time
    ClusterEvent    about a cluster, a broker, an emitter
    TopicEvent      about a topic
    LogEvent        about one log: only these are numbered by log, too
    SegmentEvent    about one attempt to copy one segment of it
    ReplicaEvent    about one replica of it, as its files or its broker told

Owns these shapes. Who emitted an event, and as which of its sequence, is the envelope's (DESIGN §7).

Invariant: what is polled says so by `not_before_ms`: the change lies in `(not_before_ms, occurred_at_ms]`.
None: there was no earlier look, or the source itself dates the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Protocol

from rules.identity import LogId


class Source(str, Enum):
    """Where a fact was read."""

    LOG_DIR = "log_dir"  # the broker's files
    KRAFT = "kraft"  # __cluster_metadata, below the committed offset
    ADMIN = "admin"  # the admin API, polled
    LIST_OFFSETS = "listoffsets"  # the leader's answer, polled
    REMOTE_LOG_METADATA = "remote_log_metadata"  # KIP-405's topic
    SEAWALL = "seawall"  # our own act


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event says. `event_id` and `occurred_at_ms` stay the same through retries."""

    kind: ClassVar[str]

    event_id: str  # of the act, the same when it is told again
    occurred_at_ms: int  # by the act's own telling; of polled evidence, this look


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent(Event):
    """About no single log: it has no place in any log's own numbering."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEvent(ClusterEvent):
    """About a topic as the metadata has it. `source` is kraft, or admin where it was polled.

    `metadata_offset` is the place in `__cluster_metadata`; None where only the admin API was asked.
    `is_coalesced`: read from a snapshot, which may stand for several changes, or for one and its undoing.
    """

    topic_id: str
    topic: str  # its name then: a label
    source: Source
    metadata_offset: int | None
    is_coalesced: bool
    not_before_ms: int | None  # the last look that saw it otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent(Event):
    """About one log. `leader_epoch` is -1 where it is not known."""

    log: LogId
    topic: str  # its name then: a label
    leader_epoch: int  # as the emitter knew it


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEvent(LogEvent):
    """An event about one attempt to copy one segment."""

    segment_id: str  # of this attempt alone
    base_offset: int
    end_offset: int  # the next segment's base


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaEvent(LogEvent):
    """About one replica: a broker, a log dir, and one life of the partition's directory in it.

    `directory_id` and `replica_incarnation` are None where only the broker was asked, not its disk. `ordinal`
    counts what was said of this life, from 0, so that its changes keep their order in a sum.
    """

    broker_id: int
    directory_id: str | None
    replica_incarnation: int | None  # another for each life of the directory
    ordinal: int
    source: Source
    not_before_ms: int | None  # the last look that saw it otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadataEvent(LogEvent):
    """About one partition as the metadata has it; `source` to `not_before_ms` as with a topic."""

    source: Source
    metadata_offset: int | None
    is_coalesced: bool
    not_before_ms: int | None  # the last look that saw it otherwise


class EventSink(Protocol):
    """Takes events about logs. When `emit` has returned, the event is as durable as the sink promises."""

    def emit(self, event: LogEvent) -> None: ...


class EvidenceSink(Protocol):
    """The same for events about anything."""

    def emit(self, event: Event) -> None: ...
