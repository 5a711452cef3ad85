"""The headers of many batches as columns, and every check that needs no more than headers.

A segment of 1 GiB holds 65,000 batches of 16 KiB; looked at one by one in Python their headers cost as much
as the CRC over all their bytes. As columns they cost a tenth of that.

The field table is `batch`'s. The checks tell what is wrong with the first bad batch; `defects` holds the
vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tiering.log.batch import CODEC_MASK, HEADER_BYTES, MAGIC
from tiering.log.codec import Codec
from tiering.log.defects import DefectKind

HEADER_DTYPE = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
assert HEADER_DTYPE.itemsize == HEADER_BYTES

KNOWN_ATTRIBUTES = 0x7F
RECORD_BYTES_MIN = 7  # length, attributes, two deltas, two null lengths, header count: a byte each
if TYPE_CHECKING:  # numpy.typing takes as long to import as numpy
    from numpy.typing import NDArray

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnd:
    """What the batches so far lead to, and the offset that none of them may reach."""

    next_offset: int
    leader_epoch: int
    limit_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderBlock:
    """Consecutive batches: their header fields as native columns, their positions and their real CRCs."""

    positions: Ints
    base_offset: Ints
    last_offset: Ints
    leader_epoch: Ints
    attributes: Ints
    max_timestamp_ms: Ints
    record_count: Ints
    size_bytes: Ints
    magic: Ints
    crc_matches: Bools

    def __len__(self) -> int:
        return len(self.positions)


def read_block(headers: bytes, positions: list[int], crcs: list[int]) -> HeaderBlock:
    """Columns of `headers`, 61 bytes a batch."""
    raw = np.frombuffer(headers, dtype=HEADER_DTYPE)
    base_offset = raw["base_offset"].astype(np.int64)
    return HeaderBlock(
        positions=np.array(positions, dtype=np.int64),
        base_offset=base_offset,
        last_offset=base_offset + raw["last_offset_delta"],
        leader_epoch=raw["leader_epoch"].astype(np.int64),
        attributes=raw["attributes"].astype(np.int64),
        max_timestamp_ms=raw["max_timestamp"].astype(np.int64),
        record_count=raw["record_count"].astype(np.int64),
        size_bytes=raw["length"].astype(np.int64) + 12,
        magic=raw["magic"].astype(np.int64),
        crc_matches=raw["crc"] == np.array(crcs, dtype=np.uint32),
    )


def first_defect(block: HeaderBlock, before: ChainEnd) -> tuple[int, DefectKind] | None:
    """The first batch that a check condemns, and the first check that does."""
    best: tuple[int, DefectKind] | None = None
    for kind, bad in _checks(block, before):
        index = int(bad.argmax())
        if bad[index] and (best is None or index < best[0]):
            best = (index, kind)
    return best


def whole_chain(block: HeaderBlock, expected: int, epochs: Ints, epoch_starts: Ints) -> int:
    """How many of the first are sound, and begin where the one before ended: of a log without holes.

    The first begins at `expected`. `epochs` are those that each must be of, each from its `epoch_starts` on.
    """
    good: Bools = block.crc_matches & (block.magic == MAGIC) & (block.last_offset >= block.base_offset)
    good &= block.base_offset == _previous_end(block, expected)
    places = np.searchsorted(epoch_starts, block.base_offset, side="right") - 1
    good &= (places >= 0) & (block.leader_epoch == epochs[places])
    return len(good) if good.all() else int(good.argmin())


def _checks(block: HeaderBlock, before: ChainEnd) -> Iterator[tuple[DefectKind, Bools]]:
    """Most telling first: a field outside the CRC, then the CRC, then what the CRC vouches for."""
    yield DefectKind.UNSUPPORTED_MAGIC, block.magic != MAGIC
    yield DefectKind.CRC_MISMATCH, ~block.crc_matches
    yield DefectKind.UNKNOWN_ATTRIBUTES, _unknown_attributes(block)
    yield DefectKind.RECORD_COUNT, _impossible_count(block)
    yield DefectKind.LAST_OFFSET_DELTA, _impossible_delta(block)
    yield DefectKind.OFFSET_BACK, block.base_offset < _previous_end(block, before.next_offset)
    yield DefectKind.OFFSET_BEYOND, block.last_offset >= before.limit_offset
    yield DefectKind.EPOCH_BACK, _epoch_back(block, before)


def _unknown_attributes(block: HeaderBlock) -> Bools:
    bad: Bools = (block.attributes & ~KNOWN_ATTRIBUTES) != 0
    bad |= (block.attributes & CODEC_MASK) > max(Codec)
    return bad


def _impossible_count(block: HeaderBlock) -> Bools:
    bad: Bools = block.record_count < 0
    plain = (block.attributes & CODEC_MASK) == Codec.NONE
    bad |= plain & (block.record_count * RECORD_BYTES_MIN > block.size_bytes - HEADER_BYTES)
    return bad


def _impossible_delta(block: HeaderBlock) -> Bools:
    """The last record's delta is at least the number of records before it."""
    bad: Bools = block.last_offset < block.base_offset
    bad |= block.last_offset - block.base_offset < block.record_count - 1
    return bad


def _previous_end(block: HeaderBlock, expected: int) -> Ints:
    return np.concatenate(([expected], block.last_offset[:-1] + 1))


def _epoch_back(block: HeaderBlock, before: ChainEnd) -> Bools:
    previous = np.concatenate(([before.leader_epoch], block.leader_epoch[:-1]))
    bad: Bools = block.leader_epoch < previous
    return bad


def holes(block: HeaderBlock, before: ChainEnd) -> Iterator[tuple[int, int, int]]:
    """(batch index, start, end) of each range of offsets that no batch covers.

    A batch that holds fewer records than offsets is a hole as well; which of its offsets are missing is
    known from its records only, so the whole of it is named.
    """
    previous = _previous_end(block, before.next_offset)
    thin = block.record_count < block.last_offset - block.base_offset + 1
    for index in np.flatnonzero((block.base_offset > previous) | thin):
        at = int(index)
        if block.base_offset[at] > previous[at]:
            yield at, int(previous[at]), int(block.base_offset[at])
        if thin[at]:
            yield at, int(block.base_offset[at]), int(block.last_offset[at]) + 1


def epoch_starts(block: HeaderBlock, before: ChainEnd) -> list[tuple[int, int]]:
    """(epoch, first offset) where the epoch of the block differs from the one before."""
    previous = np.concatenate(([before.leader_epoch], block.leader_epoch[:-1]))
    changed = np.flatnonzero(block.leader_epoch != previous)
    return [(int(block.leader_epoch[i]), int(block.base_offset[i])) for i in changed]
