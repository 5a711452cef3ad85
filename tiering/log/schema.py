"""Kafka's generated messages as tables: a frozen dataclass is the table, one interpreter reads them all.

A message is a dataclass whose fields stand in the order of the wire, each `Annotated` with its wire type
(`Int32`, `String`, ...), and where they apply with `Since(version)` and `Tag(number)`. A field's default is
the value it has where its version or its tag is absent. `api_key` and `versions` are class variables.

    message  its plain fields one after the other, then its tagged fields (KIP-482, all are "flexible")

Refuses: the older, inflexible message forms (no log that is read here holds them); tags that the version does
not have; a tagged field that is shorter or longer than it says; bytes left over behind a message.

Invariant: a value takes memory in proportion to its bytes, whatever counts it claims: an array is bounded by
the least size of its items. An unknown tag is passed over, as KIP-482 has it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, TypeVar, get_type_hints

from tiering.log import wire
from tiering.log.errors import EndOfBuffer, Malformed
from tiering.log.wire import Buffer, Reader, Uuid

M = TypeVar("M")
E = TypeVar("E", bound=IntEnum)


# What a table is written in.


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type whose bytes do not depend on the message's version."""

    name: str
    read: Reader[Any]
    min_bytes: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A message inside a message."""

    of: type


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array of primitives or of messages."""

    item: Primitive | Struct
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Since:
    """The first version of the message that has this field."""

    version: int


@dataclass(frozen=True, slots=True)
class Tag:
    """The tag of a field that is left out where it has its default."""

    number: int


WireType: TypeAlias = Primitive | Struct | ArrayOf

INT32 = Primitive("int32", wire.read_int32, 4)
UUID = Primitive("uuid", wire.read_uuid, wire.UUID_SIZE_BYTES)

Bool: TypeAlias = Annotated[bool, Primitive("bool", wire.read_bool, 1)]
Int8: TypeAlias = Annotated[int, Primitive("int8", wire.read_int8, 1)]
Int16: TypeAlias = Annotated[int, Primitive("int16", wire.read_int16, 2)]
Uint16: TypeAlias = Annotated[int, Primitive("uint16", wire.read_uint16, 2)]
Int32: TypeAlias = Annotated[int, INT32]
Int64: TypeAlias = Annotated[int, Primitive("int64", wire.read_int64, 8)]
Float64: TypeAlias = Annotated[float, Primitive("float64", wire.read_float64, 8)]
UuidField: TypeAlias = Annotated[Uuid, UUID]
String: TypeAlias = Annotated[str, Primitive("string", wire.read_compact_string, 1)]
NullableString: TypeAlias = Annotated[
    str | None, Primitive("nullable string", wire.read_nullable_compact_string, 1)
]
NullableBytes: TypeAlias = Annotated[
    bytes | None, Primitive("nullable bytes", wire.read_nullable_compact_bytes, 1)
]
Int32s: TypeAlias = Annotated[tuple[int, ...], ArrayOf(INT32)]
NullableInt32s: TypeAlias = Annotated[tuple[int, ...] | None, ArrayOf(INT32, nullable=True)]
Uuids: TypeAlias = Annotated[tuple[Uuid, ...], ArrayOf(UUID)]
NullableUuids: TypeAlias = Annotated[tuple[Uuid, ...] | None, ArrayOf(UUID, nullable=True)]


def enum_reader(values: type[E]) -> Reader[E]:
    """A reader of an int8 that can only be one of these values."""
    known = {int(value): value for value in values}

    def read(buffer: Buffer, position: int) -> tuple[E, int]:
        number, end = wire.read_int8(buffer, position)
        if number not in known:
            raise Malformed(position=position, what=values.__name__, why=f"has no value {number}")
        return known[number], end

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class TableField:
    """One row of a message's table."""

    name: str
    type: WireType
    since: int
    tag: int | None


def table_of(message: type) -> tuple[TableField, ...]:
    """The table that a message class states."""
    return _table_of(message)


@lru_cache(maxsize=128)  # more than there are messages
def _table_of(message: type) -> tuple[TableField, ...]:
    hints = get_type_hints(message, include_extras=True)
    rows = []
    for each in fields(message):
        marks = hints[each.name].__metadata__
        rows.append(
            TableField(
                name=each.name,
                type=next(mark for mark in marks if isinstance(mark, Primitive | Struct | ArrayOf)),
                since=next((mark.version for mark in marks if isinstance(mark, Since)), 0),
                tag=next((mark.number for mark in marks if isinstance(mark, Tag)), None),
            )
        )
    return tuple(rows)


# The interpreter.


def _type_reader(wire_type: WireType, version: int) -> Reader[Any]:
    if isinstance(wire_type, Primitive):
        return wire_type.read
    if isinstance(wire_type, Struct):
        return reader_of(wire_type.of, version)
    build = wire.nullable_compact_array if wire_type.nullable else wire.compact_array
    return build(_type_reader(wire_type.item, version), _least_bytes(wire_type.item, version))


def _least_bytes(wire_type: WireType, version: int) -> int:
    """The fewest bytes a value can take; it bounds how many items an array may claim."""
    if isinstance(wire_type, Primitive):
        return wire_type.min_bytes
    if isinstance(wire_type, ArrayOf):
        return 1
    plain = (row for row in table_of(wire_type.of) if row.tag is None and row.since <= version)
    return 1 + sum(_least_bytes(row.type, version) for row in plain)


def reader_of(message: type[M], version: int) -> Reader[M]:
    """A reader of one version of a message, made once from its table."""
    untyped: type = message
    return _reader_of(untyped, version)


@lru_cache(maxsize=512)  # messages times their versions
def _reader_of(message: type, version: int) -> Reader[Any]:
    rows = [row for row in table_of(message) if row.since <= version]
    plain = [(row.name, _type_reader(row.type, version)) for row in rows if row.tag is None]
    tagged = {
        row.tag: (row.name, _type_reader(row.type, version) if row.since <= version else None)
        for row in table_of(message)
        if row.tag is not None
    }

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        name = "tagged fields"
        try:
            for name, read_field in plain:
                values[name], position = read_field(buffer, position)
            name = "tagged fields"
            tags, position = wire.read_tagged_fields(buffer, position)
            for tag, start, end in tags:
                if tag not in tagged:
                    continue
                name, read_tagged = tagged[tag]
                if read_tagged is None:
                    raise Malformed(position=start, what=f"tag {tag}", why=f"is not in version {version}")
                values[name], stop = read_tagged(buffer, start)
                if stop != end:
                    why = f"ends at byte {stop}, its size says {end}"
                    raise Malformed(position=start, what=f"tag {tag}", why=why)
        except (EndOfBuffer, Malformed) as error:
            error.what = f"{message.__name__}.{name}: {error.what}"
            raise
        return message(**values), position

    return read


def read_message(message: type[M], version: int, buffer: Buffer, position: int = 0) -> M:
    """The message that fills the buffer from `position` on, to its last byte."""
    value, end = reader_of(message, version)(buffer, position)
    if end != len(buffer):
        raise Malformed(position=end, what=message.__name__, why=f"has {len(buffer) - end} bytes behind it")
    return value
