"""Writes record batches v2, so that tests can make exactly the bytes they mean, right or wrong.

Written from the same field table as `tiering/log/batch.py` but sharing none of its code: what one gets
wrong the other does not repeat. Kafka's own writer and reader are the third opinion (tests/cluster).
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import cramjam
from awscrt import checksums

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_HEADER = struct.Struct(">qiibIhiqqqhii")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRecord:
    """One record as a test thinks of it: absolute offset and timestamp."""

    offset: int
    timestamp_ms: int
    key: bytes | None = None
    value: bytes | None = b""
    headers: Sequence[tuple[str, bytes | None]] = field(default=())


def varint(value: int) -> bytes:
    """A zigzag varint, as protobuf's sint64."""
    return uvarint((value << 1) ^ (value >> 63))


def uvarint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sized(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def encode_record(record: PlainRecord, base_offset: int, base_timestamp_ms: int) -> bytes:
    body = bytearray(b"\0")
    body += varint(record.timestamp_ms - base_timestamp_ms)
    body += varint(record.offset - base_offset)
    body += _sized(record.key) + _sized(record.value)
    body += varint(len(record.headers))
    for name, content in record.headers:
        body += _sized(name.encode()) + _sized(content)
    return varint(len(body)) + bytes(body)


def compress(codec: str, plain: bytes) -> bytes:
    """Compress as Kafka does; snappy in the framing of snappy-java, in blocks of 32 KiB."""
    if codec == "none":
        return plain
    if codec == "gzip":
        return gzip.compress(plain, 1)
    if codec == "lz4":
        return bytes(cramjam.lz4.compress(plain))
    if codec == "zstd":
        return bytes(cramjam.zstd.compress(plain, 3))
    blocks = [bytes(cramjam.snappy.compress_raw(plain[i : i + 32768])) for i in range(0, len(plain), 32768)]
    return (
        b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    )


def encode_batch(
    records: Iterable[PlainRecord],
    *,
    base_offset: int | None = None,
    last_offset_delta: int | None = None,
    record_count: int | None = None,
    base_timestamp_ms: int | None = None,
    max_timestamp_ms: int | None = None,
    codec: str = "none",
    attributes: int = 0,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    magic: int = 2,
    crc: int | None = None,
    payload: bytes | None = None,
) -> bytes:
    """One batch. Every field that is left out is made true; every field that is given is written as given."""
    listed = list(records)
    base = base_offset if base_offset is not None else listed[0].offset
    first_ms = (
        base_timestamp_ms if base_timestamp_ms is not None else (listed[0].timestamp_ms if listed else -1)
    )
    if max_timestamp_ms is None:
        max_timestamp_ms = max((r.timestamp_ms for r in listed), default=first_ms)
    if last_offset_delta is None:
        last_offset_delta = listed[-1].offset - base if listed else 0
    if payload is None:
        payload = compress(codec, b"".join(encode_record(r, base, first_ms) for r in listed))
    covered = struct.pack(
        ">hiqqqhii",
        attributes | CODECS[codec],
        last_offset_delta,
        first_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(listed) if record_count is None else record_count,
    )
    covered += payload
    if crc is None:
        crc = checksums.crc32c(covered)
    return struct.pack(">qiibI", base, 9 + len(covered), leader_epoch, magic, crc) + covered


def encode_control_batch(
    offset: int,
    *,
    commit: bool,
    producer_id: int,
    timestamp_ms: int,
    coordinator_epoch: int = 0,
    leader_epoch: int = 0,
) -> bytes:
    """The batch of one record that ends a transaction."""
    marker = PlainRecord(
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=struct.pack(">hh", 0, 1 if commit else 0),
        value=struct.pack(">hi", 0, coordinator_epoch),
    )
    return encode_batch(
        [marker], attributes=0x30, producer_id=producer_id, producer_epoch=0, leader_epoch=leader_epoch
    )
