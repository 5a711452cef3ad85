"""Reads a segment file in windows that begin and end on batch boundaries, in bounded memory.

The file is read in pieces, with pread into reused buffers, a few of them ahead of what is looked at: bringing
bytes from the page cache costs four times what their CRC costs, and threads share it between cores. Never a
memory map: a broker that truncates a mapped file would kill the reader with SIGBUS. A batch that straddles
two pieces is put together in the room that each buffer keeps in front of its piece. Room that no batch needed
is address space and no memory, and all of it goes when the file is read: the buffers are pages of the
kernel's, as what is freed into malloc's arenas, one for each thread, stays there.

Who reads may be given up in the middle, as by an upload that fails, and be ended by the collector of
garbage: in any thread, with any lock in that thread's hands. So its end takes none and waits for nobody
(decision 40).

Owns how a file is cut into batches by their length fields. Judges nothing: where the chain of lengths
cannot be followed, it stops and says at which byte.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias

from tiering.log.batch import HEADER_BYTES, LENGTH_AT, LENGTH_BYTES_MIN, PREFIX_BYTES

WINDOW_BYTES = 2 * 1024 * 1024
READERS = 2
PIECES_AHEAD = 4  # the one looked at, one ready, and one for each reader
# The largest batch that is looked at. Brokers take 1 MiB by default (message.max.bytes); the format's own
# limit of 2 GiB is not a size that anyone produces, and it is what a flipped length bit claims.
BATCH_BYTES_MAX = 256 * 1024 * 1024

_read_length = struct.Struct(">i").unpack_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Whole batches, back to back. `buffer` is reused: what is kept beyond the next step must be copied."""

    start: int  # position in the file of buffer[0]
    buffer: memoryview
    bounds: list[int]  # batch i is buffer[bounds[i] : bounds[i + 1]]

    def __len__(self) -> int:
        return len(self.bounds) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainBreak:
    """Where the chain of batch lengths cannot be followed any further; the file goes on to `size_bytes`."""

    position: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Bytes of the file from `start` on. They stand behind as much room as a piece is long."""

    start: int
    buffer: bytearray | mmap.mmap
    room_bytes: int
    filled_bytes: int

    @property
    def end(self) -> int:
        return self.start + self.filled_bytes

    def after(self, position: int, kept: bytes) -> memoryview:
        """The bytes from `position` on, of which `kept` stood before this piece and goes into its room."""
        began = self.room_bytes + position - self.start
        if kept:
            self.buffer[began : self.room_bytes] = kept
        return memoryview(self.buffer)[began : self.room_bytes + self.filled_bytes]


def read_windows(
    descriptor: int,
    *,
    start: int = 0,
    end: int | None = None,
    window_bytes: int = WINDOW_BYTES,
    readers: int = READERS,
) -> Iterator[Window | ChainBreak]:
    """Each window from `start` on; last of all a ChainBreak, unless a whole batch ends at `end`.

    `end` is the file's size, taken once, where it is not given: a file that grows meanwhile is read up to
    there. One that shrinks meanwhile breaks the chain where its bytes end. Without `readers` no thread is
    started: each piece is read when it is wanted.
    """
    size_bytes = os.fstat(descriptor).st_size if end is None else end
    position = start  # of the first batch that no window held yet
    kept = b""  # what the pieces so far hold of that batch
    pieces = _pieces(descriptor, start, size_bytes, max(window_bytes, HEADER_BYTES), readers)
    with closing(pieces):
        for piece in pieces:
            if piece.end <= position:
                continue  # inside a batch that was too large for the pieces
            with piece.after(position, kept) as view:
                bounds = walk(view, len(view))
                if len(bounds) > 1:
                    yield Window(start=position, buffer=view, bounds=bounds)
                position += bounds[-1]
                kept = bytes(view[bounds[-1] :])
            if len(kept) < HEADER_BYTES or (len(bounds) > 1 and len(kept) <= piece.room_bytes):
                continue
            wanted_bytes = _wanted_bytes(kept)
            if not len(kept) < wanted_bytes <= min(BATCH_BYTES_MAX, size_bytes - position):
                break
            kept, large = b"", bytearray(wanted_bytes)
            if _fill(descriptor, memoryview(large), position) < wanted_bytes:
                break
            with memoryview(large) as view:
                yield Window(start=position, buffer=view, bounds=[0, wanted_bytes])
            position += wanted_bytes
    if position < size_bytes:
        yield ChainBreak(position=position, size_bytes=size_bytes)


def walk(buffer: bytearray | memoryview, filled_bytes: int) -> list[int]:
    """Where each whole batch in the buffer begins, and where the last one ends."""
    bounds = [0]
    position = 0
    last_header = filled_bytes - HEADER_BYTES
    while position <= last_header:
        length = _read_length(buffer, position + LENGTH_AT)[0]
        position += PREFIX_BYTES + length
        if length < LENGTH_BYTES_MIN or position > filled_bytes:
            break
        bounds.append(position)
    return bounds


_Wanted: TypeAlias = "SimpleQueue[tuple[Callable[[int], _Piece], Future[_Piece]] | None]"


def _pieces(
    descriptor: int, start: int, size_bytes: int, piece_bytes: int, readers: int
) -> Generator[_Piece, None, None]:
    """The file from `start` on, in order; the last is short where the file ends early.

    A piece is valid until the next one is asked for. Each thread reads from a descriptor of its own, as
    whoever leaves early may close his before they end.
    """
    room_bytes = piece_bytes if size_bytes - start > piece_bytes else 0

    def read(descriptor: int, at: int, buffer: bytearray | mmap.mmap) -> _Piece:
        wanted_bytes = min(piece_bytes, size_bytes - at)
        with memoryview(buffer)[room_bytes : room_bytes + wanted_bytes] as view:
            filled_bytes = _fill(descriptor, view, at)
        return _Piece(start=at, buffer=buffer, room_bytes=room_bytes, filled_bytes=filled_bytes)

    starts = iter(range(start, size_bytes, piece_bytes))
    if not room_bytes or not readers:
        buffer = bytearray(room_bytes + max(0, min(piece_bytes, size_bytes - start)))
        for at in starts:
            piece = read(descriptor, at, buffer)
            yield piece
            if piece.filled_bytes < min(piece_bytes, size_bytes - at):
                return
        return
    wanted: _Wanted = SimpleQueue()
    threads: list[Thread] = []
    try:
        for _ in range(readers):
            threads.append(_reader(wanted, os.dup(descriptor)))

        def ask(at: int, buffer: bytearray | mmap.mmap) -> Future[_Piece]:
            answer: Future[_Piece] = Future()
            wanted.put((lambda descriptor: read(descriptor, at, buffer), answer))
            return answer

        buffers = [mmap.mmap(-1, room_bytes + piece_bytes) for _ in range(PIECES_AHEAD)]
        reads = deque(ask(at, buffer) for buffer, at in zip(buffers, starts, strict=False))
        while reads:
            piece = reads.popleft().result()
            yield piece
            if piece.filled_bytes < min(piece_bytes, size_bytes - piece.start):
                break
            for at in islice(starts, 1):
                reads.append(ask(at, piece.buffer))
    finally:
        for _ in threads:
            wanted.put(None)  # of a queue without a lock
    for thread in threads:
        thread.join()


def _reader(wanted: _Wanted, own: int) -> Thread:
    """A thread that reads from `own` what is wanted, closes it when nothing more is, and ends."""

    def work() -> None:
        try:
            while (asked := wanted.get()) is not None:
                read, answer = asked
                try:
                    answer.set_result(read(own))
                except BaseException as failed:  # noqa: BLE001  whoever asked is told
                    answer.set_exception(failed)
                del asked, read, answer
        finally:
            os.close(own)

    thread = Thread(target=work, name="read-ahead", daemon=True)
    try:
        thread.start()
    except BaseException:
        os.close(own)
        raise
    return thread


def _fill(descriptor: int, view: memoryview, position: int) -> int:
    """Fill as much as the file holds; a short read is a file that shrank, or a signal: read on until 0."""
    filled_bytes = 0
    while filled_bytes < len(view):
        step = os.preadv(descriptor, [view[filled_bytes:]], position + filled_bytes)
        if step == 0:
            break
        filled_bytes += step
    return filled_bytes


def _wanted_bytes(header: bytes) -> int:
    """What a batch claims to need; 0 where it has no sane length."""
    length: int = _read_length(header, LENGTH_AT)[0]
    return PREFIX_BYTES + length if length >= LENGTH_BYTES_MIN else 0
