"""Undoes gzip, snappy, lz4 and zstd, within a stated bound.

Owns snappy's two forms: the framing of snappy-java, which Java clients write, and a bare block, which
librdkafka writes. A broker accepts and stores both.

    snappy-java framing: magic "\\x82SNAPPY\\0" | version int32 | compatible int32 | (size int32 | block)*

Refuses to grow past `limit_bytes`, whatever the input claims: output is read piece by piece.
"""

from __future__ import annotations

import struct

import cramjam
import pyarrow as pa

from tiering.log.codec import Codec
from tiering.log.errors import EndOfBuffer, Malformed, TooLarge

_SNAPPY_JAVA_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_JAVA_HEADER_BYTES = 16
_FIRST_READ_RATIO = 8  # most batches then decompress in one read
_FIRST_READ_BYTES_MIN = 64 * 1024


def decompress(codec: Codec, compressed: memoryview, position: int, limit_bytes: int) -> bytes:
    """The plain bytes of a compressed payload, at most `limit_bytes` of them."""
    try:
        if codec is Codec.SNAPPY:
            return _snappy(compressed, position, limit_bytes)
        if codec is Codec.ZSTD and (plain := zstd_at_once(compressed, limit_bytes)) is not None:
            return plain
        return stream(codec.name.lower(), compressed, position, limit_bytes)
    except (OSError, pa.ArrowException) as exc:
        raise Malformed(position=position, what=f"{codec.name.lower()} data", why=str(exc)) from exc


def zstd_at_once(compressed: memoryview, limit_bytes: int) -> bytes | None:
    """In half the time of a stream; None where it takes more room than most do, or is broken."""
    room = bytearray(min(limit_bytes, max(_FIRST_READ_BYTES_MIN, _FIRST_READ_RATIO * len(compressed))))
    try:
        size_bytes = cramjam.zstd.decompress_into(compressed, room)
    except cramjam.DecompressionError:
        return None
    return bytes(memoryview(room)[:size_bytes])


def stream(name: str, compressed: memoryview, position: int, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    total_bytes = 0
    wanted_bytes = max(_FIRST_READ_BYTES_MIN, _FIRST_READ_RATIO * len(compressed))
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(compressed)), name) as stream:
        while piece := stream.read(min(wanted_bytes, limit_bytes + 1 - total_bytes)):
            pieces.append(piece)
            total_bytes += len(piece)
            if total_bytes > limit_bytes:
                raise TooLarge(
                    position=position, what=f"{name} data", claimed_bytes=total_bytes, limit_bytes=limit_bytes
                )
            wanted_bytes = max(wanted_bytes, total_bytes)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _snappy(compressed: memoryview, position: int, limit_bytes: int) -> bytes:
    if compressed[: len(_SNAPPY_JAVA_MAGIC)] != _SNAPPY_JAVA_MAGIC:
        return _snappy_block(compressed, position, limit_bytes)
    pieces: list[bytes] = []
    left_bytes = limit_bytes
    at = _SNAPPY_JAVA_HEADER_BYTES
    while at < len(compressed):
        if at + 4 > len(compressed):
            raise _short_snappy(position + at, 4, len(compressed) - at)
        (size_bytes,) = struct.unpack_from(">i", compressed, at)
        at += 4
        if not 0 <= size_bytes <= len(compressed) - at:
            raise _short_snappy(position + at, size_bytes, len(compressed) - at)
        piece = _snappy_block(compressed[at : at + size_bytes], position + at, left_bytes)
        pieces.append(piece)
        left_bytes -= len(piece)
        at += size_bytes
    return b"".join(pieces)


def _snappy_block(block: memoryview, position: int, limit_bytes: int) -> bytes:
    claimed_bytes = _snappy_claim(block, position)
    if claimed_bytes > limit_bytes:
        raise TooLarge(
            position=position, what="snappy block", claimed_bytes=claimed_bytes, limit_bytes=limit_bytes
        )
    # snappy expands at most about 21-fold a byte (a 3-byte copy makes 64): a larger claim is a lie, and is
    # refused before it is allocated.
    if claimed_bytes > 32 * len(block):
        raise Malformed(position=position, what="snappy block", why=f"claims {claimed_bytes} bytes")
    plain: bytes = pa.Codec("snappy").decompress(block, decompressed_size=claimed_bytes, asbytes=True)
    return plain


def _snappy_claim(block: memoryview, position: int) -> int:
    """A snappy block opens with its decompressed size, a little-endian base-128 varint."""
    value = 0
    for index, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value
    raise Malformed(position=position, what="snappy block", why="has no decompressed size")


def _short_snappy(position: int, wanted_bytes: int, left_bytes: int) -> EndOfBuffer:
    return EndOfBuffer(
        position=position, what="snappy block", wanted_bytes=wanted_bytes, left_bytes=left_bytes
    )
