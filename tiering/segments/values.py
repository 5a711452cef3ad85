"""Record values kept in memory, compressed together, each one to be had again as it was stored.

Values of one topic differ little: together they compress to a fifth, each alone hardly at all. So they are
gathered in chunks of CHUNK_BYTES; a full one is compressed and never changed. When many values come at once
a thread compresses their chunks, one thread for the process: the few that wait for it are read as they are.
What is superseded stays in its chunk, and is counted; `needs_rewriting` says when half of all is waste.

Owns the bytes and where they are. Refuses to know which values are still wanted: the table says, by `drop`
and when it rewrites.

Invariant: `get` of a place returns the bytes that `add` gave the place for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import BoundedSemaphore
from typing import Any, NamedTuple

import cramjam
import numpy as np
import numpy.typing as npt

CHUNK_BYTES = 256 * 1024
COMPRESSION_LEVEL = 1
UNPACKED_CHUNKS = 16  # what a scan in order needs, many times over
WASTE_BYTES = 4 << 20  # not worth a rewrite
WAITING_CHUNKS_MAX = 64  # 16 MiB, in all tables together

Column = npt.NDArray[Any]


class Place(NamedTuple):
    """Where a value is: in which chunk, from which byte, how long."""

    chunk: int
    start: int
    length: int


class _Chunk:
    """Bytes that do not change any more, compressed or not yet. Whoever asks while a thread compresses them
    gets them from the one form or the other: the new one is there before the old one goes."""

    __slots__ = ("_packed", "_plain", "length")

    def __init__(self, length: int, *, plain: bytes | None = None, packed: bytes | None = None) -> None:
        self.length = length
        self._plain = plain
        self._packed = packed

    def pack(self) -> bytes:
        plain = self._plain
        if plain is not None:
            self._packed = bytes(cramjam.zstd.compress(plain, level=COMPRESSION_LEVEL))
            self._plain = None
        assert self._packed is not None
        return self._packed

    def unpack(self) -> bytes:
        plain = self._plain
        if plain is not None:
            return plain
        assert self._packed is not None
        return bytes(cramjam.zstd.decompress(self._packed))

    @property
    def size_bytes(self) -> int:
        return len(self._plain or self._packed or b"")


_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compress")
_may_wait = BoundedSemaphore(WAITING_CHUNKS_MAX)


def _pack_soon(chunk: _Chunk) -> None:
    """Leave a chunk to the thread. Whatever fails there fails again for whoever asks for it packed."""
    _may_wait.acquire()
    _thread.submit(chunk.pack).add_done_callback(lambda _: _may_wait.release())


class StoredValues:
    """Values in the order in which they came."""

    def __init__(
        self, packed: Iterable[tuple[bytes, int]] = (), tail: bytes = b"", dropped_bytes: int = 0
    ) -> None:
        self._chunks = [_Chunk(length, packed=content) for content, length in packed]
        self._tail = bytearray(tail)
        self._unpacked: OrderedDict[int, bytes] = OrderedDict()
        self._dropped_bytes = dropped_bytes

    @property
    def packed(self) -> Sequence[tuple[bytes, int]]:
        """Each chunk, compressed, and how many bytes it was."""
        return [(chunk.pack(), chunk.length) for chunk in self._chunks]

    @property
    def tail(self) -> bytes:
        return bytes(self._tail)

    @property
    def dropped_bytes(self) -> int:
        return self._dropped_bytes

    @property
    def size_bytes(self) -> int:
        """What the values take in memory, places not counted."""
        unpacked = sum(map(len, self._unpacked.values()))
        return sum(chunk.size_bytes for chunk in self._chunks) + len(self._tail) + unpacked

    @property
    def stored_bytes(self) -> int:
        """What was added, as it was, waste included."""
        return sum(chunk.length for chunk in self._chunks) + len(self._tail)

    def add(self, value: bytes) -> Place:
        place = Place(len(self._chunks), len(self._tail), len(value))
        self._tail += value
        if len(self._tail) >= CHUNK_BYTES:
            chunk = _Chunk(len(self._tail), plain=bytes(self._tail))
            chunk.pack()
            self._chunks.append(chunk)
            self._tail.clear()
        return place

    def add_all(self, values: Sequence[bytes]) -> tuple[Column, Column, Column]:
        """`add` of many: the chunks, starts and lengths of their places."""
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        starts = len(self._tail) + np.cumsum(lengths) - lengths
        slices = starts // CHUNK_BYTES
        firsts = np.flatnonzero(np.diff(slices, prepend=-1))
        cuts = starts[firsts]
        cuts[0] = 0  # what was in the tail already is before the first of these values
        numbers = np.cumsum(np.diff(slices, prepend=slices[0]) > 0)
        chunks, begins = len(self._chunks) + numbers, cuts[numbers]
        tail = bytes(self._tail)
        for first, last in pairwise(firsts.tolist()):  # the last of them begins the tail
            plain = b"".join([tail, *values[first:last]])
            tail = b""
            self._chunks.append(_Chunk(len(plain), plain=plain))
            _pack_soon(self._chunks[-1])
        self._tail = bytearray(b"".join([tail, *values[int(firsts[-1]) :]]))
        return chunks, starts - begins, lengths

    def drop(self, length: int) -> None:
        """A value of this length is not wanted any more."""
        self._dropped_bytes += length

    @property
    def needs_rewriting(self) -> bool:
        return self._dropped_bytes > WASTE_BYTES and 2 * self._dropped_bytes > self.stored_bytes

    def get(self, place: Place) -> bytes:
        chunk = self._tail if place.chunk == len(self._chunks) else self._chunk(place.chunk)
        return bytes(chunk[place.start : place.start + place.length])

    def get_all(self, chunks: Column, starts: Column, lengths: Column) -> Iterator[bytes]:
        """`get` of many places, in their order; those of one chunk that lie together unpack it once."""
        edges = [*np.flatnonzero(np.diff(chunks, prepend=-1)).tolist(), len(chunks)]
        for first, last in pairwise(edges):
            number = int(chunks[first])
            chunk = self._tail if number == len(self._chunks) else self._chunks[number].unpack()
            ends = starts[first:last] + lengths[first:last]
            for start, end in zip(starts[first:last].tolist(), ends.tolist(), strict=True):
                yield bytes(chunk[start:end])

    def _chunk(self, number: int) -> bytes:
        found = self._unpacked.get(number)
        if found is None:
            found = self._chunks[number].unpack()
            self._unpacked[number] = found
            if len(self._unpacked) > UNPACKED_CHUNKS:
                self._unpacked.popitem(last=False)
        else:
            self._unpacked.move_to_end(number)
        return found
