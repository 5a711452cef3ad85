"""Record batches, format v2: the header, the CRC, the records and the control records inside.

Owns what one batch's bytes mean. Knows nothing of files (`segment`), of the batches around it, or of
whether its fields tell the truth about each other (`record_checks`).

    batch                                     record (all integers zigzag varints)
    at  0  base_offset          int64         length        bytes that follow
    at  8  length               int32         attributes    int8, unused
    at 12  leader_epoch         int32         timestamp     minus base_timestamp
    at 16  magic                int8          offset        minus base_offset
    at 17  crc                  uint32        key           length (-1: null), bytes
    at 21  attributes           int16         value         length (-1: null), bytes
    at 23  last_offset_delta    int32         headers       count, then each: key, value
    at 27  base_timestamp       int64
    at 35  max_timestamp        int64         control record
    at 43  producer_id          int64         key           version int16, type int16
    at 51  producer_epoch       int16         value         version int16, coordinator_epoch int32
    at 53  base_sequence        int32                       (types 0 abort and 1 commit)
    at 57  record_count         int32
    at 61  records, compressed as one piece

`length` counts from byte 12. The CRC-32C covers byte 21 to the end: base_offset, length, leader_epoch and
magic lie outside it, so that a broker may assign them without touching the payload. Attributes: bits 0-2
codec, 3 timestamp type (1: log append time), 4 transactional, 5 control, 6 base_timestamp is the delete
horizon. With log append time every record's time is max_timestamp (KIP-32).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from tiering.log.codec import DECOMPRESSED_BYTES_MAX, Codec, decompress
from tiering.log.crc import crc32c
from tiering.log.errors import EndOfBuffer, Malformed, RecordCountMismatch, UnsupportedVersion
from tiering.log.wire import Buffer

HEADER_BYTES = 61
LENGTH_AT = 8
PREFIX_BYTES = 12  # base_offset and length: what `length` itself does not count
LENGTH_BYTES_MIN = HEADER_BYTES - PREFIX_BYTES
MAGIC_AT = 16
CRC_AT = 17
COVERED_AT = 21  # the first byte under the CRC
MAGIC = 2
NO_TIMESTAMP = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

_HEADER = struct.Struct(
    ">"
    "q"  # base_offset
    "i"  # length
    "i"  # leader_epoch
    "b"  # magic
    "I"  # crc
    "h"  # attributes
    "i"  # last_offset_delta
    "q"  # base_timestamp
    "q"  # max_timestamp
    "q"  # producer_id
    "h"  # producer_epoch
    "i"  # base_sequence
    "i"  # record_count
)
assert _HEADER.size == HEADER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """The 61 bytes before the records, as they stand; nothing is checked but that they are a v2 header."""

    base_offset: int
    size_bytes: int  # the whole batch, header included
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def codec_number(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may drop the tombstones and markers in here; set by its first pass (KIP-534)."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2**31 - 1 to 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % 2**31


class Record(NamedTuple):
    """One record with absolute offset and time. A NamedTuple, as millions are made."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class ControlType(IntEnum):
    """What a control record says. 0 and 1 end transactions; the rest stand in KRaft's own log only."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMarker:
    """The end of a transaction, as the coordinator wrote it."""

    is_commit: bool
    coordinator_epoch: int


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The batch header at `position`. Old magics are named, never misread."""
    left_bytes = len(buffer) - position
    if left_bytes > MAGIC_AT and buffer[position + MAGIC_AT] != MAGIC:
        magic = struct.unpack_from(">b", buffer, position + MAGIC_AT)[0]
        raise UnsupportedVersion(
            position=position, what=f"record batch (magic {magic})", version=magic, supported="magic 2"
        )
    if left_bytes < HEADER_BYTES:
        raise EndOfBuffer(
            position=position, what="batch header", wanted_bytes=HEADER_BYTES, left_bytes=left_bytes
        )
    (
        base_offset,
        length,
        leader_epoch,
        _magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    ) = _HEADER.unpack_from(buffer, position)
    if length < LENGTH_BYTES_MIN:
        raise Malformed(
            position=position + LENGTH_AT, what="batch length", why=f"{length} is under {LENGTH_BYTES_MIN}"
        )
    return BatchHeader(
        base_offset=base_offset,
        size_bytes=PREFIX_BYTES + length,
        leader_epoch=leader_epoch,
        crc=crc,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=record_count,
    )


def crc_of(buffer: Buffer, position: int, size_bytes: int) -> int:
    """The CRC-32C of the covered bytes of the batch at `position`."""
    with memoryview(buffer) as view:
        return crc32c(view[position + COVERED_AT : position + size_bytes])


