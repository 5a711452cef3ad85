"""Verifies files, partitions and log dirs as they lie on disk, read-only.

Owns which check goes with which file, and the one defect that no single file shows: Kafka loads a log whose
middle segment is missing without a word, as a segment is taken to reach to the next one's base. Here a
closed segment of a log that was never compacted must hold records up to that base.

Refuses to stop at the first failure: each file gets its own outcome. An active segment that ends inside a
batch is Inconclusive, as its broker may be writing at this moment.

Invariant: every file of a partition directory yields exactly one Checked, whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tiering.log.checkpoints import (
    CLEANER_OFFSETS,
    TopicPartition,
    read_offset_checkpoint,
)
from tiering.log.defects import DefectKind
from tiering.log.directory import (
    COMPACTED_TOPICS,
    DirectoryState,
    FileKind,
    FileState,
    LogFile,
    PartitionDirectory,
    Segment,
    classify,
    is_log_dir_file,
    partition_name,
    read_log_directory,
    read_partition_directory,
)
from tiering.log.errors import LogFormatError
from tiering.log.segment import Compaction, Depth, Progress, SegmentScan, base_offset_of, scan_segment
from tiering.log.side_files import Content, check_log_dir_file, check_side_file, read_side_file
from tiering.outcome import Failed, Inconclusive, Outcome, Problem, Skipped, Verified

INDEXES = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX})


class ScanSegment(Protocol):
    """`scan_segment`, or what gives the same sooner."""

    def __call__(
        self,
        path: Path,
        *,
        depth: Depth,
        compaction: Compaction,
        limit_offset: int | None,
        on_progress: Progress,
    ) -> SegmentScan: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One file and what its check came to. `scan` is there for segments."""

    path: Path
    kind: FileKind
    size_bytes: int
    outcome: Outcome
    scan: SegmentScan | None = None
    end_offset: int | None = None  # of a closed segment: the next one's base


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to verify with: how deep, what is known of compaction (None: find out), and what scans."""

    depth: Depth = Depth.BATCHES
    compaction: Compaction | None = None
    scan: ScanSegment = scan_segment


def verify_log_directory(path: Path, request: Request, on_progress: Progress) -> Iterator[Checked]:
    """Every partition of a log dir, and the log dir's own files."""
    listing = read_log_directory(path)
    for file in listing.own_files:
        yield _checked(file, FileKind.LOG_DIR_FILE, check_log_dir_file(file))
    for partition in listing.partitions:
        yield from verify_partition(partition, request, on_progress)
    for entry in listing.unknown:
        yield _skipped(entry, "not a name that Kafka gives in a log dir")


def verify_file(path: Path, request: Request, on_progress: Progress) -> Checked:
    """One file on its own, or one segment with its neighbours' names where it stands in its directory."""
    if is_log_dir_file(path):
        return _checked(path, FileKind.LOG_DIR_FILE, check_log_dir_file(path))
    file = classify(path)
    if file.kind is not FileKind.SEGMENT:
        return _checked(path, file.kind, _check(file, None, request.depth))
    if partition_name(path.resolve().parent.name) is not None:
        directory = read_partition_directory(path.resolve().parent)
        for segment in directory.segments:
            if segment.path.name == path.name:
                compaction = request.compaction or infer_compaction(directory)
                return verify_segment(segment, request.depth, compaction, on_progress, scan_with=request.scan)
    alone = Segment(
        path=path, base_offset=base_offset_of(path.name), end_offset=None, size_bytes=path.stat().st_size
    )
    return verify_segment(
        alone,
        request.depth,
        request.compaction or Compaction.NEVER,
        on_progress,
        may_grow=False,
        scan_with=request.scan,
    )


def verify_partition(path: Path, request: Request, on_progress: Progress) -> Iterator[Checked]:
    """Every file of a partition directory."""
    directory = read_partition_directory(path)
    if directory.name.state is not DirectoryState.LIVE:
        reason = f"the directory is marked -{directory.name.state.value}: Kafka is removing or moving it"
        yield from (_checked(file.path, file.kind, Skipped(reason)) for file in directory.files)
        return
    compaction = request.compaction or infer_compaction(directory)
    indexes = _indexes_being_written(directory)
    scans: dict[int, SegmentScan] = {}
    for segment in directory.segments:
        checked = verify_segment(segment, request.depth, compaction, on_progress, scan_with=request.scan)
        if checked.scan is not None:
            scans[segment.base_offset] = checked.scan
        yield checked
    live = {segment.path for segment in directory.segments}
    for file in directory.files:
        if file.path not in live:
            scan = scans.get(file.offset) if file.offset is not None else None
            outcome = _check(file, scan, request.depth, content=indexes.get(file.path))
            yield _checked(file.path, file.kind, outcome)


