"""What stands in a stopped broker's log dir, and whether it may be touched.

Owns the reading and the refusals that need no copy: whose the directory is, whether the broker stopped in
order. Changes nothing.

Invariant: a Replica is of the cluster, the broker and the topic id that were asked for, closed by its broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from backup.logdir.errors import Cleaned, ForeignDirectory, NoReplica, NotCleanlyStopped, Unreadable
from rules.identity import LogId
from tiering.log.checkpoints import (
    CLEANER_OFFSETS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    EpochStart,
    TopicPartition,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tiering.log.directory import PartitionDirectory, read_partition_directory
from tiering.log.errors import LogFormatError
from tiering.log.identity_files import (
    META_PROPERTIES,
    PARTITION_METADATA,
    read_meta_properties,
    read_partition_metadata,
)

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The log that is meant, and the broker whose log dir is looked at; None: any broker of the cluster."""

    log: LogId
    topic: str
    broker_id: int | None = None

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.log.partition)

    @property
    def directory_name(self) -> str:
        return f"{self.topic}-{self.log.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica's directory, its broker stopped. `log_starts` are of every partition of the log dir."""

    log_dir: Path
    broker_id: int
    listing: PartitionDirectory
    epochs: tuple[EpochStart, ...]
    log_starts: Mapping[TopicPartition, int]
    cleaned_to: int | None  # it is, or was, compacted: up to here

    @property
    def path(self) -> Path:
        return self.listing.path

    def expect_never_cleaned(self) -> None:
        """Raises Cleaned."""
        if self.cleaned_to is not None:
            raise Cleaned(directory=self.path, cleaned_to=self.cleaned_to)

    @property
    def first_base(self) -> int:
        """Where its first segment begins: what is put back ends exactly here."""
        return self.listing.segments[0].base_offset


def broker_of(log_dir: Path) -> tuple[str, int]:
    """The cluster and the broker that a log dir says it belongs to."""
    try:
        meta = read_meta_properties((log_dir / META_PROPERTIES).read_bytes())
    except FileNotFoundError:
        raise Unreadable(directory=log_dir, why=f"it has no {META_PROPERTIES}: not a log dir") from None
    except LogFormatError as broken:
        raise Unreadable(directory=log_dir, why=str(broken)) from broken
    if meta.cluster_id is None or meta.node_id is None:
        raise Unreadable(directory=log_dir, why=f"{META_PROPERTIES} names no cluster or no broker")
    return meta.cluster_id, meta.node_id


def read_replica(log_dir: Path, wanted: Wanted) -> Replica:
    """What is there, by its files. Raises what speaks against touching it. Call it with the lock held."""
    cluster_id, broker_id = broker_of(log_dir)
    _expect(log_dir, "cluster", cluster_id, wanted.log.cluster_id)
    if wanted.broker_id is not None:
        _expect(log_dir, "broker", str(broker_id), str(wanted.broker_id))
    directory = log_dir / wanted.directory_name
    if not directory.is_dir():
        raise NoReplica(directory=log_dir, log=wanted.directory_name)
    if not (log_dir / CLEAN_SHUTDOWN).exists():
        raise NotCleanlyStopped(directory=log_dir)
    try:
        topic_id = read_partition_metadata((directory / PARTITION_METADATA).read_bytes())
        _expect(directory, "topic id", topic_id, wanted.log.topic_id)
        listing = read_partition_directory(directory)
        epochs = read_leader_epoch_checkpoint(_bytes_of(directory / LEADER_EPOCHS)).epochs
        starts = read_offset_checkpoint(_bytes_of(log_dir / LOG_START_OFFSETS), LOG_START_OFFSETS).offsets
        cleaned = read_offset_checkpoint(_bytes_of(log_dir / CLEANER_OFFSETS), CLEANER_OFFSETS).offsets
    except FileNotFoundError as missing:
        raise Unreadable(directory=directory, why=f"{missing.filename} is not there") from None
    except LogFormatError as broken:
        raise Unreadable(directory=directory, why=str(broken)) from broken
    if not listing.segments:
        raise Unreadable(directory=directory, why="it has no segment at all")
    return Replica(
        log_dir=log_dir,
        broker_id=broker_id,
        listing=listing,
        epochs=epochs,
        log_starts=starts,
        cleaned_to=cleaned.get(wanted.partition),
    )


def _bytes_of(path: Path) -> bytes:
    """A checkpoint's bytes; a file that is not there says as much as an empty one, to Kafka too."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _expect(directory: Path, what: str, found: str, expected: str) -> None:
    if found != expected:
        raise ForeignDirectory(directory=directory, what=what, found=found, expected=expected)
