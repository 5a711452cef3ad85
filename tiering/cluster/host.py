"""What an agent finds on its broker's host: log dirs and partitions, as values.

Owns these values; `log_dirs` reads them. A log dir that cannot be read, or is not mounted, is an
`OfflineDir`, and a partition that does not say whose it is an `UnreadablePartition`: what is in them is
unknown, never gone.

    local_start   the first segment's base: the first offset on this disk
    log_start     the first readable offset of the replica (KAFKA_FACTS 9). On a stock topic the larger of the
                  checkpoint's entry, if there is one, and local_start; with KIP-405 the entry alone, as the
                  log may begin in the other tier

Invariant: two looks at one `Incarnation` saw one replica's life. One that was rebuilt from nothing, on
another disk, or for a topic made anew under the old name, is another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tiering.cluster.interface import BrokerIdentity
from tiering.log.checkpoints import EpochStart, TopicPartition
from tiering.log.directory import DirectoryState, PartitionDirectory, Segment
from tiering.log.wire import Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """One life of one replica.

    A file system gives the inode of a removed directory to the next one made (measured: ext4, at once), so
    the time at which the broker wrote `partition.metadata`, once a life, is part of it.
    """

    broker_id: int
    directory_id: Uuid | None  # None: a log dir older than KIP-858
    topic_id: Uuid
    inode: int
    created_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPartition:
    """A replica on this host. `state` LIVE is the broker's own; FUTURE is moving in from another log dir.

    `doubts` name what could not be read of it; it is then as if it were not there, and nothing may leave.
    """

    partition: TopicPartition
    state: DirectoryState
    incarnation: Incarnation
    listing: PartitionDirectory
    epochs: tuple[EpochStart, ...]  # of leader-epoch-checkpoint; empty: blank, or not there
    checkpoint_high_watermark: int | None
    checkpoint_log_start: int | None
    cleaned_to: int | None  # the cleaner has come so far: the log is, or was, compacted
    doubts: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.listing.path

    @property
    def closed_segments(self) -> tuple[Segment, ...]:
        """Those that no producer writes to any more. The active one is never among them."""
        return tuple(segment for segment in self.listing.segments if segment.is_closed)

    @property
    def local_epoch(self) -> int | None:
        """The newest leader epoch this replica has a record of, or leads at."""
        return self.epochs[-1].epoch if self.epochs else None

    @property
    def local_start(self) -> int | None:
        """The first offset on this disk; None while there is no segment."""
        return self.listing.segments[0].base_offset if self.listing.segments else None

    def log_start(self, *, remote_storage: bool) -> int | None:
        """The first readable offset; None where the files do not say."""
        entry = self.checkpoint_log_start
        if remote_storage or self.local_start is None:
            return entry
        return self.local_start if entry is None else max(entry, self.local_start)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadablePartition:
    """A partition directory that is there and cannot be read, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """A log dir that says whose it is. `doubts` name its own files that cannot be read.

    A checkpoint with a doubt has no entries here, which only ever makes an agent more careful.
    """

    path: Path
    directory_id: Uuid | None
    partitions: tuple[LocalPartition, ...]
    unreadable: tuple[UnreadablePartition, ...]
    set_aside: tuple[Path, ...]  # -delete and -stray directories
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDir:
    """A log dir that cannot be looked into: not there, not mounted, not readable."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSurvey:
    """One look at all log dirs of one broker."""

    broker: BrokerIdentity
    log_dirs: tuple[LogDir, ...]
    offline: tuple[OfflineDir, ...]

    @property
    def is_complete(self) -> bool:
        """Whether a partition that is not in here is not on this host, if the topic filter takes it."""
        return not self.offline and not any(each.unreadable for each in self.log_dirs)

    @property
    def live(self) -> Mapping[TopicPartition, LocalPartition]:
        """The broker's replicas by name; one that is moving between log dirs is the one it moves from."""
        return {
            each.partition: each
            for log_dir in self.log_dirs
            for each in log_dir.partitions
            if each.state is DirectoryState.LIVE
        }
