"""The records of many batches as columns: where each stands, what time it bears and how large its parts are.

Records follow one another by their lengths, so that one batch can only be read from its front. Many batches
can be read side by side: step n reads the n-th record of each. For batches of 16 KiB that costs a tenth of
reading them one by one; for a few large ones it costs more, and `are_worth_it` says so.

Refuses to judge: a batch in which anything is out of order is told as not sound, and whoever wants to know
what is wrong with it reads it with `batch.read_records`.

Invariant: what is told of a sound batch is what `batch.read_records` tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tiering.log.batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME
from tiering.log.codec import Codec, decompress
from tiering.log.columns import HEADER_DTYPE, RECORD_BYTES_MIN
from tiering.log.errors import LogFormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tiering.log.columns import Bools, Ints

BATCHES_MIN = 48  # where reading side by side begins to cost less
PLAIN_BYTES = 16 * 1024 * 1024  # decompressed batches that are read together, and one more
_VARINT_BYTES_MAX = 9  # ten bytes may hold more than an int64


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordColumns:
    """The records of consecutive batches: those of batch i are [starts[i], starts[i + 1]).

    They mean nothing where the batch is not sound.
    """

    starts: Ints
    is_sound: Bools
    offset: Ints
    timestamp_ms: Ints
    key_bytes: Ints  # -1: null
    value_bytes: Ints

    def __len__(self) -> int:
        return len(self.is_sound)


def are_worth_it(batches: int) -> bool:
    """Whether so many batches are read faster side by side."""
    return batches >= BATCHES_MIN


def read_record_columns(buffer: memoryview, bounds: list[int]) -> Iterator[RecordColumns]:
    """Every record of every batch in the buffer, a few MiB of plain bytes at a time; see `windows.Window`."""
    pieces = [buffer[a : a + HEADER_BYTES] for a in bounds[:-1]]
    headers = np.frombuffer(b"".join(pieces), dtype=HEADER_DTYPE)
    codecs = headers["attributes"] & CODEC_MASK
    if not codecs.any():
        ends = np.array(bounds, dtype=np.int64)
        plain = np.frombuffer(buffer, dtype=np.uint8)
        yield _Reading(headers, plain, ends[:-1] + HEADER_BYTES, ends[1:]).run()
        return
    group: list[bytes | memoryview] = []
    held_bytes = first = 0
    for (begin, end), codec in zip(pairwise(bounds), codecs.tolist(), strict=True):
        group.append(_plain(codec, buffer[begin + HEADER_BYTES : end]))
        held_bytes += len(group[-1])
        if held_bytes >= PLAIN_BYTES:
            yield _read_group(headers[first : first + len(group)], group)
            first, group, held_bytes = first + len(group), [], 0
    if group:
        yield _read_group(headers[first:], group)


def _plain(codec: int, payload: memoryview) -> bytes | memoryview:
    """The records of a batch, or what is no record where they cannot be had."""
    try:
        return decompress(Codec(codec), payload)
    except (ValueError, LogFormatError):
        return _UNREADABLE


_UNREADABLE = b"\xff"  # too short for a record, and not the end of a batch either


def _read_group(headers: NDArray[np.void], group: list[bytes | memoryview]) -> RecordColumns:
    ends = np.cumsum([len(piece) for piece in group], dtype=np.int64)
    plain = np.frombuffer(b"".join(group), dtype=np.uint8)
    return _Reading(headers, plain, np.concatenate(([0], ends[:-1])), ends).run()


class _Reading:
    """Steps through all batches at once. `_at` is where each one stands; the last stands at its end."""

    def __init__(self, headers: NDArray[np.void], plain: NDArray[np.uint8], begins: Ints, ends: Ints) -> None:
        self._headers = headers
        self._plain = plain
        self._ends = ends
        count = headers["record_count"].astype(np.int64)
        self._sound = (count >= 0) & (count * RECORD_BYTES_MIN <= ends - begins)
        counts = np.where(self._sound, count, 0)
        self._counts = counts
        self._starts = np.concatenate(([0], np.cumsum(counts)))
        self._at = begins.copy()
        total = int(self._starts[-1])
        self._columns = {name: np.zeros(total, dtype=np.int64) for name in _COLUMNS}

    def run(self) -> RecordColumns:
        for index in range(int(self._counts.max(initial=0))):
            self._step(index, np.flatnonzero(self._sound & (self._counts > index)))
        self._sound &= self._at == self._ends
        which = np.repeat(np.arange(len(self._headers)), self._counts)
        offset = self._plus("base_offset", self._columns["offset"], which)
        timestamp = self._plus("base_timestamp", self._columns["timestamp"], which)
        by_append = ((self._headers["attributes"] & LOG_APPEND_TIME) != 0)[which]
        return RecordColumns(
            starts=self._starts,
            is_sound=self._sound,
            offset=offset,
            timestamp_ms=np.where(by_append, self._headers["max_timestamp"][which], timestamp),
            key_bytes=self._columns["key"],
            value_bytes=self._columns["value"],
        )

    def _step(self, index: int, active: Ints) -> None:
        """Read one record of each active batch; the order of the fields is `batch`'s."""
        reader = _Varints(self._plain, self._at[active])
        length = reader.next()
        stop = reader.at + length
        reader.good &= (length >= 0) & (stop <= self._ends[active])
        reader.at += 1  # the attributes, always 0
        read = {"timestamp": reader.next(), "offset": reader.next()}
        for name in ("key", "value"):
            read[name] = reader.sized(stop, least=-1)
        reader.skip_headers(stop)
        reader.good &= reader.at == stop
        at = self._starts[active] + index
        for name, column in read.items():
            self._columns[name][at] = column
        self._at[active] = stop
        self._sound[active] = reader.good

    def _plus(self, field: str, delta: Ints, which: Ints) -> Ints:
        """The sums with a header's field; a batch in which one leaves int64 is not sound."""
        bases = self._headers[field].astype(np.int64)[which]
        total: Ints = bases + delta
        over = ((bases ^ total) & (delta ^ total)) < 0
        self._sound[which[over]] = False
        return total


