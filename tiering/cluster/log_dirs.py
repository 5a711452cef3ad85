"""Surveys the log dirs of one broker: who it is, which replicas are there, with which segments.

Owns the reading, read-only. Whose a log dir is stands in its meta.properties, whose a partition directory in
its partition.metadata; names tell neither. Refuses log dirs of two brokers or clusters under one agent.

A listing of a directory is kept while the directory's modification time stands still, so that a survey of
thousands of quiet partitions costs one stat each. A time that is younger than the listing by less than the
clocks of file systems can tell is not trusted: what came in the same tick would never be seen.

Invariant: what vanishes under the survey, between a listing and a read, is left out; what is there and cannot
be read is named. Nothing is silently missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiering.cluster.errors import LogDirsDisagree, NoLogDirs
from tiering.cluster.host import (
    HostSurvey,
    Incarnation,
    LocalPartition,
    LogDir,
    OfflineDir,
    UnreadablePartition,
)
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.topics import Topics
from tiering.log.checkpoints import (
    CLEANER_OFFSETS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    REPLICATION_OFFSETS,
    EpochStart,
    TopicPartition,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tiering.log.directory import (
    KRAFT_METADATA_TOPIC,
    DirectoryState,
    PartitionDirectory,
    partition_name,
    read_log_directory,
    read_partition_directory,
)
from tiering.log.errors import LogFormatError
from tiering.log.identity_files import (
    META_PROPERTIES,
    PARTITION_METADATA,
    read_meta_properties,
    read_partition_metadata,
)
from tiering.log.wire import Uuid

# The coarsest clocks of file systems still in use count whole seconds; twice that is on the safe side.
MTIME_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DirIdentity:
    """Whose a log dir is, by its meta.properties."""

    path: Path
    broker: BrokerIdentity
    directory_id: Uuid | None


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was read of a partition directory, and the state of the directory that it stands for."""

    inode: int
    modified_ns: int
    read_at_ns: int
    topic_id: Uuid
    created_ns: int
    listing: PartitionDirectory
    epochs: tuple[EpochStart, ...]
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checkpoints:
    """The offsets that a log dir's own files give."""

    high_watermarks: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]
    cleaned: Mapping[TopicPartition, int]
    doubts: tuple[str, ...]


class Surveyor:
    """Looks at the same log dirs again and again. `now_ns` is the wall clock, which file times are of."""

    def __init__(self, paths: Iterable[Path], *, topics: Topics, now_ns: Callable[[], int]) -> None:
        self._paths = tuple(paths)
        self._topics = topics
        self._now_ns = now_ns
        self._kept: dict[Path, _Kept] = {}

    def survey(self) -> HostSurvey:
        """Look at everything. Raises NoLogDirs, LogDirsDisagree."""
        found, offline = read_identities(self._paths)
        broker = one_broker(found, self._paths)
        log_dirs: list[LogDir] = []
        for identity in found:
            try:
                log_dirs.append(self._log_dir(identity))
            except OSError as failed:  # it went away since its meta.properties was read
                offline.append(OfflineDir(path=identity.path, reason=_reason(failed)))
        seen = {each.path for log_dir in log_dirs for each in log_dir.partitions}
        self._kept = {path: kept for path, kept in self._kept.items() if path in seen}
        return HostSurvey(broker=broker, log_dirs=tuple(log_dirs), offline=tuple(offline))

    def _log_dir(self, identity: DirIdentity) -> LogDir:
        checkpoints = _read_checkpoints(identity.path)
        partitions: list[LocalPartition] = []
        unreadable: list[UnreadablePartition] = []
        set_aside: list[Path] = []
        for path in read_log_directory(identity.path).partitions:
            name = partition_name(path.name)
            if name is None or not self._topics.takes(name.topic):
                continue
            if name.state in (DirectoryState.DELETE, DirectoryState.STRAY):
                set_aside.append(path)
                continue
            try:
                partitions.append(self._partition(identity, path, checkpoints))
            except (OSError, LogFormatError) as failed:
                if path.exists():  # otherwise it was deleted or renamed under our eyes
                    unreadable.append(UnreadablePartition(path=path, reason=_reason(failed)))
        return LogDir(
            path=identity.path,
            directory_id=identity.directory_id,
            partitions=tuple(partitions),
            unreadable=tuple(unreadable),
            set_aside=tuple(set_aside),
            doubts=checkpoints.doubts,
        )

    def _partition(self, identity: DirIdentity, path: Path, checkpoints: _Checkpoints) -> LocalPartition:
        kept = self._read_or_kept(path)
        name = kept.listing.name
        partition = TopicPartition(name.topic, name.partition)
        return LocalPartition(
            partition=partition,
            state=name.state,
            incarnation=Incarnation(
                broker_id=identity.broker.broker_id,
                directory_id=identity.directory_id,
                topic_id=kept.topic_id,
                inode=kept.inode,
                created_ns=kept.created_ns,
            ),
            listing=kept.listing,
            epochs=kept.epochs,
            checkpoint_high_watermark=checkpoints.high_watermarks.get(partition),
            checkpoint_log_start=checkpoints.log_starts.get(partition),
            cleaned_to=checkpoints.cleaned.get(partition),
            doubts=kept.doubts,
        )

    def _read_or_kept(self, path: Path) -> _Kept:
        state = path.stat()
        kept = self._kept.get(path)
        if (
            kept is not None
            and (kept.inode, kept.modified_ns) == (state.st_ino, state.st_mtime_ns)
            and kept.read_at_ns - kept.modified_ns > MTIME_TICK_NS
        ):
            return kept
        read_at_ns = self._now_ns()
        metadata = path / PARTITION_METADATA
        epochs, doubts = _read_epochs(path / LEADER_EPOCHS)
        fresh = _Kept(
            inode=state.st_ino,
            modified_ns=state.st_mtime_ns,
            read_at_ns=read_at_ns,
            topic_id=read_partition_metadata(metadata.read_bytes()),
            created_ns=metadata.stat().st_mtime_ns,
            listing=read_partition_directory(path),
            epochs=epochs,
            doubts=doubts,
        )
        self._kept[path] = fresh
        return fresh


