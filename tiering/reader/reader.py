"""Reads a log back from the tier: raw batches or records, by offset and by time.

    batches, records                    of `[start, end)`; a recorded gap inside is an error, GapInRange
    batches_and_gaps, records_and_gaps  the same; a recorded gap is an item of its own, in its place
    offset_at                           of the first record that is of a time or later

What lies outside of what the tier covers is RangeNotInTier, said before anything is read. Restore, scrub and
serving build on this, and find the errors in `errors`.

Owns the order of a read, over segments, and the threads that fetch ahead. Refuses to fill anything in: there
is no read that skips what it could not have.

Invariant: each offset of the range comes once and in order, or is in a gap, or an error says which is not
there; the items before the error are right.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from types import TracebackType
from typing import TypeAlias, TypeVar

from tiering.log.batch import Record
from tiering.log.errors import LogFormatError
from tiering.reader.ahead import Ahead, Turn
from tiering.reader.chunks import Chunks, FetchCounters
from tiering.reader.errors import GapInRange, RangeNotInTier, ReadBackError
from tiering.reader.interface import (
    ChunkCache,
    Gap,
    Isolation,
    Objects,
    ReaderLimits,
    StoredBatch,
    StoredRun,
    TieredLog,
)
from tiering.reader.opened import OpenedPiece, first_late_offset, open_piece, record_of
from tiering.reader.walk import Walk, damage_of
from tiering.segments.coverage import Answer, Piece
from tiering.store.errors import StoreError

OPENED_AHEAD = 3  # pieces whose record and index are at hand before their turn

Found: TypeAlias = tuple[OpenedPiece, StoredBatch]
FoundRun: TypeAlias = tuple[OpenedPiece, StoredRun]
_Entry: TypeAlias = Future[OpenedPiece] | Gap


class TieredReader:
    """Reads logs from one bucket. Several threads may read at once. Close it after the last."""

    def __init__(
        self, objects: Objects, *, cache: ChunkCache | None = None, limits: ReaderLimits | None = None
    ) -> None:
        self._limits = limits or ReaderLimits()
        self._chunks = Chunks(objects, cache, self._limits.chunk_bytes)
        self._pool = ThreadPoolExecutor(self._limits.fetchers, thread_name_prefix="seawall-fetch")

    @property
    def counters(self) -> FetchCounters:
        return self._chunks.counters

    def batches(self, log: TieredLog, start: int, end: int) -> Iterator[StoredBatch]:
        """Each batch that holds an offset of `[start, end)`."""
        return (_no_gap(log, item) for item in self.batches_and_gaps(log, start, end))

    def batches_and_gaps(self, log: TieredLog, start: int, end: int) -> Iterator[StoredBatch | Gap]:
        """The same, with recorded gaps."""
        _check_range(log, start, end)
        pieces = log.coverage.pieces(start, end)
        return self._batches(log, pieces)

    def found(
        self, log: TieredLog, start: int, end: int, *, with_aborted: bool
    ) -> Generator[Found | Gap, None, None]:
        """The same, each batch with the opened piece that it is of, and so with what was aborted there."""
        _check_range(log, start, end)
        return self._walk(log, log.coverage.pieces(start, end), with_aborted=with_aborted)

    def runs(
        self, log: TieredLog, start: int, end: int, *, with_aborted: bool
    ) -> Generator[FoundRun | Gap, None, None]:
        """The same, as many batches at a time as lie together."""
        _check_range(log, start, end)
        return self._runs(log, log.coverage.pieces(start, end), with_aborted=with_aborted)

    def records(
        self, log: TieredLog, start: int, end: int, *, isolation: Isolation = Isolation.READ_COMMITTED
    ) -> Iterator[Record]:
        """Each record of `[start, end)` that a consumer of this isolation level would be shown."""
        return (_no_gap(log, item) for item in self.records_and_gaps(log, start, end, isolation=isolation))

    def records_and_gaps(
        self, log: TieredLog, start: int, end: int, *, isolation: Isolation = Isolation.READ_COMMITTED
    ) -> Iterator[Record | Gap]:
        """The same, with recorded gaps."""
        _check_range(log, start, end)
        return self._records(log, log.coverage.pieces(start, end), isolation)

    def offset_at(
        self, log: TieredLog, timestamp_ms: int, *, start: int = 0, with_control: bool = True
    ) -> int | None:
        """The offset of `record_at`; None if there is none."""
        found = self.record_at(log, timestamp_ms, start=start, with_control=with_control)
        return None if found is None else found.offset

    def record_at(
        self, log: TieredLog, timestamp_ms: int, *, start: int = 0, with_control: bool = True
    ) -> Record | None:
        """The first record in the tier, from offset `start` on, that is of this time or later; None if none.

        By default what Kafka's own search by time finds, which counts control records: those carry the time
        at which a transaction ended, whatever times its records have. Where timestamps do not rise, records
        behind the one found may be earlier.
        """
        for piece in log.coverage.from_time(timestamp_ms):
            if piece.end <= start:
                continue
            first = max(start, first_late_offset(self._chunks, log, piece, timestamp_ms))
            if first >= piece.end:
                continue
            rest = Piece(start=first, end=piece.end, segment_id=piece.segment_id)
            with closing(self._walk(log, iter([rest]), with_aborted=False)) as items:
                for item in items:
                    if isinstance(item, Gap) or (item[1].header.is_control and not with_control):
                        continue
                    found = _first_late(item, timestamp_ms)
                    if found is not None:
                        return found
        return None

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> TieredReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _batches(self, log: TieredLog, pieces: Iterator[Answer]) -> Iterator[StoredBatch | Gap]:
        with closing(self._walk(log, pieces, with_aborted=False)) as items:
            for item in items:
                yield item if isinstance(item, Gap) else item[1]

    def _records(
        self, log: TieredLog, pieces: Iterator[Answer], isolation: Isolation
    ) -> Iterator[Record | Gap]:
        committed = isolation is Isolation.READ_COMMITTED
        with closing(self._walk(log, pieces, with_aborted=committed)) as items:
            for item in items:
                if isinstance(item, Gap):
                    yield item
                    continue
                opened, batch = item
                if batch.header.is_control or opened.aborted.hides(batch.header):
                    continue
                yield from _records_of(opened, batch)

    def _walk(
        self, log: TieredLog, pieces: Iterator[Answer], *, with_aborted: bool
    ) -> Generator[Found | Gap, None, None]:
        """Every batch of every piece."""
        with closing(self._runs(log, pieces, with_aborted=with_aborted)) as items:
            for item in items:
                if isinstance(item, Gap):
                    yield item
                else:
                    for batch in item[1].batches():
                        yield item[0], batch

    def _runs(
        self, log: TieredLog, pieces: Iterator[Answer], *, with_aborted: bool
    ) -> Generator[FoundRun | Gap, None, None]:
        """Every batch of every piece, as they lie together; fetched ahead across pieces."""
        chunks = self._chunks

        def open_soon(piece: Piece) -> Future[OpenedPiece]:
            try:
                record = record_of(log, piece)  # by the thread that reads: tables are not for several
            except ReadBackError as gone:
                failed: Future[OpenedPiece] = Future()
                failed.set_exception(gone)
                return failed
            return self._pool.submit(open_piece, chunks, log, piece, record, with_aborted=with_aborted)

        def fetch(turn: Turn) -> bytes:
            return chunks.get(turn.source, turn.chunk)

        queue = _Queue(pieces, open_soon)
        ahead = Ahead(self._pool, fetch, queue.expected(chunks.chunk_bytes), self._limits.ahead_chunks)
        try:
            place = 0
            while (entry := queue.at(place)) is not None:
                if isinstance(entry, Gap):
                    yield entry
                else:
                    opened = entry.result()
                    for run in self._piece(opened, place, ahead).runs():
                        yield opened, run
                queue.forget(place)
                place += 1
        finally:
            ahead.close()
            queue.close()

    def _piece(self, opened: OpenedPiece, place: int, ahead: Ahead) -> Walk:
        source = opened.source
        return Walk(
            opened,
            self._chunks.chunk_bytes,
            take=lambda index: ahead.take(Turn(place, index, source)),
            take_again=lambda index: self._chunks.get_again(source, index),
        )


class _Queue:
    """The pieces of one read by their place in it, the next few already being opened."""

    def __init__(self, pieces: Iterator[Answer], open_soon: Callable[[Piece], Future[OpenedPiece]]) -> None:
        self._pieces = pieces
        self._open_soon = open_soon
        self._entries: dict[int, _Entry] = {}
        self._next = 0

    def at(self, place: int) -> _Entry | None:
        """What stands at `place`; None behind the last."""
        while self._next <= place + OPENED_AHEAD:
            piece = next(self._pieces, None)
            if piece is None:
                break
            entry = self._open_soon(piece) if isinstance(piece, Piece) else Gap(piece.start, piece.end)
            self._entries[self._next] = entry
            self._next += 1
        return self._entries.get(place)

    def forget(self, place: int) -> None:
        self._entries.pop(place, None)

    def expected(self, chunk_bytes: int) -> Iterator[Turn]:
        """The chunks that will be asked for, as far as pieces can be opened: an error is told in its turn."""
        place = 0
        while (entry := self.at(place)) is not None:
            if not isinstance(entry, Gap):
                try:
                    opened = entry.result()
                except (ReadBackError, StoreError):
                    return
                last = (opened.likely_end - 1) // chunk_bytes
                for index in range(opened.begin // chunk_bytes, last + 1):
                    yield Turn(place, index, opened.source)
            place += 1

    def close(self) -> None:
        for entry in self._entries.values():
            if not isinstance(entry, Gap):
                entry.cancel()


def _check_range(log: TieredLog, start: int, end: int) -> None:
    assert start <= end, (start, end)
    if start < end and not log.start <= start < end <= log.end:
        raise RangeNotInTier(log=log.log, start=start, end=end, first=log.start, last=log.end)


_Item = TypeVar("_Item", StoredBatch, Record)


def _no_gap(log: TieredLog, item: _Item | Gap) -> _Item:
    if isinstance(item, Gap):
        raise GapInRange(log=log.log, start=item.start, end=item.end)
    return item


def _records_of(opened: OpenedPiece, batch: StoredBatch) -> Iterator[Record]:
    try:
        yield from batch.records()
    except LogFormatError as broken:
        raise damage_of(batch, opened, broken) from broken


def _first_late(item: Found, timestamp_ms: int) -> Record | None:
    opened, batch = item
    if batch.header.max_timestamp_ms < timestamp_ms:
        return None
    return next((each for each in _records_of(opened, batch) if each.timestamp_ms >= timestamp_ms), None)
