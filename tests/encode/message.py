"""Writes Kafka's generated messages from the tables of `tiering.log.schema`, for tests to read them back.

The primitives are written here from KIP-482, sharing no code with `tiering.log.wire`. The tables are shared:
that they are Kafka's is shown against Kafka's own bytes and definitions, not by a round trip.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from typing import Any

from tests.encode.record_batch import uvarint
from tiering.log.schema import Primitive, Struct, TableField, WireType, table_of


def compact_bytes(content: bytes | None) -> bytes:
    return uvarint(0) if content is None else uvarint(len(content) + 1) + content


def compact_string(text: str | None) -> bytes:
    return compact_bytes(None if text is None else text.encode())


def uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def _packed(code: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(">" + code, value)


PRIMITIVES: Mapping[str, Callable[[Any], bytes]] = {
    "bool": _packed("?"),
    "int8": _packed("b"),
    "int16": _packed("h"),
    "uint16": _packed("H"),
    "int32": _packed("i"),
    "int64": _packed("q"),
    "float64": _packed("d"),
    "uuid": uuid,
    "string": compact_string,
    "nullable string": compact_string,
    "nullable bytes": compact_bytes,
}


def encode_value(wire_type: WireType, value: Any, version: int) -> bytes:
    if isinstance(wire_type, Primitive):
        return PRIMITIVES[wire_type.name](value)
    if isinstance(wire_type, Struct):
        return encode_message(value, version)
    if value is None:
        return uvarint(0)
    return uvarint(len(value) + 1) + b"".join(encode_value(wire_type.item, item, version) for item in value)


def encode_message(message: Any, version: int, extra_tags: Mapping[int, bytes] | None = None) -> bytes:
    """The message in this version, with tagged fields that no table knows if `extra_tags` has any."""
    rows = [row for row in table_of(type(message)) if row.since <= version]
    plain = (encode_value(row.type, getattr(message, row.name), version) for row in rows if row.tag is None)
    tags = dict(extra_tags or {})
    for row in rows:
        value = getattr(message, row.name)
        if row.tag is not None and value != default_of(type(message), row):
            tags[row.tag] = encode_value(row.type, value, version)
    return b"".join(plain) + tagged_fields(tags)


def tagged_fields(tags: Mapping[int, bytes]) -> bytes:
    fields = (uvarint(tag) + uvarint(len(content)) + content for tag, content in sorted(tags.items()))
    return uvarint(len(tags)) + b"".join(fields)


def default_of(message: Any, row: TableField) -> Any:
    """What a field is where its tag or its version is absent."""
    return message.__dataclass_fields__[row.name].default


def encode_framed(message: Any, version: int, extra_tags: Mapping[int, bytes] | None = None) -> bytes:
    return (
        uvarint(1)
        + uvarint(message.api_key)
        + uvarint(version)
        + encode_message(message, version, extra_tags)
    )