def read_identities(paths: Iterable[Path]) -> tuple[list[DirIdentity], list[OfflineDir]]:
    """Whose each log dir is, and those that do not say."""
    found: list[DirIdentity] = []
    offline: list[OfflineDir] = []
    for path in paths:
        try:
            meta = read_meta_properties((path / META_PROPERTIES).read_bytes())
        except FileNotFoundError:
            what = "has no meta.properties: not mounted?" if path.is_dir() else "is not there"
            offline.append(OfflineDir(path=path, reason=what))
            continue
        except (OSError, LogFormatError) as failed:
            offline.append(OfflineDir(path=path, reason=_reason(failed)))
            continue
        if meta.cluster_id is None or meta.node_id is None:
            reason = "its meta.properties names no cluster or no broker"
            offline.append(OfflineDir(path=path, reason=reason))
            continue
        broker = BrokerIdentity(cluster_id=meta.cluster_id, broker_id=meta.node_id)
        found.append(DirIdentity(path=path, broker=broker, directory_id=meta.directory_id))
    return found, offline


def one_broker(found: Sequence[DirIdentity], paths: Sequence[Path]) -> BrokerIdentity:
    """The broker that all of these log dirs belong to. Raises NoLogDirs, LogDirsDisagree."""
    if not found:
        raise NoLogDirs(looked_at=", ".join(map(str, paths)) or "none was given")
    first = found[0]
    for other in found[1:]:
        if other.broker != first.broker:
            raise LogDirsDisagree(
                path=first.path,
                found=_named(first.broker),
                other_path=other.path,
                other=_named(other.broker),
            )
    return first.broker


def metadata_log_in(paths: Iterable[Path]) -> Path | None:
    """Where the KRaft metadata log stands on this host, if it does and may be read."""
    for path in paths:
        directory = path / f"{KRAFT_METADATA_TOPIC}-0"
        try:
            if any(directory.iterdir()):
                return directory
        except OSError:
            continue
    return None


def _named(broker: BrokerIdentity) -> str:
    return f"broker {broker.broker_id} of cluster {broker.cluster_id}"


def _read_checkpoints(log_dir: Path) -> _Checkpoints:
    doubts: list[str] = []

    def offsets(name: str) -> Mapping[TopicPartition, int]:
        try:
            return read_offset_checkpoint((log_dir / name).read_bytes(), name).offsets
        except FileNotFoundError:
            return {}  # not written yet
        except (OSError, LogFormatError) as failed:
            doubts.append(f"{name}: {_reason(failed)}")
            return {}

    high_watermarks, log_starts, cleaned = map(
        offsets, (REPLICATION_OFFSETS, LOG_START_OFFSETS, CLEANER_OFFSETS)
    )
    return _Checkpoints(
        high_watermarks=high_watermarks, log_starts=log_starts, cleaned=cleaned, doubts=tuple(doubts)
    )


def _read_epochs(path: Path) -> tuple[tuple[EpochStart, ...], tuple[str, ...]]:
    """The epochs, or none and why. None at all keeps the log from being copied."""
    try:
        return read_leader_epoch_checkpoint(path.read_bytes()).epochs, ()
    except FileNotFoundError:
        return (), ()
    except (OSError, LogFormatError) as failed:
        return (), (_reason(failed),)


def _reason(failed: OSError | LogFormatError) -> str:
    if isinstance(failed, LogFormatError):
        return str(failed)
    where = f"{Path(failed.filename).name}: " if failed.filename else ""
    return f"{where}{failed.strerror or failed}"
