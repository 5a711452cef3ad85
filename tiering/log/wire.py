"""The primitives that every Kafka format is made of, read from a buffer at a position.

Each `read_x(buffer, position)` returns `(value, next_position)`. Integers are big-endian.

| reader                    | bytes                                                                        |
|---------------------------|------------------------------------------------------------------------------|
| int8, int16, int32, int64 | 1, 2, 4, 8; two's complement                                                 |
| uint16, uint32, float64   | 2, 4, 8                                                                      |
| bool                      | 1; 0 or 1                                                                    |
| uvarint                   | 1-5; seven bits a byte, lowest first, the top bit set on all but the last    |
| varint, varlong           | 1-5, 1-10; the same over the zigzag value (0, -1, 1, -2, ...)                |
| string, nullable_string   | int16 length (-1 is null), UTF-8                                             |
| bytes, nullable_bytes     | int32 length (-1 is null)                                                    |
| compact_...               | uvarint length + 1 (0 is null) in place of the int16 or int32                |
| uuid                      | 16                                                                           |
| tagged_fields             | uvarint count, then for each: uvarint tag (rising), uvarint size, bytes      |

Refuses: to allocate by a length that it has not first seen to fit in what is left of the buffer; varints
that run on for too long or whose value is too wide (Kafka drops such bits without a word, but no writer
makes them; a padded varint that fits is read, as Kafka reads it); text that is not UTF-8.

Invariant: whatever the bytes are, a reader ends, returns a position in `(position, len(buffer)]`, or raises
a `LogFormatError`. The buffer is one of bytes; a memory view of wider items must be cast to bytes first.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Callable
from mmap import mmap
from typing import NewType, TypeAlias, TypeVar

from tiering.log.errors import EndOfBuffer, Malformed

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
T = TypeVar("T")
Reader: TypeAlias = Callable[[Buffer, int], tuple[T, int]]

# A UUID as Kafka prints it: 22 characters of URL-safe base64. A str, because topic and directory ids are
# compared with what stands in text files, object keys and JSON far more often than with bytes.
Uuid = NewType("Uuid", str)
ZERO_UUID = Uuid("A" * 22)
UUID_SIZE_BYTES = 16

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_PRINTED_UUID = re.compile(r"[0-9A-Za-z_-]{22}")


def _end_of_buffer(buffer: Buffer, position: int, what: str, wanted_bytes: int) -> EndOfBuffer:
    left_bytes = max(0, len(buffer) - position)
    return EndOfBuffer(position=position, what=what, wanted_bytes=wanted_bytes, left_bytes=left_bytes)


def read_span(buffer: Buffer, position: int, size_bytes: int, what: str) -> tuple[bytes, int]:
    """Copy `size_bytes` out of the buffer, once they are known to be there."""
    end = position + size_bytes
    if end > len(buffer):
        raise _end_of_buffer(buffer, position, what, size_bytes)
    return bytes(buffer[position:end]), end


def _fixed_int(code: str, what: str) -> Reader[int]:
    layout = struct.Struct(">" + code)
    size_bytes = layout.size

    def read(buffer: Buffer, position: int) -> tuple[int, int]:
        try:
            (value,) = layout.unpack_from(buffer, position)
        except struct.error:
            raise _end_of_buffer(buffer, position, what, size_bytes) from None
        return value, position + size_bytes

    return read


read_int8 = _fixed_int("b", "int8")
read_int16 = _fixed_int("h", "int16")
read_int32 = _fixed_int("i", "int32")
read_int64 = _fixed_int("q", "int64")
read_uint16 = _fixed_int("H", "uint16")
read_uint32 = _fixed_int("I", "uint32")


def read_float64(buffer: Buffer, position: int) -> tuple[float, int]:
    span, end = read_span(buffer, position, 8, "float64")
    return struct.unpack(">d", span)[0], end


def read_bool(buffer: Buffer, position: int) -> tuple[bool, int]:
    value, end = read_int8(buffer, position)
    if value not in (0, 1):
        raise Malformed(position=position, what="bool", why=f"is {value}, not 0 or 1")
    return value == 1, end


def _read_base128(buffer: Buffer, position: int, width_bits: int, what: str) -> tuple[int, int]:
    max_bytes = -(-width_bits // 7)
    value = 0
    for count in range(max_bytes):
        if position + count >= len(buffer):
            raise _end_of_buffer(buffer, position, what, count + 1)
        byte = buffer[position + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value >> width_bits:
                raise Malformed(position=position, what=what, why=f"does not fit in {width_bits} bits")
            return value, position + count + 1
    raise Malformed(position=position, what=what, why=f"goes on after {max_bytes} bytes")


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    # Nearly every length and tag is below 128: one byte, no loop.
    if position < len(buffer) and (first := buffer[position]) < 0x80:
        return first, position + 1
    return _read_base128(buffer, position, 32, "uvarint")


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    value, end = _read_base128(buffer, position, 32, "varint")
    return (value >> 1) ^ -(value & 1), end


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    # A record has three of them before its key, of one byte or two nearly always: no loop.
    if position + 1 < len(buffer):
        first = buffer[position]
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), position + 1
        second = buffer[position + 1]
        if second < 0x80:
            value = first & 0x7F | second << 7
            return (value >> 1) ^ -(value & 1), position + 2
    value, end = _read_base128(buffer, position, 64, "varlong")
    return (value >> 1) ^ -(value & 1), end


def read_uuid(buffer: Buffer, position: int) -> tuple[Uuid, int]:
    span, end = read_span(buffer, position, UUID_SIZE_BYTES, "uuid")
    return Uuid(binascii.b2a_base64(span, newline=False)[:22].translate(_URL_SAFE).decode("ascii")), end


def parse_uuid(text: str) -> Uuid | None:
    """The value of a printed UUID, or None if Kafka would not print one so."""
    if not _PRINTED_UUID.fullmatch(text):
        return None
    raw = base64.urlsafe_b64decode(text + "==")
    # 22 characters hold 4 bits more than 16 bytes do; printed again, those bits must come out zero.
    return Uuid(text) if read_uuid(raw, 0)[0] == text else None


def _read_compact_length(buffer: Buffer, position: int) -> tuple[int, int]:
    length, end = read_uvarint(buffer, position)
    return length - 1, end


def _nullable_bytes(read_length: Reader[int], what: str) -> Reader[bytes | None]:
    def read(buffer: Buffer, position: int) -> tuple[bytes | None, int]:
        length, start = read_length(buffer, position)
        if length >= 0:
            return read_span(buffer, start, length, what)
        if length == -1:
            return None, start
        raise Malformed(position=position, what=what, why=f"has length {length}")

    return read


def _nullable_text(read_raw: Reader[bytes | None], what: str) -> Reader[str | None]:
    def read(buffer: Buffer, position: int) -> tuple[str | None, int]:
        raw, end = read_raw(buffer, position)
        try:
            return (None if raw is None else raw.decode("utf-8")), end
        except UnicodeDecodeError as error:
            why = f"is not UTF-8: {error.reason} at its byte {error.start}"
            raise Malformed(position=position, what=what, why=why) from None

    return read


def _not_null(read_nullable: Reader[T | None], what: str) -> Reader[T]:
    def read(buffer: Buffer, position: int) -> tuple[T, int]:
        value, end = read_nullable(buffer, position)
        if value is None:
            raise Malformed(position=position, what=what, why="is null")
        return value, end

    return read


read_nullable_bytes = _nullable_bytes(read_int32, "bytes")
read_bytes = _not_null(read_nullable_bytes, "bytes")
read_nullable_compact_bytes = _nullable_bytes(_read_compact_length, "compact bytes")
read_compact_bytes = _not_null(read_nullable_compact_bytes, "compact bytes")
read_nullable_string = _nullable_text(_nullable_bytes(read_int16, "string"), "string")
read_string = _not_null(read_nullable_string, "string")
read_nullable_compact_string = _nullable_text(read_nullable_compact_bytes, "compact string")
read_compact_string = _not_null(read_nullable_compact_string, "compact string")


def nullable_compact_array(read_item: Reader[T], min_item_bytes: int) -> Reader[tuple[T, ...] | None]:
    """A reader of arrays whose items take at least `min_item_bytes` (1 or more) each.

    That least size is what bounds the array: a count that could not fit is refused before the first item.
    """

    def read(buffer: Buffer, position: int) -> tuple[tuple[T, ...] | None, int]:
        count, end = _read_compact_length(buffer, position)
        if count < 0:
            return None, end
        if count * min_item_bytes > len(buffer) - end:
            raise _end_of_buffer(buffer, end, f"array of {count}", count * min_item_bytes)
        items: list[T] = []
        for _ in range(count):
            item, end = read_item(buffer, end)
            items.append(item)
        return tuple(items), end

    return read


def compact_array(read_item: Reader[T], min_item_bytes: int) -> Reader[tuple[T, ...]]:
    return _not_null(nullable_compact_array(read_item, min_item_bytes), "array")


def read_tagged_fields(buffer: Buffer, position: int) -> tuple[tuple[tuple[int, int, int], ...], int]:
    """Each field as `(tag, start, end)`: what stands in `[start, end)` is its reader's to say (KIP-482)."""
    count, end = read_uvarint(buffer, position)
    if count * 2 > len(buffer) - end:
        raise _end_of_buffer(buffer, end, f"{count} tagged fields", count * 2)
    fields: list[tuple[int, int, int]] = []
    for _ in range(count):
        at = end
        tag, end = read_uvarint(buffer, end)
        size_bytes, start = read_uvarint(buffer, end)
        end = start + size_bytes
        if end > len(buffer):
            raise _end_of_buffer(buffer, start, f"tagged field {tag}", size_bytes)
        if fields and tag <= fields[-1][0]:
            raise Malformed(position=at, what=f"tagged field {tag}", why=f"comes after tag {fields[-1][0]}")
        fields.append((tag, start, end))
    return tuple(fields), end
