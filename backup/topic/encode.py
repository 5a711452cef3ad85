"""Record batches v2 made anew: for a batch of which only some records go on, or whose times are the broker's.

Owns the writing of records and of a batch's header, and compression as brokers and clients read it; the field
table stands in `tiering.log.batch`. Refuses an empty batch.

Invariant: what is encoded reads back as the same records, with offsets from 0 on.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import cramjam

from backup.topic.messages import uvarint
from tiering.log.batch import COVERED_AT, MAGIC, PREFIX_BYTES, Record
from tiering.log.codec import Codec
from tiering.log.crc import crc32c
from tiering.log.errors import LogFormatError, Malformed
from tiering.log.wire import Buffer, read_varlong

_COVERED = struct.Struct(">hiqqqhii")  # attributes to record_count
_BEFORE = struct.Struct(">qiibI")  # base_offset, length, leader_epoch, magic, crc
_SNAPPY_MAGIC = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)  # the framing of snappy-java
_SNAPPY_BLOCK_BYTES = 32 * 1024


def batch_of(
    *,
    attributes: int,
    records: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    payload: Sequence[Buffer],
) -> bytearray:
    """A batch as a producer sends it: offsets from 0 on, no leader epoch. `payload` comes in pieces."""
    covered = _COVERED.pack(
        attributes,
        records - 1,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        records,
    )
    batch = bytearray().join((bytes(_BEFORE.size), covered, *payload))
    with memoryview(batch) as view:
        crc = crc32c(view[COVERED_AT:])
    _BEFORE.pack_into(batch, 0, 0, len(batch) - PREFIX_BYTES, -1, MAGIC, crc)
    return batch


def payload_of(records: Sequence[Record], codec: Codec) -> bytes:
    """The records, numbered from 0, against the first one's time; compressed."""
    assert records, "a batch holds records"
    first_ms = records[0].timestamp_ms
    plain = b"".join(_record(number, each, first_ms) for number, each in enumerate(records))
    return _COMPRESSORS[codec](plain)


def renumbered(payload: bytes | memoryview, records: int, by: int, later_ms: int) -> list[bytes]:
    """Records that are not compressed, their numbers and times moved on, in pieces. Raises Malformed.

    Of each only what stands before its key is read and written: length, attributes, time, number.
    """
    plain = bytes(payload)
    parts: list[bytes] = []
    at = 0
    for _ in range(records):
        try:
            length, body = read_varlong(plain, at)
            delta_ms, ms_end = read_varlong(plain, body + 1)
            number, rest = read_varlong(plain, ms_end)
        except LogFormatError as broken:
            raise Malformed(position=at, what="record", why=str(broken)) from broken
        end = body + length
        if not rest <= end <= len(plain):
            raise Malformed(position=at, what="record", why=f"of {length} bytes leaves its batch")
        head = plain[body : body + 1] + _varint(delta_ms + later_ms) + _varint(number + by)
        parts += (_varint(len(head) + end - rest), head, plain[rest:end])
        at = end
    if at != len(plain):
        raise Malformed(position=at, what="records", why=f"have {len(plain) - at} bytes behind them")
    return parts


def _record(number: int, record: Record, first_ms: int) -> bytes:
    parts = [b"\0", _varint(record.timestamp_ms - first_ms), _varint(number)]
    parts += [_sized(record.key), _sized(record.value), _varint(len(record.headers))]
    for name, value in record.headers:
        parts += [_sized(name.encode("utf-8", "surrogateescape")), _sized(value)]
    body = b"".join(parts)
    return _varint(len(body)) + body


def _sized(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def varint_bytes(value: int) -> int:
    """How many bytes a number takes."""
    return len(_varint(value))


@lru_cache(maxsize=1 << 14)  # lengths, numbers and times of a batch's records are a few thousand
def _varint(value: int) -> bytes:
    return uvarint(((value << 1) ^ (value >> 63)) & (1 << 64) - 1)


def _snappy(plain: bytes) -> bytes:
    out = [_SNAPPY_MAGIC]
    for at in range(0, len(plain), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(plain[at : at + _SNAPPY_BLOCK_BYTES]))
        out += [struct.pack(">i", len(block)), block]
    return b"".join(out)


_COMPRESSORS: Mapping[Codec, Callable[[bytes], bytes]] = {
    Codec.NONE: lambda plain: plain,
    Codec.GZIP: lambda plain: gzip.compress(plain, mtime=0),
    Codec.SNAPPY: _snappy,
    Codec.LZ4: lambda plain: bytes(cramjam.lz4.compress(plain)),
    Codec.ZSTD: lambda plain: bytes(cramjam.zstd.compress(plain, 3)),
}