def _indexes_being_written(directory: PartitionDirectory) -> dict[Path, Content]:
    """The active segment's indexes, to be read before it is: a broker writes batches first, their entries
    then, and one that came during the scan would lie beyond the log."""
    active = {segment.base_offset for segment in directory.segments if not segment.is_closed}
    return {
        file.path: read_side_file(file.path)
        for file in directory.files
        if file.kind in INDEXES and file.state is FileState.LIVE and file.offset in active
    }


def infer_compaction(directory: PartitionDirectory) -> Compaction:
    """Whether the cleaner ever worked on this log, as far as its own log dir knows.

    A replica built from a compacted leader has holes and no entry yet; who knows better says so.
    """
    if directory.name.topic in COMPACTED_TOPICS:
        return Compaction.POSSIBLE
    checkpoint = directory.path.parent / CLEANER_OFFSETS
    try:
        cleaned = read_offset_checkpoint(checkpoint.read_bytes()).offsets
    except (OSError, LogFormatError):
        return Compaction.NEVER
    entry = TopicPartition(directory.name.topic, directory.name.partition)
    return Compaction.POSSIBLE if entry in cleaned else Compaction.NEVER


def verify_segment(
    segment: Segment,
    depth: Depth,
    compaction: Compaction,
    on_progress: Progress = lambda _: None,
    *,
    may_grow: bool = True,
    scan_with: ScanSegment = scan_segment,
) -> Checked:
    """One segment, up to where the next one begins. `may_grow`: it lies where a broker may be writing it."""

    def checked(outcome: Outcome, scan: SegmentScan | None) -> Checked:
        return Checked(
            path=segment.path,
            kind=FileKind.SEGMENT,
            size_bytes=segment.size_bytes,
            outcome=outcome,
            scan=scan,
            end_offset=segment.end_offset,
        )

    try:
        scan = scan_with(
            segment.path,
            depth=depth,
            compaction=compaction,
            limit_offset=segment.end_offset,
            on_progress=on_progress,
        )
    except FileNotFoundError:
        return checked(Skipped("deleted while it was looked for"), None)
    except OSError as exc:
        return checked(Failed((Problem(kind=DefectKind.UNREADABLE.value, detail=str(exc)),)), None)
    is_written = may_grow and not segment.is_closed
    return checked(_judge(segment, scan, compaction, is_written=is_written), scan)


def _judge(segment: Segment, scan: SegmentScan, compaction: Compaction, *, is_written: bool) -> Outcome:
    if scan.defect is not None:
        if scan.defect.kind is DefectKind.TORN_TAIL and is_written:
            return Inconclusive(
                f"the active segment ends inside a batch at byte {scan.defect.position}: "
                f"{scan.defect.detail}; its broker is writing it, or crashed and cuts it at its next start"
            )
        return Failed((scan.defect.as_problem(),))
    if segment.end_offset is not None and scan.data_end < segment.end_offset:
        if compaction is Compaction.NEVER:
            return Failed(
                (
                    Problem(
                        kind=DefectKind.HOLE.value,
                        position=scan.size_bytes,
                        offset=scan.data_end,
                        detail=f"offsets [{scan.data_end}, {segment.end_offset}) are missing: the next "
                        "segment starts there, and the log was never compacted",
                    ),
                )
            )
        scan.missing_offsets += segment.end_offset - scan.data_end
        scan.holes.append((scan.data_end, segment.end_offset))
    return Verified()


def _check(
    file: LogFile, scan: SegmentScan | None, depth: Depth, *, content: Content | None = None
) -> Outcome:
    if file.state is not FileState.LIVE:
        return Skipped(f"marked .{file.state.value}: Kafka is removing or replacing it")
    if file.kind is FileKind.UNKNOWN:
        return Skipped("not a name that Kafka gives in a partition directory")
    if file.kind in (FileKind.QUORUM_STATE, FileKind.REMOTE_SNAPSHOT):
        return Skipped("no reader for this kind of file yet")
    return check_side_file(file, scan, depth, content=content)


def _skipped(path: Path, reason: str) -> Checked:
    return _checked(path, FileKind.UNKNOWN, Skipped(reason))


def _checked(path: Path, kind: FileKind, outcome: Outcome) -> Checked:
    try:
        size_bytes = path.lstat().st_size
    except FileNotFoundError:
        size_bytes = 0
    return Checked(path=path, kind=kind, size_bytes=size_bytes, outcome=outcome)
