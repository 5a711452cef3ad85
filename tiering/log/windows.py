"""Reads a segment file in windows that begin and end on batch boundaries, in bounded memory.

A window is filled with pread into one reused buffer, never a memory map: a broker that truncates a mapped
file would kill the reader with SIGBUS. Copying costs nothing against mapping, as the CRC that follows
finds the bytes in cache (measured: 2 MiB windows read and checked at the speed of one mapped pass).

Owns how a file is cut into batches by their length fields. Judges nothing: where the chain of lengths
cannot be followed, it stops and says at which byte.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tiering.log.batch import HEADER_BYTES, LENGTH_AT, LENGTH_BYTES_MIN, PREFIX_BYTES

WINDOW_BYTES = 2 * 1024 * 1024
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


def read_windows(
    descriptor: int, *, start: int = 0, window_bytes: int = WINDOW_BYTES
) -> Iterator[Window | ChainBreak]:
    """Each window from `start` on; last of all a ChainBreak, unless the file ends with a whole batch.

    The size is taken once: a file that grows meanwhile is read up to there. One that shrinks meanwhile
    breaks the chain where its bytes end.
    """
    size_bytes = os.fstat(descriptor).st_size
    buffer = bytearray(min(max(window_bytes, HEADER_BYTES), max(size_bytes - start, 1)))
    position = start
    while position < size_bytes:
        filled_bytes = _fill(descriptor, buffer, position, size_bytes)
        bounds = walk(buffer, filled_bytes)
        if len(bounds) > 1:
            with memoryview(buffer) as view:
                yield Window(start=position, buffer=view, bounds=bounds)
            position += bounds[-1]
            continue
        wanted_bytes = _wanted_bytes(buffer, filled_bytes)
        if not len(buffer) < wanted_bytes <= min(BATCH_BYTES_MAX, size_bytes - position):
            yield ChainBreak(position=position, size_bytes=size_bytes)
            return
        buffer = bytearray(wanted_bytes)


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


def _fill(descriptor: int, buffer: bytearray, position: int, size_bytes: int) -> int:
    """Fill as much as the file holds; a short read is a file that shrank, or a signal: read on until 0."""
    wanted_bytes = min(len(buffer), size_bytes - position)
    filled_bytes = 0
    with memoryview(buffer) as view:
        while filled_bytes < wanted_bytes:
            step = os.preadv(descriptor, [view[filled_bytes:wanted_bytes]], position + filled_bytes)
            if step == 0:
                break
            filled_bytes += step
    return filled_bytes


def _wanted_bytes(buffer: bytearray, filled_bytes: int) -> int:
    """What a batch claims to need whose end lies outside the buffer; 0 where it has no sane length."""
    if filled_bytes < HEADER_BYTES:
        return 0
    length: int = _read_length(buffer, LENGTH_AT)[0]
    return PREFIX_BYTES + length if length >= LENGTH_BYTES_MIN else 0
