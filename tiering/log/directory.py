"""What stands in a partition directory and in a log dir: every name classified, closed segments told apart.

    partition directory                              log dir
    <base:020d>.log          segment           <topic>-<partition>               a partition
    <base:020d>.index        offset index      <topic>-<partition>.<hex>-delete  being deleted
    <base:020d>.timeindex    time index        <topic>-<partition>.<hex>-future  moving in from another dir
    <base:020d>.txnindex     aborted list      <topic>-<partition>.<hex>-stray   set aside: not this broker's
    <offset:020d>.snapshot   producer state    replication-offset-checkpoint     high watermarks
    <offset>-<epoch>.checkpoint  KRaft state   recovery-point-offset-checkpoint  flushed up to
    leader-epoch-checkpoint  epoch history     log-start-offset-checkpoint       log starts
    partition.metadata       topic id          cleaner-offset-checkpoint         compacted up to
    quorum-state             KRaft vote        meta.properties, .lock, .kafka_cleanshutdown

    A suffix behind a segment's file name says what Kafka is doing with it: `.deleted` (to be unlinked after
    file.delete.delay.ms), `.cleaned` (the cleaner is writing it), `.swap` (cleaned, about to replace).

Owns names and the order of segments; opens no file but to take its size. A name that fits nothing is
UNKNOWN and listed, never skipped: what is not understood must not look like nothing.

Invariant: segments are the `.log` files without suffix, by base offset; each but the last is closed and ends
at the next one's base. That end is where the next file begins, not where the bytes end: see `verify`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tiering.log.errors import Malformed


class FileKind(str, Enum):
    """What a file in a partition directory is."""

    SEGMENT = "segment"
    OFFSET_INDEX = "offset_index"
    TIME_INDEX = "time_index"
    TRANSACTION_INDEX = "transaction_index"
    PRODUCER_SNAPSHOT = "producer_snapshot"
    KRAFT_SNAPSHOT = "kraft_snapshot"
    LEADER_EPOCHS = "leader_epochs"
    PARTITION_METADATA = "partition_metadata"
    QUORUM_STATE = "quorum_state"
    REMOTE_SNAPSHOT = "remote_snapshot"
    LOG_DIR_FILE = "log_dir_file"
    UNKNOWN = "unknown"


class FileState(str, Enum):
    """What Kafka is doing with it."""

    LIVE = "live"
    DELETED = "deleted"
    CLEANED = "cleaned"
    SWAP = "swap"
    TEMPORARY = "temporary"  # being written: renamed into place, or left behind by a crash


class DirectoryState(str, Enum):
    """What a partition directory is to its broker."""

    LIVE = "live"
    DELETE = "delete"
    FUTURE = "future"
    STRAY = "stray"


_BY_SUFFIX = {
    "log": FileKind.SEGMENT,
    "index": FileKind.OFFSET_INDEX,
    "timeindex": FileKind.TIME_INDEX,
    "txnindex": FileKind.TRANSACTION_INDEX,
    "snapshot": FileKind.PRODUCER_SNAPSHOT,
}
_BY_NAME = {
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCHS,
    "partition.metadata": FileKind.PARTITION_METADATA,
    "quorum-state": FileKind.QUORUM_STATE,
    "remote_log_snapshot": FileKind.REMOTE_SNAPSHOT,
}
_STATES = {
    "": FileState.LIVE,
    ".deleted": FileState.DELETED,
    ".cleaned": FileState.CLEANED,
    ".swap": FileState.SWAP,
    ".tmp": FileState.TEMPORARY,
    ".part": FileState.TEMPORARY,
}
_STATE_ENDING = r"(?P<state>\.deleted|\.cleaned|\.swap|\.tmp|\.part)?"
_NUMBERED = re.compile(
    r"(?P<offset>\d{20})\.(?P<suffix>log|index|timeindex|txnindex|snapshot)" + _STATE_ENDING
)
_KRAFT_SNAPSHOT = re.compile(r"(?P<offset>\d{20})-(?P<epoch>\d{10})\.checkpoint" + _STATE_ENDING)
_NAMED = re.compile("(?P<name>" + "|".join(map(re.escape, _BY_NAME)) + ")" + _STATE_ENDING)
_PARTITION = re.compile(
    r"(?P<topic>.+)-(?P<partition>\d+)(\.(?P<unique>[0-9a-f]{32})-(?P<state>delete|future|stray))?"
)

KRAFT_METADATA_TOPIC = "__cluster_metadata"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"  # the first metadata records, written when storage is formatted
# Kafka's own topics that are compacted from birth; offsets are missing in them as a rule.
COMPACTED_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__seawall_segments"})
LOG_DIR_FILES = frozenset(
    {
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "meta.properties",
        BOOTSTRAP_CHECKPOINT,
        ".lock",
        ".kafka_cleanshutdown",
    }
)
LOG_DIR_FOLDERS = frozenset({"remote-log-index-cache"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A file of a partition directory, by its name."""

    path: Path
    kind: FileKind
    state: FileState
    offset: int | None = None  # base offset, or the offset that a snapshot is taken at


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A live segment. `end_offset` is the next one's base; None for the active one, which has no end yet."""

    path: Path
    base_offset: int
    end_offset: int | None
    size_bytes: int

    @property
    def is_closed(self) -> bool:
        return self.end_offset is not None

    def side_file(self, kind: FileKind) -> Path:
        """Where the index of that kind stands, whether it exists or not."""
        suffix = next(s for s, k in _BY_SUFFIX.items() if k is kind)
        return self.path.with_suffix(f".{suffix}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionName:
    """What a partition directory's name says. `topic` may be cut short where Kafka had to add a suffix."""

    topic: str
    partition: int
    state: DirectoryState

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDirectory:
    """One listing of a partition directory. Files that went away while it was made are not in it."""

    path: Path
    name: PartitionName
    segments: tuple[Segment, ...]
    files: tuple[LogFile, ...]

    def of_kind(self, kind: FileKind, state: FileState = FileState.LIVE) -> tuple[LogFile, ...]:
        return tuple(f for f in self.files if f.kind is kind and f.state is state)

    @property
    def unknown(self) -> tuple[LogFile, ...]:
        return tuple(f for f in self.files if f.kind is FileKind.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """One listing of a log dir: partition directories, the log dir's own files, and what is neither."""

    path: Path
    own_files: tuple[Path, ...]
    partitions: tuple[Path, ...]
    unknown: tuple[Path, ...]


def classify(path: Path) -> LogFile:
    """What the file is, from its name alone."""
    if match := _NUMBERED.fullmatch(path.name):
        kind = _BY_SUFFIX[match["suffix"]]
    elif match := _KRAFT_SNAPSHOT.fullmatch(path.name):
        kind = FileKind.KRAFT_SNAPSHOT
    elif match := _NAMED.fullmatch(path.name):
        return LogFile(path=path, kind=_BY_NAME[match["name"]], state=_STATES[match["state"] or ""])
    else:
        return LogFile(path=path, kind=FileKind.UNKNOWN, state=FileState.LIVE)
    return LogFile(path=path, kind=kind, state=_STATES[match["state"] or ""], offset=int(match["offset"]))


def partition_name(name: str) -> PartitionName | None:
    """What a directory's name says; None when it is no partition's."""
    match = _PARTITION.fullmatch(name)
    if match is None:
        return None
    return PartitionName(
        topic=match["topic"],
        partition=int(match["partition"]),
        state=DirectoryState(match["state"] or "live"),
    )


def read_partition_directory(path: Path) -> PartitionDirectory:
    """List the directory once. Raises Malformed when its name is no partition's."""
    name = partition_name(path.name)
    if name is None:
        raise Malformed(position=0, what=f"directory name {path.name!r}", why="is not <topic>-<partition>")
    files = tuple(_files(path))
    return PartitionDirectory(path=path, name=name, segments=tuple(_segments(files)), files=files)


def _files(path: Path) -> Iterator[LogFile]:
    """In the order of names. What is neither file nor folder, such as a pipe that would keep its reader
    waiting for ever, has no name of Kafka's, whatever it is called."""
    with os.scandir(path) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_file():
            yield classify(path / entry.name)
        elif not entry.is_dir():
            yield LogFile(path=path / entry.name, kind=FileKind.UNKNOWN, state=FileState.LIVE)


def read_log_directory(path: Path) -> LogDirectory:
    """List the log dir once."""
    own_files, partitions, unknown = [], [], []
    for entry in sorted(path.iterdir()):
        if entry.is_dir() and partition_name(entry.name) is not None:
            partitions.append(entry)
        elif is_log_dir_file(entry):
            own_files.append(entry)
        elif entry.name not in LOG_DIR_FOLDERS:
            unknown.append(entry)
    return LogDirectory(
        path=path, own_files=tuple(own_files), partitions=tuple(partitions), unknown=tuple(unknown)
    )


def is_log_dir_file(path: Path) -> bool:
    """Whether it is one of the files that stand in a log dir itself."""
    return path.name.removesuffix(".tmp") in LOG_DIR_FILES


def is_log_directory(path: Path) -> bool:
    """Whether this is a broker's log dir: it says whose it is, or it holds partitions.

    Its name tells nothing: `logs-2` could be partition 2 of a topic.
    """
    if (path / "meta.properties").is_file():
        return True
    return any(entry.is_dir() and partition_name(entry.name) for entry in path.iterdir())


def _segments(files: tuple[LogFile, ...]) -> Iterator[Segment]:
    present: list[tuple[int, Path, int]] = []
    for file in files:
        if file.kind is FileKind.SEGMENT and file.state is FileState.LIVE and file.offset is not None:
            try:
                present.append((file.offset, file.path, file.path.stat().st_size))
            except FileNotFoundError:
                continue  # deleted since the listing: the next listing will not have it either
    present.sort()
    ends: list[int | None] = [*(base for base, _, _ in present[1:]), None]
    for (base, path, size_bytes), end in zip(present, ends, strict=False):
        yield Segment(path=path, base_offset=base, end_offset=end, size_bytes=size_bytes)
