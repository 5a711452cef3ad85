"""What can be wrong with a segment, and how the hard cases are told from each other.

Owns the vocabulary: a defect is a value, never an exception, so that a verifier can go on to the next
segment. The base offset, the length, the epoch and the magic of a batch lie outside its CRC; what the CRC
cannot vouch for is found by the chain of offsets and lengths instead.

Telling a wrong length from a torn tail, or from a flipped bit in the payload, takes a second look: the
bytes are searched for the batch that should follow. It is a bounded look, made only once, at the defect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np

from tiering.log.batch import (
    COVERED_AT,
    CRC_AT,
    HEADER_BYTES,
    LENGTH_AT,
    LENGTH_BYTES_MIN,
    MAGIC,
    MAGIC_AT,
    PREFIX_BYTES,
    crc_of,
    read_header,
)
from tiering.log.errors import LogFormatError
from tiering.outcome import Problem

# How far past a defect the next whole batch is looked for: four batches of the broker's default limit.
RESYNC_BYTES = 4 * 1024 * 1024
RESYNC_CANDIDATES_MAX = 1024

Reread: TypeAlias = Callable[[int, int], bytes]  # (position, size): so many bytes, or all there are


class DefectKind(str, Enum):
    """Each way in which a segment's bytes can be wrong."""

    TORN_TAIL = "torn_tail"  # the file ends inside a batch
    WRONG_LENGTH = "wrong_length"  # a batch's length field does not lead to the next batch
    UNSUPPORTED_MAGIC = "unsupported_magic"  # format 0 or 1, or no format at all
    CRC_MISMATCH = "crc_mismatch"  # a flipped bit
    UNKNOWN_ATTRIBUTES = "unknown_attributes"  # a codec or an attribute bit that no Kafka writes
    RECORD_COUNT = "record_count"  # the header's count is not what the bytes hold
    LAST_OFFSET_DELTA = "last_offset_delta"  # the header's last offset is not the last record's
    MAX_TIMESTAMP = "max_timestamp"  # the header's time is not its latest record's
    OFFSET_BACK = "offset_back"  # an offset at or below one already passed, or below the segment's base
    OFFSET_BEYOND = "offset_beyond"  # an offset in the next segment's range
    EPOCH_BACK = "epoch_back"  # a leader epoch below the one before
    BAD_RECORD = "bad_record"  # a record that cannot be parsed, or a payload that cannot be decompressed
    HOLE = "hole"  # offsets missing inside a log that was never compacted
    UNREADABLE = "unreadable"  # the disk gave an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """The first thing wrong: what, at which byte of the file, in the batch of which base offset."""

    kind: DefectKind
    position: int
    offset: int | None  # base offset of the batch, or start of the hole; None where no header can be read
    detail: str

    def as_problem(self) -> Problem:
        return Problem(kind=self.kind.value, detail=self.detail, position=self.position, offset=self.offset)


def explain_break(reread: Reread, position: int, size_bytes: int) -> Defect:
    """Why the chain of lengths cannot be followed past `position`."""
    head = reread(position, min(size_bytes - position, RESYNC_BYTES))
    if not head:
        return Defect(
            kind=DefectKind.TORN_TAIL,
            position=position,
            offset=None,
            detail=f"the file had {size_bytes} bytes, and ends before this one now",
        )
    if not any(head):
        return Defect(
            kind=DefectKind.TORN_TAIL,
            position=position,
            offset=None,
            detail=f"{size_bytes - position} bytes of zeros to the end of the file",
        )
    if len(head) > MAGIC_AT and head[MAGIC_AT] != MAGIC:
        return Defect(
            kind=DefectKind.UNSUPPORTED_MAGIC,
            position=position,
            offset=None,
            detail=f"magic {_signed(head[MAGIC_AT])}; only 2 is understood",
        )
    if len(head) < HEADER_BYTES:
        return Defect(
            kind=DefectKind.TORN_TAIL,
            position=position,
            offset=None,
            detail=f"{len(head)} bytes of a batch header of {HEADER_BYTES}",
        )
    length = int.from_bytes(head[LENGTH_AT : LENGTH_AT + 4], "big", signed=True)
    offset = int.from_bytes(head[:LENGTH_AT], "big", signed=True)
    next_at = find_next_batch(head)
    if length >= LENGTH_BYTES_MIN and next_at is None:
        left_bytes = size_bytes - position
        if PREFIX_BYTES + length > left_bytes:
            return Defect(
                kind=DefectKind.TORN_TAIL,
                position=position,
                offset=offset,
                detail=f"a batch of {PREFIX_BYTES + length} bytes, of which the file holds {left_bytes}",
            )
    where = "no whole batch follows" if next_at is None else f"the next whole batch is {next_at} bytes on"
    return Defect(
        kind=DefectKind.WRONG_LENGTH,
        position=position,
        offset=offset,
        detail=f"the length leads {PREFIX_BYTES + length} bytes on; {where}",
    )


def explain_crc(reread: Reread, position: int, size_bytes: int) -> Defect:
    """A CRC that fails is a wrong length when the stated CRC fits the bytes up to the next whole batch."""
    head = reread(position, min(size_bytes - position, RESYNC_BYTES))
    try:
        header = read_header(head)
    except LogFormatError:  # it was one a moment ago: the file is cut, or written over, while it is read
        return explain_break(lambda _, size: head[:size], position, size_bytes)
    next_at = find_next_batch(head)
    if next_at is not None and next_at != header.size_bytes and crc_of(head, 0, next_at) == header.crc:
        return Defect(
            kind=DefectKind.WRONG_LENGTH,
            position=position,
            offset=header.base_offset,
            detail=f"the length leads {header.size_bytes} bytes on; the CRC fits {next_at} bytes",
        )
    return Defect(
        kind=DefectKind.CRC_MISMATCH,
        position=position,
        offset=header.base_offset,
        detail=f"the header says {header.crc:#010x} for bytes {position + COVERED_AT} to "
        f"{position + header.size_bytes}, which give another",
    )


def find_next_batch(head: bytes) -> int | None:
    """Where, past its first batch, `head` holds a batch whose CRC is right; None if nowhere near."""
    view = np.frombuffer(head, dtype=np.uint8)
    last = len(head) - HEADER_BYTES
    if last < HEADER_BYTES:
        return None
    candidates = HEADER_BYTES + np.flatnonzero(view[HEADER_BYTES + MAGIC_AT : last + MAGIC_AT + 1] == MAGIC)
    lengths = _int32_at(view, candidates + LENGTH_AT)
    fits = (lengths >= LENGTH_BYTES_MIN) & (candidates + PREFIX_BYTES + lengths <= len(head))
    for at, length in zip(
        candidates[fits][:RESYNC_CANDIDATES_MAX].tolist(),
        lengths[fits][:RESYNC_CANDIDATES_MAX].tolist(),
        strict=True,
    ):
        stated = int.from_bytes(head[at + CRC_AT : at + CRC_AT + 4], "big")
        if crc_of(head, at, PREFIX_BYTES + length) == stated:
            return int(at)
    return None


def _int32_at(view: np.ndarray, positions: np.ndarray) -> np.ndarray:
    four = view[positions[:, None] + np.arange(4)].astype(np.int64)
    unsigned = (four[:, 0] << 24) | (four[:, 1] << 16) | (four[:, 2] << 8) | four[:, 3]
    return unsigned - ((unsigned >> 31) << 32)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte
