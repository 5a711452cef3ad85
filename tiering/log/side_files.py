"""Checks the files beside a segment: indexes, snapshots, checkpoints, identity.

Owns which reader goes with which file, and what of a file can be held against its segment. Indexes carry no
checksum, so that what an entry leads to is the only proof of it: at Depth.RECORDS each offset entry is
followed to its batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from tiering.log.batch import HEADER_BYTES, read_header
from tiering.log.checkpoints import OFFSET_CHECKPOINTS, read_leader_epoch_checkpoint, read_offset_checkpoint
from tiering.log.directory import BOOTSTRAP_CHECKPOINT, FileKind, LogFile
from tiering.log.errors import IndexTargetWrong, LogFormatError
from tiering.log.identity_files import META_PROPERTIES, read_meta_properties, read_partition_metadata
from tiering.log.index import OFFSET_ENTRY, offset_index_defects, read_offset_index, time_index_defects
from tiering.log.producer_snapshot import read_producer_snapshot
from tiering.log.segment import Compaction, Depth, SegmentScan, scan
from tiering.log.transaction_index import transaction_index_defects
from tiering.outcome import Failed, Inconclusive, Outcome, Problem, Skipped, Verified

PROBLEMS_KEPT_MAX = 20
# An index is bounded by segment.index.bytes (10 MiB by default), a snapshot by the producers of a partition.
SIDE_FILE_BYTES_MAX = 256 * 1024 * 1024

Content: TypeAlias = bytes | Outcome


def check_side_file(
    file: LogFile, segment: SegmentScan | None, depth: Depth, *, content: Content | None = None
) -> Outcome:
    """A live file of a partition directory; `segment` is what its segment's scan gave, if it has one.

    `content`, if given, is what `read_side_file` found.
    """
    if file.kind is FileKind.KRAFT_SNAPSHOT:
        return check_kraft_snapshot(file.path, depth)
    found = read_side_file(file.path) if content is None else content
    return _check_bytes(found, lambda content: _defects(file, content, segment, depth))


def check_log_dir_file(path: Path) -> Outcome:
    """One of a log dir's own files."""
    if path.name == BOOTSTRAP_CHECKPOINT:
        return check_kraft_snapshot(path, Depth.RECORDS)
    if path.suffix == ".tmp":
        return Skipped("being written: renamed into place, or left behind by a crash")
    if path.name not in (META_PROPERTIES, *OFFSET_CHECKPOINTS):
        return Skipped("a marker: that it is there is all it says")

    def defects(content: bytes) -> Iterator[LogFormatError]:
        if path.name == META_PROPERTIES:
            read_meta_properties(content)
        else:
            read_offset_checkpoint(content, path.name)
        yield from ()

    return _check_bytes(read_side_file(path), defects)


def read_side_file(path: Path) -> Content:
    """All of a file, or what comes of one that cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(SIDE_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return Skipped("deleted while it was looked for")
    except OSError as exc:
        return Inconclusive(f"cannot be read: {exc.strerror}")
    if len(content) > SIDE_FILE_BYTES_MAX:
        return Inconclusive(f"over {SIDE_FILE_BYTES_MAX} bytes, more than any Kafka file of its kind")
    return content


def check_kraft_snapshot(path: Path, depth: Depth) -> Outcome:
    """A snapshot of the metadata log is batches too, numbered from 0 whatever offset it is taken at."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Skipped("deleted while it was looked for")
    try:
        found = scan(descriptor, base_offset=0, depth=depth, compaction=Compaction.NEVER)
    finally:
        os.close(descriptor)
    if found.defect is None:
        return Verified()
    return Failed((found.defect.as_problem(),))


def _defects(
    file: LogFile, content: bytes, segment: SegmentScan | None, depth: Depth
) -> Iterator[LogFormatError]:
    base = file.offset or 0
    whole = segment if segment is not None and segment.defect is None else None
    end_offset = whole.data_end if whole is not None else None
    if file.kind is FileKind.OFFSET_INDEX:
        size_bytes = segment.size_bytes if segment is not None else None
        found = list(
            offset_index_defects(content, base_offset=base, end_offset=end_offset, log_size_bytes=size_bytes)
        )
        yield from found
        if whole is not None and depth is Depth.RECORDS and not found:
            yield from _index_targets(content, base, file.path.with_suffix(".log"))
    elif file.kind is FileKind.TIME_INDEX:
        yield from time_index_defects(content, base_offset=base, end_offset=end_offset)
    elif file.kind is FileKind.TRANSACTION_INDEX:
        yield from transaction_index_defects(content, base_offset=base, end_offset=end_offset)
    elif file.kind is FileKind.PRODUCER_SNAPSHOT:
        read_producer_snapshot(content)
    elif file.kind is FileKind.LEADER_EPOCHS:
        read_leader_epoch_checkpoint(content)
    elif file.kind is FileKind.PARTITION_METADATA:
        read_partition_metadata(content)


def _index_targets(content: bytes, base_offset: int, log: Path) -> Iterator[LogFormatError]:
    """The first entry that does not lead to a batch holding its offset or one before it."""
    index = read_offset_index(content, base_offset=base_offset)
    descriptor = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for entry, (offset, target) in enumerate(index):
            try:
                found = read_header(os.pread(descriptor, HEADER_BYTES, target)).base_offset
                why = None if base_offset <= found <= offset else f"a batch of offset {found} stands there"
            except LogFormatError as exc:
                why = str(exc)
            if why is not None:
                position = entry * OFFSET_ENTRY.itemsize
                yield IndexTargetWrong(position=position, entry=entry, offset=offset, target=target, why=why)
                return
    finally:
        os.close(descriptor)


def _check_bytes(content: Content, defects: Callable[[bytes], Iterable[LogFormatError]]) -> Outcome:
    if not isinstance(content, bytes):
        return content
    problems: list[Problem] = []
    try:
        for error in islice(defects(content), PROBLEMS_KEPT_MAX):
            problems.append(_problem(error))
    except LogFormatError as exc:
        problems.append(_problem(exc))
    except FileNotFoundError:
        return Skipped("deleted while it was looked for")
    except OSError as exc:
        return Inconclusive(f"cannot be read: {exc.strerror}")
    return Failed(tuple(problems)) if problems else Verified()


def _problem(error: LogFormatError) -> Problem:
    return Problem(kind=error.kind(), detail=str(error), position=error.position)
