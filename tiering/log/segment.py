"""A segment file as a whole: its batches in order, and a scan that says what it holds and what is wrong.

Owns the offset chain inside one file. Refuses to guess: a scan ends at the first defect, and its counts
are of the batches before it. Memory stays at one window and one batch, whatever the size of the file.

Invariant: a scan without a defect has read every byte of the file, every batch's CRC was right, and offsets
rose from the segment's base without stepping back. At Depth.RECORDS every record was parsed as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeAlias

from tiering.log.batch import (
    CODEC_MASK,
    CONTROL,
    COVERED_AT,
    HEADER_BYTES,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    Record,
    read_header,
    read_records,
)
from tiering.log.codec import Codec
from tiering.log.columns import ChainEnd, HeaderBlock, epoch_starts, first_defect, holes, read_block
from tiering.log.crc import crc32c
from tiering.log.defects import Defect, DefectKind, Reread, explain_break, explain_crc
from tiering.log.errors import Malformed
from tiering.log.record_checks import check_records, suspects
from tiering.log.windows import WINDOW_BYTES, ChainBreak, Window, read_windows

BLOCK_BATCHES = 4096  # columns of so many headers cost least a batch; 250 KiB
OFFSETS_MAX = 2**31  # a segment's indexes hold offsets relative to its base as int32
HOLES_KEPT_MAX = 100
# Over each batch the CRC lets go of the interpreter, and threads that all do so spend an eighth of the
# processor on taking it from each other (measured: bench/scrub.py). One thread has them by 9 GiB a second.
_ONE_AT_A_TIME = Lock()

Progress: TypeAlias = Callable[[int], None]  # told the bytes of each step

_SEGMENT_NAME = re.compile(r"^(\d{20})\.log")


class Depth(str, Enum):
    """How far a scan looks."""

    BATCHES = "batches"  # every byte under a CRC, every header
    RECORDS = "records"  # and every record inside, decompressed


class Compaction(str, Enum):
    """Whether offsets may be missing. Only where they may not is a hole a defect."""

    NEVER = "never"
    POSSIBLE = "possible"


class BatchAt(NamedTuple):
    """A batch where it stands. `buffer` is valid until the next step; `read` works until then too."""

    header: BatchHeader
    position: int  # in the file
    buffer: memoryview  # the whole batch, header included

    def records(self) -> Iterator[Record]:
        return read_records(self.buffer, self.header)

    def crc_matches(self) -> bool:
        return crc32c(self.buffer[COVERED_AT:]) == self.header.crc


@dataclass(slots=True, kw_only=True)
class SegmentScan:
    """What a scan saw. Half-open offsets; counts are of whole, good batches."""

    base_offset: int
    size_bytes: int
    depth: Depth
    data_end: int  # last record + 1, from the bytes; base_offset when there is none
    valid_bytes: int = 0  # up to here everything is good
    batch_count: int = 0
    record_count: int = 0
    control_batch_count: int = 0
    transactional_batch_count: int = 0
    first_offset: int | None = None
    max_timestamp_ms: int = NO_TIMESTAMP
    epochs: list[tuple[int, int]] = field(default_factory=list)  # (epoch, first offset)
    codecs: dict[str, int] = field(default_factory=dict)  # batches by codec
    missing_offsets: int = 0
    holes: list[tuple[int, int]] = field(default_factory=list)  # the first HOLES_KEPT_MAX
    defect: Defect | None = None


def base_offset_of(name: str) -> int:
    """The base offset that a segment file's name gives; suffixes such as `.deleted` may follow."""
    match = _SEGMENT_NAME.match(name)
    if match is None:
        raise Malformed(position=0, what=f"segment name {name!r}", why="is not 20 digits and .log")
    return int(match.group(1))


def iter_batches(descriptor: int, *, start: int = 0) -> Iterator[BatchAt]:
    """Each whole batch from byte `start` on. Raises Malformed where the file cannot be followed.

    The CRC is not checked: ask `crc_matches`, or scan.
    """
    for window in iter_windows(descriptor, start=start):
        yield from batches_of(window)


def iter_windows(descriptor: int, *, start: int = 0, window_bytes: int = WINDOW_BYTES) -> Iterator[Window]:
    """Whole batches, many at a time. Raises Malformed where the file cannot be followed."""
    for step in read_windows(descriptor, start=start, window_bytes=window_bytes):
        if isinstance(step, ChainBreak):
            defect = explain_break(rereading(descriptor), step.position, step.size_bytes)
            raise Malformed(position=defect.position, what=defect.kind.value, why=defect.detail)
        yield step


def batches_of(window: Window) -> Iterator[BatchAt]:
    """Each batch of a window, while the window is valid."""
    for begin, end in pairwise(window.bounds):
        batch = window.buffer[begin:end]
        yield BatchAt(read_header(batch), window.start + begin, batch)
        batch.release()


