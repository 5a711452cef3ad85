"""Record values kept in memory, compressed together, each one to be had again as it was stored.

Values of one topic differ little: together they compress to a fifth, each alone hardly at all. So they are
gathered in chunks of CHUNK_BYTES; a full one is compressed and never changed. What is superseded stays in its
chunk, and is counted; `needs_rewriting` says when half of all is waste.

Owns the bytes and where they are. Refuses to know which values are still wanted: the table says, by `drop`
and when it rewrites.

Invariant: `get` of a place returns the bytes that `add` gave the place for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import cramjam
import numpy as np
import numpy.typing as npt

CHUNK_BYTES = 256 * 1024
COMPRESSION_LEVEL = 1
UNPACKED_CHUNKS = 16  # what a scan in order needs, many times over
WASTE_BYTES = 4 << 20  # not worth a rewrite


Column = npt.NDArray[Any]


class Place(NamedTuple):
    """Where a value is: in which chunk, from which byte, how long."""

    chunk: int
    start: int
    length: int


class StoredValues:
    """Values in the order in which they came."""

    def __init__(
        self, packed: Iterable[tuple[bytes, int]] = (), tail: bytes = b"", dropped_bytes: int = 0
    ) -> None:
        self._packed = list(packed)  # compressed bytes, and how many they were
        self._tail = bytearray(tail)
        self._unpacked: OrderedDict[int, bytes] = OrderedDict()
        self._dropped_bytes = dropped_bytes

    @property
    def packed(self) -> Sequence[tuple[bytes, int]]:
        return self._packed

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
        return sum(len(chunk) for chunk, _ in self._packed) + len(self._tail) + unpacked

    @property
    def stored_bytes(self) -> int:
        """What was added, as it was, waste included."""
        return sum(length for _, length in self._packed) + len(self._tail)

    def add(self, value: bytes) -> Place:
        place = Place(len(self._packed), len(self._tail), len(value))
        self._tail += value
        if len(self._tail) >= CHUNK_BYTES:
            self._packed.append((_compressed(self._tail), len(self._tail)))
            self._tail.clear()
        return place

    def add_all(self, values: Sequence[bytes]) -> tuple[Column, Column, Column]:
        """`add` of many: the chunks, starts and lengths of their places."""
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        starts = len(self._tail) + np.cumsum(lengths) - lengths
        joined = bytes(self._tail) + b"".join(values)
        slices = starts // CHUNK_BYTES
        firsts = np.flatnonzero(np.diff(slices, prepend=-1))
        cuts = starts[firsts]
        cuts[0] = 0  # what was in the tail already is before the first of these values
        numbers = np.cumsum(np.diff(slices, prepend=slices[0]) > 0)
        chunks, begins = len(self._packed) + numbers, cuts[numbers]
        for begin, end in pairwise([*cuts.tolist(), len(joined)]):
            if end < len(joined):
                self._packed.append((_compressed(joined[begin:end]), end - begin))
        self._tail = bytearray(joined[int(cuts[-1]) :])
        return chunks, starts - begins, lengths

    def drop(self, length: int) -> None:
        """A value of this length is not wanted any more."""
        self._dropped_bytes += length

    @property
    def needs_rewriting(self) -> bool:
        return self._dropped_bytes > WASTE_BYTES and 2 * self._dropped_bytes > self.stored_bytes

    def get(self, place: Place) -> bytes:
        chunk = self._tail if place.chunk == len(self._packed) else self._chunk(place.chunk)
        return bytes(chunk[place.start : place.start + place.length])

    def _chunk(self, number: int) -> bytes:
        found = self._unpacked.get(number)
        if found is None:
            found = bytes(cramjam.zstd.decompress(self._packed[number][0]))
            self._unpacked[number] = found
            if len(self._unpacked) > UNPACKED_CHUNKS:
                self._unpacked.popitem(last=False)
        else:
            self._unpacked.move_to_end(number)
        return found


def _compressed(chunk: bytes | bytearray) -> bytes:
    return bytes(cramjam.zstd.compress(bytes(chunk), level=COMPRESSION_LEVEL))
