"""Bytes in memory as the content of a request, in pieces small enough to be paced and timed.

A piece is what goes into one send: small enough that a byte rate is smooth and a deadline is noticed, large
enough that the interpreter costs nothing beside the copy into the socket.
"""

from __future__ import annotations

from collections.abc import Iterator

from tiering.log.wire import Buffer
from tiering.store.interface import checksum_text, crc64

PIECE_BYTES = 256 * 1024


class InMemory:
    """A buffer that nobody changes for as long as this is in use."""

    def __init__(self, buffer: Buffer) -> None:
        self._view = memoryview(buffer)

    @property
    def size_bytes(self) -> int:
        return len(self._view)

    @property
    def checksum(self) -> str:
        return checksum_text(crc64(self._view, 0))

    def __iter__(self) -> Iterator[memoryview]:
        for start in range(0, len(self._view), PIECE_BYTES):
            yield self._view[start : start + PIECE_BYTES]
