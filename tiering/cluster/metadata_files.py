"""Reads the files of a `__cluster_metadata-0` directory: batches of the log, and whole snapshots.

    <base offset:020d>.log                  segments of the log; the last one grows
    <end offset:020d>-<epoch:010d>.checkpoint   a snapshot: the state that all records below that offset made

Both are made of record batches (`tiering.log.batch`). A snapshot begins with a SnapshotHeader and ends with a
SnapshotFooter; its records have offsets of their own, which mean nothing.

Owns what these bytes say. Keeps no position and no state: `metadata_log` follows. Every batch's CRC is
checked before a record of it is believed, as the last one may be half written.

Invariant: what is yielded was whole on disk. Where the bytes go wrong, the reading ends with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tiering.cluster.image import Change
from tiering.log.batch import HEADER_BYTES
from tiering.log.directory import FileKind, FileState, Segment, read_partition_directory
from tiering.log.errors import LogFormatError, Malformed
from tiering.log.kraft.control import SnapshotFooter, SnapshotHeader, read_control_record
from tiering.log.kraft.records import read_metadata_record
from tiering.log.segment import BatchAt, iter_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBatch:
    """A whole batch of the log, its CRC right. `header` is what it is known again by."""

    position: int  # in its file
    end_position: int
    header: bytes
    base_offset: int
    next_offset: int
    epoch: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotName:
    """A snapshot by its file name: it holds what the records below `end_offset` made."""

    path: Path
    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataListing:
    """What stands in the directory, oldest first."""

    segments: tuple[Segment, ...]
    snapshots: tuple[SnapshotName, ...]


def list_metadata_directory(directory: Path) -> MetadataListing:
    """One listing. Files that Kafka writes or has marked for deletion are not in it."""
    listing = read_partition_directory(directory)
    snapshots = []
    for file in listing.of_kind(FileKind.KRAFT_SNAPSHOT, FileState.LIVE):
        end_offset, epoch = file.path.stem.split("-")
        snapshots.append(SnapshotName(path=file.path, end_offset=int(end_offset), epoch=int(epoch)))
    snapshots.sort(key=lambda name: (name.end_offset, name.epoch))
    return MetadataListing(segments=listing.segments, snapshots=tuple(snapshots))


def read_batches(path: Path, *, start: int = 0) -> Iterator[MetadataBatch | LogFormatError]:
    """Each whole batch from byte `start` on; then, if the bytes go wrong, why, as the last item.

    At the end of the newest segment that is a batch being written; anywhere else it is damage.
    """
    with _opened(path) as descriptor:
        try:
            for batch in iter_batches(descriptor, start=start):
                if not batch.crc_matches():
                    raise Malformed(position=batch.position, what="metadata batch", why="its CRC is wrong")
                yield _read_batch(batch)
        except LogFormatError as broken:
            yield broken


def header_at(path: Path, position: int) -> bytes | None:
    """The 61 bytes that a batch at `position` begins with; None if the file is gone or shorter."""
    try:
        with _opened(path) as descriptor:
            header = os.pread(descriptor, HEADER_BYTES, position)
    except FileNotFoundError:
        return None
    return header if len(header) == HEADER_BYTES else None


def read_snapshot(name: SnapshotName) -> tuple[Change, ...]:
    """Every record of a snapshot, each as of the snapshot's last offset. Raises LogFormatError if it is not
    whole.
    """
    records: list[Change] = []
    header: SnapshotHeader | None = None
    ended = False
    for batch in read_batches(name.path):
        if isinstance(batch, LogFormatError):
            raise batch
        for change in batch.changes:
            if isinstance(change.record, SnapshotHeader):
                header = change.record
            ended = isinstance(change.record, SnapshotFooter)
            records.append(change)
    if header is None or not ended:
        missing = "header" if header is None else "footer"
        raise Malformed(position=0, what=f"snapshot {name.path.name}", why=f"has no {missing}")
    return tuple(
        Change(
            offset=name.end_offset - 1,
            decided_at=name.end_offset - 1,
            epoch=name.epoch,
            timestamp_ms=header.last_contained_log_timestamp,
            record=change.record,
        )
        for change in records
    )


def _read_batch(batch: BatchAt) -> MetadataBatch:
    header = batch.header
    changes = []
    for record in batch.records():
        value = record.value or b""
        read = (
            read_control_record(record.key or b"", value)
            if header.is_control
            else read_metadata_record(value)
        )
        changes.append(
            Change(
                offset=record.offset,
                decided_at=record.offset,
                epoch=header.leader_epoch,
                timestamp_ms=record.timestamp_ms,
                record=read,
                batch_end=header.next_offset,
            )
        )
    return MetadataBatch(
        position=batch.position,
        end_position=batch.position + header.size_bytes,
        header=bytes(batch.buffer[:HEADER_BYTES]),
        base_offset=header.base_offset,
        next_offset=header.next_offset,
        epoch=header.leader_epoch,
        changes=tuple(changes),
    )


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