def read_records(
    buffer: Buffer,
    header: BatchHeader,
    position: int = 0,
    *,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[Record]:
    """Each record of the batch at `position`. Raises when the bytes hold more or fewer than the header says.

    Decompresses at most `limit_bytes`. The header is believed on codec, count and bases; it is the caller
    who has checked the CRC, or chosen not to.
    """
    if position + header.size_bytes > len(buffer):
        raise EndOfBuffer(
            position=position,
            what="record batch",
            wanted_bytes=header.size_bytes,
            left_bytes=len(buffer) - position,
        )
    try:
        codec = Codec(header.codec_number)
    except ValueError as exc:
        raise UnsupportedVersion(
            position=position + COVERED_AT, what="codec", version=header.codec_number, supported="0 to 4"
        ) from exc
    payload = memoryview(buffer)[position + HEADER_BYTES : position + header.size_bytes]
    plain = bytes(decompress(codec, payload, position=position + HEADER_BYTES, limit_bytes=limit_bytes))
    payload.release()
    return _parse_records(plain, header)


def _parse_records(plain: bytes, header: BatchHeader) -> Iterator[Record]:
    """Positions in errors are those in the plain bytes: after decompression no other exists."""
    base_offset, base_ms = header.base_offset, header.base_timestamp_ms
    append_ms = header.max_timestamp_ms if header.is_log_append_time else None
    at, end = 0, len(plain)
    for index in range(header.record_count):
        start = at
        if at >= end:
            raise RecordCountMismatch(position=at, claimed_count=header.record_count, why=f"{index}")
        try:
            length, at = _varint(plain, at)
            stop = at + length
            if length < 0 or stop > end:
                raise _record_error(start, index, f"length {length} leaves its batch")
            delta_ms, at = _varint(plain, at + 1)  # + 1: the attributes, always 0
            delta, at = _varint(plain, at)
            key, at = _sized(plain, at, stop)
            value, at = _sized(plain, at, stop)
            header_count, at = _varint(plain, at)
            headers: tuple[tuple[str, bytes | None], ...] = ()
            if header_count:
                headers, at = _headers(plain, at, stop, header_count, start)
        except (IndexError, ValueError, OverflowError) as exc:
            raise _record_error(start, index, str(exc)) from exc
        if at != stop:
            raise _record_error(start, index, f"its fields end at {at}, its length says {stop}")
        yield Record(
            base_offset + delta, base_ms + delta_ms if append_ms is None else append_ms, key, value, headers
        )
    if at != end:
        raise RecordCountMismatch(
            position=at,
            claimed_count=header.record_count,
            why=f"{max(header.record_count, 0)} and {end - at} bytes more",
        )


def _varint(plain: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of at most ten bytes. The first two steps are spelled out: nearly all end there."""
    byte = plain[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = byte & 0x7F
    byte = plain[at + 1]
    if byte < 0x80:
        value |= byte << 7
        return (value >> 1) ^ -(value & 1), at + 2
    value |= (byte & 0x7F) << 7
    shift = 14
    at += 2
    while shift < 70:
        byte = plain[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise ValueError("a varint runs past ten bytes")


def _sized(plain: bytes, at: int, stop: int) -> tuple[bytes | None, int]:
    length, at = _varint(plain, at)
    if length < 0:
        if length == -1:
            return None, at
        raise ValueError(f"a field has length {length}")
    after = at + length
    if after > stop:
        raise ValueError(f"a field of {length} bytes leaves its record")
    return plain[at:after], after


def _headers(
    plain: bytes, at: int, stop: int, count: int, start: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    if not 0 < count <= stop - at:  # each header takes two bytes at least: bounds the loop
        raise ValueError(f"{count} headers in {stop - at} bytes")
    headers = []
    for _ in range(count):
        name, at = _sized(plain, at, stop)
        if name is None:
            raise ValueError("a header has no name")
        value, at = _sized(plain, at, stop)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), at


def _record_error(position: int, index: int, why: str) -> Malformed:
    return Malformed(position=position, what=f"record {index}", why=why)


def read_marker(record: Record) -> TransactionMarker | None:
    """The transaction's end that a control record carries; None for other control records."""
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    value = record.value or b""
    if len(value) < 6:
        raise EndOfBuffer(position=0, what="transaction marker", wanted_bytes=6, left_bytes=len(value))
    return TransactionMarker(
        is_commit=kind == ControlType.COMMIT, coordinator_epoch=struct.unpack_from(">i", value, 2)[0]
    )


def control_type(record: Record) -> int:
    """The type in a control record's key; a number that ControlType lacks is a newer Kafka's."""
    key = record.key or b""
    if len(key) < 4:
        raise EndOfBuffer(position=0, what="control record key", wanted_bytes=4, left_bytes=len(key))
    kind: int = struct.unpack_from(">h", key, 2)[0]
    return kind
