"""Reads that go on where they stopped: the batches of a log from an offset, as much as one answer takes.

A consumer asks for the offset behind what it got last. So a read is kept after its answer, by where it
stands, with what it fetched ahead, over segments; whoever asks for that offset next goes on with it, over
whatever connection. A read that nobody goes on with is dropped.

What will be asked for next is made ready while the client takes its answer: its batches, walked and checked.

Owns the open reads. Refuses to go on where the log is another by now: of another lineage, cut, or further
than the read knew; a new read is cheap, as its chunks are in the cache.

Invariant: an answer's batches are whole, in order, without a hole that is not on record, and none begins at
or beyond the frontier that the asker knew.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Generator
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from rules.identity import LogId
from tiering.reader.errors import GapInRange, ReadBackError, SegmentGone
from tiering.reader.interface import Gap, StoredRun, TieredLog
from tiering.reader.reader import FoundRun, TieredReader
from tiering.serve.counters import Counters
from tiering.store.errors import StoreError

CURSORS_MAX = 32  # cursors_dropped
IDLE_MAX_S = 30.0
READY_BYTES_MAX = 1024 * 1024  # of one read, made ready before it is asked for: what clients ask by default


@dataclass(frozen=True, slots=True, kw_only=True)
class TierBatches:
    """Whole batches, in one piece, and the aborted transactions that overlap them."""

    content: bytes
    next_offset: int
    aborted: tuple[tuple[int, int], ...]  # producer, first offset; by rising offset


class _Place(NamedTuple):
    """Where a read stands."""

    log: LogId
    offset: int
    committed: bool


class _Read:
    """One read, and the batches that it found and that did not fit any more, or are for the next answer.

    Whoever goes on with it holds `busy`.
    """

    def __init__(self, reader: TieredReader, log: TieredLog, start: int, *, committed: bool) -> None:
        self.log = log
        self.used_s = 0.0
        self.busy = Lock()
        self._held: deque[FoundRun | Gap] = deque()
        self._is_closed = self._has_ended = False
        self._failed: Exception | None = None
        self._items: Generator[FoundRun | Gap, None, None] = reader.runs(
            log, start, log.end, with_aborted=committed
        )

    @property
    def is_over(self) -> bool:
        """It came to its end, or to an error; nothing is left of it."""
        return self._has_ended and not self._held

    @property
    def held(self) -> FoundRun | Gap | None:
        """What `next` gives without reading."""
        return self._held[0] if self._held else None

    def next(self) -> FoundRun | Gap | None:
        """What comes next; None at the frontier as this read knows it."""
        if self._held:
            return self._held.popleft()
        if self._failed is not None:
            raise self._failed
        return self._found()

    def put_back(self, item: FoundRun | Gap) -> None:
        self._held.appendleft(item)

    def make_ready(self, size_bytes: int) -> None:
        """Find so much of what comes next. An error is for whoever asks for what lies behind it."""
        ready_bytes = sum(_size(each) for each in self._held)
        while ready_bytes < size_bytes and not self._has_ended:
            try:
                item = self._found()
            except (ReadBackError, StoreError) as failed:
                self._failed = failed
                return
            if item is not None:
                self._held.append(item)
                ready_bytes += _size(item)
                if isinstance(item, Gap):
                    return

    def _found(self) -> FoundRun | Gap | None:
        try:
            item = next(self._items, None)
        except BaseException:
            self._has_ended = True
            raise
        self._has_ended = item is None
        return item

    def close(self) -> None:
        """At once, or when whoever is busy with it is done: he calls `close_late`."""
        self._is_closed = True
        if self.busy.acquire(blocking=False):
            try:
                self._items.close()
            finally:
                self.busy.release()

    def close_late(self) -> None:
        if self._is_closed:
            self.close()


def _size(item: FoundRun | Gap) -> int:
    return 0 if isinstance(item, Gap) else item[1].size_bytes


def _fitting(run: StoredRun, room_bytes: int, frontier: int, *, at_least: int) -> int:
    """How many of its batches have room and begin before the frontier; `at_least` so many, however large."""
    return min(max(bisect_right(run.bounds, room_bytes) - 1, at_least), bisect_left(run.bases, frontier))


class Cursors:
    """Safe to use from many threads; each call reads in its own."""

    def __init__(self, reader: TieredReader, counters: Counters, *, skip_gaps: bool) -> None:
        self._reader = reader
        self._counters = counters
        self._skip_gaps = skip_gaps
        self._open: OrderedDict[_Place, _Read] = OrderedDict()
        self._lock = Lock()
        self.resumed = 0
        self.begun = 0

    def read(self, log: TieredLog, offset: int, *, max_bytes: int, committed: bool) -> TierBatches:
        """Batches from the one that holds `offset` on, at least one. Raises what the reader raises."""
        place = _Place(log.log, offset, committed)
        read = self._taken(place, log)
        try:
            with read.busy:
                is_spent = read.is_over
                found = None if is_spent else self._batches(read, log, offset, max_bytes)
            if found is None:  # what was to be made ready failed before it had anything: it is tried anew
                read = self._begin(place, log)
                with read.busy:
                    found = self._batches(read, log, offset, max_bytes)
        except BaseException:
            read.close()
            raise
        if read.is_over:
            read.close()
        else:
            self._put_back(_Place(log.log, found.next_offset, committed), read)
        return found

    def make_ready(self, log: LogId, offset: int, *, max_bytes: int, committed: bool) -> None:
        """Find what an answer that begins at `offset` will hold, if a read stands there and is free."""
        with self._lock:
            read = self._open.get(_Place(log, offset, committed))
        if read is None or not read.busy.acquire(blocking=False):
            return
        try:
            read.make_ready(min(max_bytes, READY_BYTES_MAX))
        finally:
            read.busy.release()
            read.close_late()

    def close(self) -> None:
        with self._lock:
            left, self._open = list(self._open.values()), OrderedDict()
        for read in left:
            read.close()

    def _batches(self, read: _Read, log: TieredLog, offset: int, max_bytes: int) -> TierBatches:
        contents: list[memoryview] = []
        opened_pieces = {}
        size_bytes, reached = 0, offset
        while True:
            try:
                item = read.next()
            except (ReadBackError, StoreError):
                if not contents:
                    raise
                break  # what came before it is right; who asks on is told
            if item is None:
                break
            if isinstance(item, Gap):
                if contents or not self._skip_gaps:
                    read.put_back(item)
                    break
                continue
            opened, run = item
            overlaps = contents and run.bases[0] < reached
            fitting = (
                0 if overlaps else _fitting(run, max_bytes - size_bytes, log.end, at_least=int(not contents))
            )
            if fitting == 0:
                read.put_back(item)
                break
            is_all = fitting == len(run)
            if not is_all:
                run, others = run.split(fitting)
                read.put_back((opened, others))
            contents.append(run.content)
            size_bytes += run.size_bytes
            reached = run.next_offset
            opened_pieces[id(opened)] = opened
            if not is_all:
                break
        if not contents:
            if isinstance(gap := read.held, Gap):
                raise GapInRange(log=log.log, start=gap.start, end=gap.end)
            why = "it ended before the frontier"
            raise SegmentGone(log=log.log, segment_id="-", why=why)
        aborted = {
            each for opened in opened_pieces.values() for each in opened.aborted.overlapping(offset, reached)
        }
        return TierBatches(
            content=b"".join(contents),
            next_offset=reached,
            aborted=tuple(sorted(aborted, key=lambda each: (each[1], each[0]))),
        )

    def _is_over_full(self, now_s: float) -> bool:
        oldest = next(iter(self._open.values()))
        return len(self._open) > CURSORS_MAX or now_s - oldest.used_s > IDLE_MAX_S

    def _taken(self, place: _Place, log: TieredLog) -> _Read:
        with self._lock:
            read = self._open.pop(place, None)
        if read is not None:
            is_same = read.log.coverage.lineage == log.coverage.lineage and read.log.end <= log.end
            if is_same and place.offset < read.log.end:
                with self._lock:
                    self.resumed += 1
                return read
            read.close()
        return self._begin(place, log)

    def _begin(self, place: _Place, log: TieredLog) -> _Read:
        with self._lock:
            self.begun += 1
        return _Read(self._reader, log, place.offset, committed=place.committed)

    def _put_back(self, place: _Place, read: _Read) -> None:
        now_s = time.monotonic()
        read.used_s = now_s
        with self._lock:
            dropped = [self._open.pop(place, None)]
            self._open[place] = read
            while self._is_over_full(now_s):
                self._counters.count("cursors_dropped", int(len(self._open) > CURSORS_MAX))
                dropped.append(self._open.popitem(last=False)[1])
        for each in dropped:
            if each is not None:
                each.close()
