"""Bytes that come in pieces, cut into windows of whole batches as `tiering.log.windows` cuts a file.

Nothing is copied but the batch that straddles two pieces: memory is one piece and one batch.

Invariant: windows are back to back from byte 0; where they stop before `size_bytes`, a ChainBreak says at
which byte, and no more of the pieces is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from tiering.log.batch import HEADER_BYTES, LENGTH_AT, LENGTH_BYTES_MIN, PREFIX_BYTES
from tiering.log.windows import BATCH_BYTES_MAX, ChainBreak, Window, walk

_read_length = struct.Struct(">i").unpack_from


def windows_of(pieces: Iterable[memoryview], size_bytes: int) -> Iterator[Window | ChainBreak]:
    """`size_bytes` is what all pieces come to."""
    position = 0  # of the first batch that no window held yet
    kept = bytearray()  # what has come of that batch
    for piece in pieces:
        at = 0
        if kept:
            at = _take(kept, piece, HEADER_BYTES)
            if len(kept) < HEADER_BYTES:
                continue
            wanted_bytes = _wanted_bytes(kept)
            if not HEADER_BYTES <= wanted_bytes <= min(BATCH_BYTES_MAX, size_bytes - position):
                break
            at += _take(kept, piece[at:], wanted_bytes)
            if len(kept) < wanted_bytes:
                continue
            with memoryview(kept) as batch:
                yield Window(start=position, buffer=batch, bounds=[0, wanted_bytes])
            position += wanted_bytes
        with piece[at:] as view:
            bounds = walk(view, len(view))
            if len(bounds) > 1:
                yield Window(start=position, buffer=view, bounds=bounds)
            position += bounds[-1]
            kept = bytearray(view[bounds[-1] :])
    if position < size_bytes:
        yield ChainBreak(position=position, size_bytes=size_bytes)


def whole(pieces: Iterable[memoryview]) -> bytes:
    """All of them: each is gone when the next one comes."""
    kept = bytearray()
    for piece in pieces:
        kept += piece
    return bytes(kept)


def _take(kept: bytearray, piece: memoryview, wanted_bytes: int) -> int:
    """Fill up what is kept to `wanted_bytes`, as far as the piece goes; how much of it that took."""
    taken = piece[: max(0, wanted_bytes - len(kept))]
    kept += taken
    return len(taken)


def _wanted_bytes(header: bytearray) -> int:
    """What a batch claims to need; 0 where it has no sane length."""
    length: int = _read_length(header, LENGTH_AT)[0]
    return PREFIX_BYTES + length if length >= LENGTH_BYTES_MIN else 0
