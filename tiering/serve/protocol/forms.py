"""Requests and answers as bytes, by the tables of `tiering.log.schema`, in both forms that Kafka has.

    older form     string: int16 length; bytes, arrays: int32; null is -1; no tagged fields
    flexible form  lengths as uvarint + 1, null is 0; every message ends in tagged fields (KIP-482)

A table's field may end with a version (`Until`), as `Since` begins it. Records are not copied: read, they are
a view of the frame; written, they stay the pieces that they were given as (`Out.pieces`).

Owns the interpretation, nothing of what a message means. Refuses what `tiering.log.wire` refuses.

Invariant: what one form of a version writes it reads as the same value; an array that claims more items than
its bytes can hold is refused before the first item.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, get_type_hints

from tiering.log import wire
from tiering.log.errors import EndOfBuffer, Malformed
from tiering.log.schema import ArrayOf, Primitive, Since, Struct, Tag, WireType
from tiering.log.wire import Buffer, Reader

M = TypeVar("M")
Pieces: TypeAlias = Sequence[Buffer]
Writer: TypeAlias = Callable[["Out", Any], None]


@dataclass(frozen=True, slots=True)
class Until:
    """The last version of the message that has this field."""

    version: int


class Out(bytearray):
    """Bytes being written, and records that go in between as they are."""

    def __init__(self) -> None:
        super().__init__()
        self._inserted: list[tuple[int, Pieces]] = []

    def insert_pieces(self, pieces: Pieces) -> None:
        self._inserted.append((len(self), pieces))

    @property
    def size_bytes(self) -> int:
        return len(self) + sum(len(piece) for _, pieces in self._inserted for piece in pieces)

    def pieces(self) -> list[Buffer]:
        """All of it, in order."""
        whole, found, at = memoryview(self), list[Buffer](), 0
        for position, pieces in self._inserted:
            if position > at:
                found.append(whole[at:position])
            found.extend(pieces)
            at = position
        if at < len(self):
            found.append(whole[at:])
        return found


# Primitives, by the names that tables give them: how each is read and written, older form first.


def _read_records(read_length: Reader[int]) -> Reader[Pieces | None]:
    def read(buffer: Buffer, position: int) -> tuple[Pieces | None, int]:
        length, start = read_length(buffer, position)
        if length < 0:
            return None, start
        end = start + length
        if end > len(buffer):
            raise EndOfBuffer(
                position=start, what="records", wanted_bytes=length, left_bytes=len(buffer) - start
            )
        return (memoryview(buffer)[start:end],), end

    return read


def _compact_length(buffer: Buffer, position: int) -> tuple[int, int]:
    length, end = wire.read_uvarint(buffer, position)
    return length - 1, end


def _packed(code: str) -> Writer:
    pack = struct.Struct(">" + code).pack
    return lambda out, value: out.extend(pack(value))


def write_uvarint(out: Out, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_compact_length(out: Out, length: int) -> None:
    write_uvarint(out, length + 1)


_LENGTH_16, _LENGTH_32 = _packed("h"), _packed("i")


def _write_text(write_length: Writer) -> Writer:
    def write(out: Out, value: str | None) -> None:
        if value is None:
            write_length(out, -1)
            return
        encoded = value.encode()
        write_length(out, len(encoded))
        out.extend(encoded)

    return write


def _write_bytes(write_length: Writer) -> Writer:
    def write(out: Out, value: bytes | None) -> None:
        write_length(out, -1 if value is None else len(value))
        out.extend(value or b"")

    return write


def _write_records(write_length: Writer) -> Writer:
    def write(out: Out, value: Pieces | None) -> None:
        write_length(out, -1 if value is None else sum(len(piece) for piece in value))
        if value:
            out.insert_pieces(value)

    return write


def _write_uuid(out: Out, value: str) -> None:
    out.extend(base64.urlsafe_b64decode(value + "=="))


class _Codec(NamedTuple):
    """Of one primitive in one form."""

    read: Reader[Any]
    write: Writer


def _fixed(code: str, read: Reader[Any]) -> tuple[_Codec, _Codec]:
    found = _Codec(read, _packed(code))
    return found, found


_UUID = _Codec(wire.read_uuid, _write_uuid)
_TEXT_OLD, _TEXT_NEW = _write_text(_LENGTH_16), _write_text(_write_compact_length)
_BYTES_OLD, _BYTES_NEW = _write_bytes(_LENGTH_32), _write_bytes(_write_compact_length)
_CODECS: dict[str, tuple[_Codec, _Codec]] = {
    "bool": _fixed("?", wire.read_bool),
    "int8": _fixed("b", wire.read_int8),
    "int16": _fixed("h", wire.read_int16),
    "int32": _fixed("i", wire.read_int32),
    "int64": _fixed("q", wire.read_int64),
    "uuid": (_UUID, _UUID),
    "string": (_Codec(wire.read_string, _TEXT_OLD), _Codec(wire.read_compact_string, _TEXT_NEW)),
    "nullable string": (
        _Codec(wire.read_nullable_string, _TEXT_OLD),
        _Codec(wire.read_nullable_compact_string, _TEXT_NEW),
    ),
    "bytes": (_Codec(wire.read_bytes, _BYTES_OLD), _Codec(wire.read_compact_bytes, _BYTES_NEW)),
    "records": (
        _Codec(_read_records(wire.read_int32), _write_records(_LENGTH_32)),
        _Codec(_read_records(_compact_length), _write_records(_write_compact_length)),
    ),
}
Bytes: TypeAlias = Annotated[bytes, Primitive("bytes", wire.read_compact_bytes, 1)]
Records: TypeAlias = Annotated[Pieces | None, Primitive("records", _read_records(_compact_length), 1)]


# Tables.


class Row(NamedTuple):
    """One field of a message's table."""

    name: str
    type: WireType
    since: int
    until: int
    tag: int | None
    default: Any

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until


