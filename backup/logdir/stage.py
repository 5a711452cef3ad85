"""One segment file: fetched, every byte verified, written beside the log with its side files.

The whole copy is read even where the file is cut, since only the whole has the checksum that is on record.
What is written is what was verified: the bytes are written as they are judged.

Owns the files of one staging folder. Refuses, as SegmentUnfit, bytes that are not what the copy's record
says, and a cut that is no batch boundary.

Invariant: a `.log` stands under its name in the staging folder only when all of it is verified and on the
disk, and its side files before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from backup.catalogue.bytes import PieceBytes
from backup.logdir.errors import SegmentUnfit
from backup.logdir.files import NewFile
from backup.logdir.side_files import Cut, cut_offset_index, cut_time_index, cut_transaction_index
from tiering.log.errors import LogFormatError
from tiering.log.segment import Compaction, iter_batches, scan_steps
from tiering.scrub.contents import log_problems, side_file_defects
from tiering.scrub.stream import windows_of
from tiering.store.aux_file import AuxContents

UNFINISHED = ".part"
WRITE_BYTES = (
    1024 * 1024
)  # what is verified is written in pieces of this size: the file is being verified yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Owner and mode of the files next to which others are put."""

    uid: int
    gid: int
    mode: int

    @classmethod
    def of(cls, path: Path) -> Likeness:
        found = path.stat()
        return cls(uid=found.st_uid, gid=found.st_gid, mode=found.st_mode & 0o777)

    def give(self, descriptor: int) -> None:
        os.fchmod(descriptor, self.mode)
        if (os.geteuid(), os.getegid()) != (self.uid, self.gid):
            os.fchown(descriptor, self.uid, self.gid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stager:
    """Stages files of one directory. No offset may be missing in a copy: no compacted log is tiered."""

    directory: Path  # the partition's, for errors
    folder: Path
    pieces: PieceBytes
    like: Likeness
    on_progress: Callable[[int], None] = lambda _: None

    def fetch_aux(self, file: NewFile) -> AuxContents:
        """The copy's `.aux`, read to its last byte, each of its files held against the segment."""
        aux = self.pieces.side_files(file.piece)
        for what, defect in side_file_defects(file.record, aux):
            raise self._unfit(file, file.piece.aux_object.key, f"{what}: {defect}")
        return aux

    def stage(self, file: NewFile, aux: Callable[[], AuxContents]) -> None:
        """All of one file; `aux` is asked for behind the segment. What stands there already was verified by
        whoever was killed since."""
        if (self.folder / f"{file.name}.log").exists():
            self.on_progress(file.record.size_bytes)
            return
        part = self.folder / f"{file.name}.log{UNFINISHED}"
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self._fetch(file, descriptor)
            cut = self._cut(file, descriptor) if file.is_cut else None
            self.like.give(descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        for name, content in side_files(file, aux(), cut).items():
            write_whole(self.folder / name, content, self.like)
        part.replace(self.folder / f"{file.name}.log")
        sync_folder(self.folder)

    def _fetch(self, file: NewFile, descriptor: int) -> None:
        record, key = file.record, file.piece.log_object.key
        writing = _Writing(descriptor)
        scan = scan_steps(
            windows_of(self.pieces.segment(file.piece), record.size_bytes),
            size_bytes=record.size_bytes,
            reread=lambda position, size_bytes: os.pread(descriptor, size_bytes, position),
            base_offset=record.base_offset,
            limit_offset=record.end_offset,
            compaction=Compaction.NEVER,
            on_bytes=writing.add,
            on_progress=self.on_progress,
        )
        writing.flush()
        problem = next(iter(log_problems(record, scan)), None)
        if problem is not None:
            raise self._unfit(file, key, problem.detail)

    def _cut(self, file: NewFile, descriptor: int) -> Cut:
        """End the file where the next one begins."""
        latest_ms, latest_offset = -1, file.base_offset
        for batch in iter_batches(descriptor):
            if batch.header.base_offset >= file.end_offset:
                position = batch.position
                break
            if batch.header.next_offset > file.end_offset:
                why = f"offset {file.end_offset}, where the next file begins, is inside one of its batches"
                raise self._unfit(file, f"{file.record.key_stem}.log", why)
            if batch.header.max_timestamp_ms > latest_ms:
                latest_ms, latest_offset = batch.header.max_timestamp_ms, batch.header.last_offset
        else:
            position = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, position)
        return Cut(
            end_offset=file.end_offset, position=position, latest_ms=latest_ms, latest_offset=latest_offset
        )

    def _unfit(self, file: NewFile, key: str, why: str) -> SegmentUnfit:
        return SegmentUnfit(directory=self.directory, base_offset=file.base_offset, key=key, why=why)


def side_files(file: NewFile, aux: AuxContents, cut: Cut | None) -> Mapping[str, bytes]:
    """By name, what belongs beside the `.log`. Without an offset index the broker makes all of them
    itself."""
    found: dict[str, bytes] = {}
    base = file.base_offset
    try:
        if aux.offset_index is not None:
            index = aux.offset_index if cut is None else cut_offset_index(aux.offset_index, base, cut)
            found[f"{file.name}.index"] = index
        if aux.time_index is not None:
            times = aux.time_index if cut is None else cut_time_index(aux.time_index, base, cut)
            found[f"{file.name}.timeindex"] = times
        if aux.transaction_index is not None:
            aborted = aux.transaction_index
            found[f"{file.name}.txnindex"] = (
                aborted if cut is None else cut_transaction_index(aborted, base, cut)
            )
    except LogFormatError as broken:  # it was read once already: a defect of ours
        raise AssertionError(str(broken)) from broken
    if aux.producer_snapshot is not None and cut is None:
        found[f"{file.end_offset:020d}.snapshot"] = aux.producer_snapshot
    return found


class _Writing:
    """Appends to a file in pieces of a good size; takes no view along."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._kept = bytearray()
        self._position = 0

    def add(self, content: memoryview) -> None:
        if len(self._kept) + len(content) >= WRITE_BYTES:
            self._write(content)
        else:
            self._kept += content

    def flush(self) -> None:
        with memoryview(b"") as nothing:
            self._write(nothing)

    def _write(self, content: memoryview) -> None:
        """What is kept, and this behind it."""
        wanted = len(self._kept) + len(content)
        with memoryview(self._kept) as kept:
            written = os.pwritev(self._descriptor, [kept, content], self._position)
            while written < wanted:
                rest = [kept[written:], content[max(0, written - len(kept)) :]]
                written += os.pwritev(self._descriptor, rest, self._position + written)
        self._position += wanted
        self._kept = bytearray()


def write_whole(path: Path, content: bytes, like: Likeness) -> None:
    """A file that is there with all of its bytes, or as it was."""
    part = path.with_name(path.name + UNFINISHED)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with memoryview(content) as view:
            written = 0
            while written < len(view):
                written += os.write(descriptor, view[written:])
        like.give(descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.replace(path)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
