"""A piece of a range, made ready to be read: its segment's record, where to begin, what was aborted in it.

Begin and end come from the offset index in the segment's `.aux`, the aborted transactions from the list that
was resolved when it was uploaded, so that no other segment is needed. Neither is fetched where it would not
be used. `begin` and `likely_end` are only hints: `walk` holds them against the batches themselves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tiering.log.batch import BatchHeader
from tiering.log.errors import LogFormatError
from tiering.log.index import OffsetIndex, read_offset_index, read_time_index
from tiering.reader.chunks import Chunks, Source
from tiering.reader.errors import SegmentGone
from tiering.reader.interface import TieredLog
from tiering.segments.coverage import Piece
from tiering.segments.records import ObjectRef, SegmentRecord, SegmentState
from tiering.store.aux_file import (
    HEADER_BYTES_MAX,
    AuxHeader,
    SectionKind,
    read_aborted,
    read_aux_header,
    read_section,
)

T = TypeVar("T")


class Aborted:
    """The aborted transactions that overlap one segment."""

    def __init__(self, ranges: Mapping[int, list[tuple[int, int]]]) -> None:
        self._ranges = {producer: sorted(each) for producer, each in ranges.items()}

    def hides(self, header: BatchHeader) -> bool:
        """Whether a batch's records were aborted. A producer has one transaction at a time."""
        if not header.is_transactional:
            return False
        ranges = self._ranges.get(header.producer_id, [])
        place = bisect_right(ranges, header.base_offset, key=lambda each: each[0])
        return place > 0 and header.base_offset <= ranges[place - 1][1]

    def overlapping(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The producer and first offset of each transaction with an offset in `[start, end)`."""
        for producer, ranges in self._ranges.items():
            for first, last in ranges:
                if first < end and last >= start:
                    yield producer, first


NOTHING_ABORTED = Aborted({})


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPiece:
    """A piece and how to read it."""

    piece: Piece
    record: SegmentRecord
    source: Source  # the `.log`
    begin: int  # a byte at which a batch starts, at or before the piece's first
    likely_end: int  # a byte behind the piece's last batch
    aborted: Aborted


def open_piece(
    chunks: Chunks, log: TieredLog, piece: Piece, record: SegmentRecord, *, with_aborted: bool
) -> OpenedPiece:
    """Get it ready, given its `record_of`. Raises what `errors` has."""
    source = _source(log, record, record.objects.log, "log")
    begin, likely_end = 0, source.ref.size_bytes
    clipped = piece.start > record.base_offset or piece.end < record.data_end
    if clipped and source.ref.size_bytes > chunks.chunk_bytes:
        index = _of_aux(chunks, log, record, lambda aux: aux.offset_index())
        if index is not None:
            begin, likely_end = _bounds(index, piece, source.ref.size_bytes)
    aborted = NOTHING_ABORTED
    if with_aborted and record.has_txn_index:
        aborted = _of_aux(chunks, log, record, lambda aux: aux.aborted())
    return OpenedPiece(
        piece=piece, record=record, source=source, begin=begin, likely_end=likely_end, aborted=aborted
    )


def first_late_offset(chunks: Chunks, log: TieredLog, piece: Piece, timestamp_ms: int) -> int:
    """Below this offset no record of the piece's segment is of `timestamp_ms` or later: its time index."""
    record = record_of(log, piece)
    found = _of_aux(chunks, log, record, lambda aux: aux.early_until(timestamp_ms))
    return max(piece.start, found)


def record_of(log: TieredLog, piece: Piece) -> SegmentRecord:
    """What the table has of the piece's segment now; SegmentGone unless it may be read."""
    record = log.segment(piece.segment_id)
    if record is None:
        raise SegmentGone(log=log.log, segment_id=piece.segment_id, why="the table has no record of it now")
    if record.state is not SegmentState.COPY_FINISHED:
        why = f"it is {record.state.value} now"
        raise SegmentGone(log=log.log, segment_id=piece.segment_id, why=why)
    return record


def _source(log: TieredLog, record: SegmentRecord, ref: ObjectRef | None, kind: str) -> Source:
    if ref is None:
        why = f"its record names no .{kind} object"
        raise SegmentGone(log=log.log, segment_id=record.segment_id, why=why)
    return Source(log.log, record.segment_id, ref)


def _bounds(index: OffsetIndex, piece: Piece, size_bytes: int) -> tuple[int, int]:
    """From where to where to read: an entry names a batch by its last offset, and where it starts.

    So batches behind the *next* entry after the first that reaches the end are surely not wanted.
    """
    begin = index.lookup(piece.start).position
    last = bisect_left(index.relative_offsets, piece.end - 1 - index.base_offset) + 1
    end = index[last].position if last < len(index) else size_bytes
    return (begin, end) if begin < end <= size_bytes else (0, size_bytes)


class _Aux:
    """An `.aux` of which some sections are read."""

    def __init__(self, chunks: Chunks, source: Source, base_offset: int, *, again: bool) -> None:
        self._chunks, self._source, self._again = chunks, source, again
        self._base_offset = base_offset
        self._kept: tuple[int, bytes] | None = None
        self._header: AuxHeader = read_aux_header(self._read(0, min(HEADER_BYTES_MAX, source.ref.size_bytes)))
        if self._header.file_size_bytes != source.ref.size_bytes:
            why = f"its sections end at byte {self._header.file_size_bytes} of {source.ref.size_bytes}"
            raise source.damaged(0, why)

    def offset_index(self) -> OffsetIndex | None:
        content = self._section(SectionKind.OFFSET_INDEX)
        return None if content is None else read_offset_index(content, base_offset=self._base_offset)

    def early_until(self, timestamp_ms: int) -> int:
        content = self._section(SectionKind.TIME_INDEX)
        if content is None:
            return self._base_offset
        index = read_time_index(content, base_offset=self._base_offset)
        found = index.lookup(timestamp_ms - 1)
        return found.offset + 1 if found.timestamp_ms >= 0 else self._base_offset

    def aborted(self) -> Aborted:
        content = self._section(SectionKind.ABORTED)
        if content is None:
            raise self._source.damaged(0, "it has no list of aborted transactions")
        ranges: dict[int, list[tuple[int, int]]] = {}
        for each in read_aborted(content, self._header):
            ranges.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
        return Aborted(ranges)

    def _section(self, kind: SectionKind) -> bytes | None:
        section = self._header.section(kind)
        if section is None:
            return None
        return read_section(section, self._read(section.position, section.end))

    def _read(self, start: int, end: int) -> bytes:
        """As `Chunks.read`; the first chunk, which often is all there is, is fetched once."""
        chunk_bytes = self._chunks.chunk_bytes
        if end > chunk_bytes:
            return self._chunks.read(self._source, start, end, again=self._again)
        if self._kept is None:
            size_bytes = min(chunk_bytes, self._source.ref.size_bytes)
            self._kept = (0, self._chunks.read(self._source, 0, size_bytes, again=self._again))
        return self._kept[1][start:end]


def _of_aux(chunks: Chunks, log: TieredLog, record: SegmentRecord, read: Callable[[_Aux], T]) -> T:
    """Something out of a segment's `.aux`; bytes that are not right are fetched a second time."""
    source = _source(log, record, record.objects.aux, "aux")
    try:
        return read(_Aux(chunks, source, record.base_offset, again=False))
    except LogFormatError:
        pass
    try:
        return read(_Aux(chunks, source, record.base_offset, again=True))
    except LogFormatError as broken:
        raise source.damaged(broken.position, str(broken)) from broken