def scan_segment(
    path: Path,
    *,
    depth: Depth = Depth.BATCHES,
    compaction: Compaction = Compaction.NEVER,
    limit_offset: int | None = None,
    on_progress: Progress = lambda _: None,
) -> SegmentScan:
    """Scan the segment at `path`; the base offset is its name's. See `scan`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return scan(
            descriptor,
            base_offset=base_offset_of(path.name),
            depth=depth,
            compaction=compaction,
            limit_offset=limit_offset,
            on_progress=on_progress,
        )
    finally:
        os.close(descriptor)


def scan(
    descriptor: int,
    *,
    base_offset: int,
    depth: Depth = Depth.BATCHES,
    compaction: Compaction = Compaction.NEVER,
    limit_offset: int | None = None,
    on_progress: Progress = lambda _: None,
    on_bytes: Callable[[memoryview], None] = lambda _: None,
) -> SegmentScan:
    """Read the whole file once and say what it holds, up to the first defect.

    `limit_offset` is the next segment's base, where known. `on_progress` is told the bytes of each step.
    `on_bytes` is given the bytes themselves, in order, just *before* they are judged: what it copies is what
    a scan without a defect vouches for, and all of the file. It must keep no view of them.
    """
    return scan_steps(
        read_windows(descriptor),
        size_bytes=os.fstat(descriptor).st_size,
        reread=rereading(descriptor),
        base_offset=base_offset,
        depth=depth,
        compaction=compaction,
        limit_offset=limit_offset,
        on_progress=on_progress,
        on_bytes=on_bytes,
    )


def scan_steps(
    steps: Iterable[Window | ChainBreak],
    *,
    size_bytes: int,
    reread: Reread,
    base_offset: int,
    depth: Depth = Depth.BATCHES,
    compaction: Compaction = Compaction.NEVER,
    limit_offset: int | None = None,
    on_progress: Progress = lambda _: None,
    on_bytes: Callable[[memoryview], None] = lambda _: None,
) -> SegmentScan:
    """The same of a segment that lies elsewhere, in steps as `read_windows` makes them.

    `reread` is asked once at most, at the defect.
    """
    limit = base_offset + OFFSETS_MAX if limit_offset is None else limit_offset
    scanner = _Scanner(size_bytes, reread, base_offset, limit, depth, compaction)
    try:
        for step in steps:
            if isinstance(step, ChainBreak):
                scanner.end_at_break(step)
                break
            with step.buffer[: step.bounds[-1]] as whole:
                on_bytes(whole)
            scanner.add(step)
            on_progress(step.bounds[-1])
            if scanner.result.defect is not None:
                break
        scanner.flush()
    except OSError as exc:
        scanner.flush()
        scanner.end_unreadable(exc)
    return scanner.result


def rereading(descriptor: int) -> Reread:
    """What explains a defect by reading its surroundings from the same file again."""
    return lambda position, size_bytes: os.pread(descriptor, size_bytes, position)


class _Scanner:
    """Collects headers and CRCs window by window, and judges them a block at a time."""

    def __init__(
        self,
        size_bytes: int,
        reread: Reread,
        base_offset: int,
        limit_offset: int,
        depth: Depth,
        compaction: Compaction,
    ) -> None:
        self.result = SegmentScan(
            base_offset=base_offset,
            size_bytes=size_bytes,
            depth=depth,
            data_end=base_offset,
        )
        self._reread = reread
        self._compaction = compaction
        self._chain = ChainEnd(next_offset=base_offset, leader_epoch=-1, limit_offset=limit_offset)
        self._headers: list[bytes] = []
        self._positions: list[int] = []
        self._crcs: list[int] = []

    def add(self, window: Window) -> None:
        view, bounds = window.buffer, window.bounds
        with _ONE_AT_A_TIME:
            self._crcs += [crc32c(view[a + COVERED_AT : b]) for a, b in pairwise(bounds)]
        self._headers.append(b"".join([view[a : a + HEADER_BYTES] for a in bounds[:-1]]))
        self._positions += [window.start + a for a in bounds[:-1]]
        if self.result.depth is Depth.RECORDS:
            self._judge(window)
        elif len(self._positions) >= BLOCK_BATCHES:
            self._judge(None)

    def flush(self) -> None:
        if self._positions and self.result.defect is None:
            self._judge(None)

    def end_at_break(self, at: ChainBreak) -> None:
        """The batches before the break are judged first: an earlier defect may have led the chain astray."""
        self.flush()
        if self.result.defect is None:
            self.result.defect = explain_break(self._reread, at.position, at.size_bytes)

    def end_unreadable(self, error: OSError) -> None:
        if self.result.defect is None:
            self.result.defect = Defect(
                kind=DefectKind.UNREADABLE,
                position=self.result.valid_bytes,
                offset=None,
                detail=error.strerror or str(error),
            )

    def _judge(self, window: Window | None) -> None:
        block = read_block(b"".join(self._headers), self._positions, self._crcs)
        self._headers, self._positions, self._crcs = [], [], []
        found = first_defect(block, self._chain)
        good = len(block) if found is None else found[0]
        defect = None if found is None else self._describe(block, *found)
        if window is not None:
            deep = self._check_records(window, block, good)
            if deep is not None:
                good, defect = deep
        hole = self._note_holes(block, good)
        if hole is not None:
            good, defect = hole
        self._count(block, good)
        self.result.defect = defect

    def _describe(self, block: HeaderBlock, index: int, kind: DefectKind) -> Defect:
        position = int(block.positions[index])
        if kind is DefectKind.CRC_MISMATCH:
            return explain_crc(self._reread, position, self.result.size_bytes)
        if kind is DefectKind.UNSUPPORTED_MAGIC:
            return explain_break(self._reread, position, self.result.size_bytes)
        base, last = int(block.base_offset[index]), int(block.last_offset[index])
        reached = self._chain.next_offset if index == 0 else int(block.last_offset[index - 1]) + 1
        epoch_before = self._chain.leader_epoch if index == 0 else int(block.leader_epoch[index - 1])
        detail = {
            DefectKind.UNKNOWN_ATTRIBUTES: f"attributes {int(block.attributes[index]):#06x}",
            DefectKind.RECORD_COUNT: f"the header counts {int(block.record_count[index])} records in a batch "
            f"of {int(block.size_bytes[index])} bytes",
            DefectKind.LAST_OFFSET_DELTA: f"the header gives offsets {base} to {last} "
            f"to {int(block.record_count[index])} records",
            DefectKind.OFFSET_BACK: f"starts at offset {base}, when {reached} was already reached",
            DefectKind.OFFSET_BEYOND: f"ends at offset {last}, and the segment ends at "
            f"{self._chain.limit_offset}",
            DefectKind.EPOCH_BACK: f"leader epoch {int(block.leader_epoch[index])} after {epoch_before}",
        }[kind]
        return Defect(kind=kind, position=position, offset=base, detail=detail)

    def _check_records(self, window: Window, block: HeaderBlock, good: int) -> tuple[int, Defect] | None:
        exact = self._compaction is Compaction.NEVER
        for index in suspects(window.buffer, window.bounds, block, offsets_exact=exact):
            if index >= good:
                return None
            begin, end = window.bounds[index], window.bounds[index + 1]
            with window.buffer[begin:end] as batch:
                defect = check_records(batch, window.start + begin, offsets_exact=exact)
            if defect is not None:
                return index, defect
        return None

    def _note_holes(self, block: HeaderBlock, good: int) -> tuple[int, Defect] | None:
        result = self.result
        for index, start, end in holes(block, self._chain):
            if index >= good:
                return None
            if self._compaction is Compaction.NEVER:
                return index, Defect(
                    kind=DefectKind.HOLE,
                    position=int(block.positions[index]),
                    offset=start,
                    detail=f"offsets [{start}, {end}) are not all there, in a log that was never compacted",
                )
            count = int(block.record_count[index])
            inside = start == int(block.base_offset[index])
            result.missing_offsets += end - start - (count if inside else 0)
            if len(result.holes) < HOLES_KEPT_MAX:
                result.holes.append((start, end))
        return None

    def _count(self, block: HeaderBlock, good: int) -> None:
        if good == 0:
            return
        result = self.result
        result.batch_count += good
        result.record_count += int(block.record_count[:good].sum())
        attributes = block.attributes[:good]
        result.control_batch_count += int(((attributes & CONTROL) != 0).sum())
        result.transactional_batch_count += int(((attributes & TRANSACTIONAL) != 0).sum())
        for codec in Codec:
            batches = int(((attributes & CODEC_MASK) == codec).sum())
            if batches:
                name = codec.name.lower()
                result.codecs[name] = result.codecs.get(name, 0) + batches
        if result.first_offset is None:
            result.first_offset = int(block.base_offset[0])
        result.max_timestamp_ms = max(result.max_timestamp_ms, int(block.max_timestamp_ms[:good].max()))
        last_base = int(block.base_offset[good - 1])
        result.epochs += [found for found in epoch_starts(block, self._chain) if found[1] <= last_base]
        result.data_end = int(block.last_offset[good - 1]) + 1
        result.valid_bytes = int(block.positions[good - 1] + block.size_bytes[good - 1])
        self._chain = ChainEnd(
            next_offset=result.data_end,
            leader_epoch=int(block.leader_epoch[good - 1]),
            limit_offset=self._chain.limit_offset,
        )