_COLUMNS = ("timestamp", "offset", "key", "value")


class _Varints:
    """Reads zigzag varints at many places. `good` falls where one cannot be; its places then mean nothing."""

    def __init__(self, plain: NDArray[np.uint8], at: Ints) -> None:
        self.at = at
        self.good: Bools = np.ones(len(at), dtype=np.bool_)
        self._plain = plain

    def next(self) -> Ints:
        byte = self._plain.take(self.at, mode="clip")  # past the end: no field that leaves its record is good
        self.at = self.at + 1
        value = (byte & 0x7F).astype(np.uint64)
        more = np.flatnonzero(byte > 0x7F)
        for index in range(1, _VARINT_BYTES_MAX):
            if not len(more):
                break
            byte = self._plain.take(self.at[more], mode="clip")
            self.at[more] += 1
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
            more = more[byte > 0x7F]
        self.good[more] = False
        sign = (value & np.uint64(1)).view(np.int64)
        zigzag: Ints = (value >> np.uint64(1)).view(np.int64) ^ -sign
        return zigzag

    def sized(self, stop: Ints, *, least: int) -> Ints:
        """The size of a field that follows, and step over it."""
        size = self.next()
        self.good &= (size >= least) & (size <= stop - self.at)
        self.at = self.at + np.where(self.good, np.maximum(size, 0), 0)
        return size

    def skip_headers(self, stop: Ints) -> None:
        """Step over a count and so many names and values."""
        left = self.next()
        self.good &= (left >= 0) & (left <= stop - self.at)
        places = np.flatnonzero(self.good & (left > 0))
        while len(places):
            inner = _Varints(self._plain, self.at[places])
            inner.sized(stop[places], least=0)  # the name
            inner.sized(stop[places], least=-1)
            self.at[places] = inner.at
            self.good[places] = inner.good
            left[places] -= 1
            places = places[inner.good & (left[places] > 0)]