@lru_cache(maxsize=256)  # more than there are messages
def rows_of(message: type) -> tuple[Row, ...]:
    """The table that a message class states."""
    hints = get_type_hints(message, include_extras=True)
    rows = []
    for each in fields(message):
        marks = hints[each.name].__metadata__
        rows.append(
            Row(
                name=each.name,
                type=next(mark for mark in marks if isinstance(mark, Primitive | Struct | ArrayOf)),
                since=next((mark.version for mark in marks if isinstance(mark, Since)), 0),
                until=next((mark.version for mark in marks if isinstance(mark, Until)), 32767),
                tag=next((mark.number for mark in marks if isinstance(mark, Tag)), None),
                default=each.default,
            )
        )
    return tuple(rows)


def _least_bytes(wire_type: WireType, version: int) -> int:
    """The fewest bytes of a value in either form; it bounds how many items an array may claim."""
    if isinstance(wire_type, Primitive):
        return wire_type.min_bytes
    if isinstance(wire_type, ArrayOf):
        return 1
    plain = (row for row in rows_of(wire_type.of) if row.tag is None and row.is_in(version))
    return max(1, sum(_least_bytes(row.type, version) for row in plain))


# Reading.


def _array_reader(read_length: Reader[int], read_item: Reader[Any], least: int) -> Reader[Any]:
    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        count, end = read_length(buffer, position)
        if count < 0:
            return None, end
        if count * least > len(buffer) - end:
            raise EndOfBuffer(
                position=end, what="array", wanted_bytes=count * least, left_bytes=len(buffer) - end
            )
        items = []
        for _ in range(count):
            item, end = read_item(buffer, end)
            items.append(item)
        return tuple(items), end

    return read


def _type_reader(wire_type: WireType, version: int, flexible: bool) -> Reader[Any]:
    if isinstance(wire_type, Primitive):
        return _CODECS[wire_type.name][flexible].read
    if isinstance(wire_type, Struct):
        return reader_of(wire_type.of, version, flexible)
    read_length: Reader[int] = _compact_length if flexible else wire.read_int32
    read_item = _type_reader(wire_type.item, version, flexible)
    return _array_reader(read_length, read_item, _least_bytes(wire_type.item, version))


@lru_cache(maxsize=1024)  # messages times their versions
def reader_of(message: type, version: int, flexible: bool) -> Reader[Any]:
    """A reader of one version of a message, made once from its table."""
    rows = [row for row in rows_of(message) if row.is_in(version)]
    plain = [(row.name, _type_reader(row.type, version, flexible)) for row in rows if row.tag is None]
    tagged = {
        row.tag: (row.name, _type_reader(row.type, version, flexible)) for row in rows if row.tag is not None
    }

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for name, read_field in plain:
            values[name], position = read_field(buffer, position)
        if flexible:
            tags, position = wire.read_tagged_fields(buffer, position)
            for tag, start, end in tags:
                if tag in tagged:
                    name, read_tagged = tagged[tag]
                    values[name], stop = read_tagged(buffer, start)
                    if stop != end:
                        raise Malformed(position=start, what=f"tag {tag}", why="is of another size")
        return message(**values), position

    return read


def read_message(message: type[M], version: int, flexible: bool, buffer: Buffer, position: int = 0) -> M:
    """The message that fills the buffer from `position` on, to its last byte."""
    untyped: type = message
    value, end = reader_of(untyped, version, flexible)(buffer, position)
    if end != len(buffer):
        raise Malformed(position=end, what=message.__name__, why=f"has {len(buffer) - end} bytes behind it")
    found: M = value
    return found


# Writing.


def _array_writer(write_length: Writer, write_item: Writer) -> Writer:
    def write(out: Out, value: Sequence[Any] | None) -> None:
        write_length(out, -1 if value is None else len(value))
        for item in value or ():
            write_item(out, item)

    return write


def _type_writer(wire_type: WireType, version: int, flexible: bool) -> Writer:
    if isinstance(wire_type, Primitive):
        return _CODECS[wire_type.name][flexible].write
    if isinstance(wire_type, Struct):
        return writer_of(wire_type.of, version, flexible)
    write_length = _write_compact_length if flexible else _LENGTH_32
    return _array_writer(write_length, _type_writer(wire_type.item, version, flexible))


@lru_cache(maxsize=1024)
def writer_of(message: type, version: int, flexible: bool) -> Writer:
    """A writer of one version of a message, made once from its table."""
    rows = [row for row in rows_of(message) if row.is_in(version)]
    plain = [(row.name, _type_writer(row.type, version, flexible)) for row in rows if row.tag is None]
    tagged = sorted(
        (row.tag, row.name, row.default, _type_writer(row.type, version, flexible))
        for row in rows
        if row.tag is not None
    )

    def write(out: Out, value: Any) -> None:
        for name, write_field in plain:
            write_field(out, getattr(value, name))
        if flexible:
            _write_tags(out, value, tagged)

    return write


def _write_tags(out: Out, value: Any, tagged: Sequence[tuple[int, str, Any, Writer]]) -> None:
    present = [(tag, name, write) for tag, name, default, write in tagged if getattr(value, name) != default]
    write_uvarint(out, len(present))
    for tag, name, write in present:
        held = Out()
        write(held, getattr(value, name))
        write_uvarint(out, tag)
        write_uvarint(out, len(held))
        out.extend(held)


def write_message(out: Out, message: Any, version: int, flexible: bool) -> None:
    kind: type = type(message)
    writer_of(kind, version, flexible)(out, message)
