"""The interpreter of message tables, on a small message with one field of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from tests.encode.message import encode_message, tagged_fields
from tests.encode.record_batch import uvarint
from tiering.log.errors import EndOfBuffer, Malformed
from tiering.log.schema import (
    INT32,
    ArrayOf,
    Int16,
    Int32,
    NullableString,
    Since,
    String,
    Struct,
    Tag,
    read_message,
    reader_of,
    table_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of the small message."""

    size: Int16
    colour: Annotated[String, Since(1)] = "grey"


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """A message that changed over three versions."""

    number: Int32
    items: Annotated[tuple[Item, ...], ArrayOf(Struct(Item))]
    note: Annotated[NullableString, Tag(0)] = None
    count: Annotated[Int32, Since(1)] = -1
    limit: Annotated[Int32, Since(2), Tag(3)] = 100


def test_a_class_is_its_own_table() -> None:
    """Each field's wire type, first version and tag are read off its annotation, in the order of the wire."""
    rows = [(row.name, row.since, row.tag) for row in table_of(Small)]

    assert rows == [
        ("number", 0, None),
        ("items", 0, None),
        ("note", 0, 0),
        ("count", 1, None),
        ("limit", 2, 3),
    ]
    assert table_of(Small)[0].type == INT32


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_has_its_own_fields(version: int) -> None:
    """A field that the version does not have takes no bytes and has its default."""
    whole = Small(number=7, items=(Item(size=1, colour="red"),), note="hello", count=2, limit=3)

    read = read_message(Small, version, encode_message(whole, version))

    assert read == Small(
        number=7,
        items=(Item(size=1, colour="red" if version >= 1 else "grey"),),
        note="hello",
        count=2 if version >= 1 else -1,
        limit=3 if version >= 2 else 100,
    )


def test_a_message_may_stand_anywhere_in_a_buffer() -> None:
    """A reader takes its bytes and no more; it says where it ended."""
    raw = encode_message(Small(number=7, items=()), 2)

    assert reader_of(Small, 2)(b"before" + raw + b"after", 6) == (Small(number=7, items=()), 6 + len(raw))


def test_bytes_behind_a_message_are_refused() -> None:
    """A record's value is one message: what is left over means that the table or the bytes are wrong."""
    with pytest.raises(Malformed, match="2 bytes behind it"):
        read_message(Small, 0, encode_message(Small(number=7, items=()), 0) + b"!!")


@pytest.mark.parametrize("size_bytes", [3, 5])
def test_a_tagged_field_that_is_not_its_size_is_refused(size_bytes: int) -> None:
    """A tag's size and its content must agree, else what follows would be read askew."""
    raw = bytes(4) + uvarint(1) + bytes(4) + tagged_fields({3: bytes(size_bytes)}) + bytes(2)

    with pytest.raises(Malformed, match=r"Small\.limit"):
        read_message(Small, 2, raw)


def test_a_tag_of_a_later_version_is_refused() -> None:
    """The writer of version 1 did not know this tag: the version or the tag is damaged."""
    with pytest.raises(Malformed, match="not in version 1"):
        read_message(Small, 1, bytes(4) + uvarint(1) + bytes(4) + tagged_fields({3: bytes(4)}))


def test_an_array_of_messages_is_bounded_by_their_least_size() -> None:
    """A version 1 item takes 4 bytes at least: 26 of them cannot stand in 100 bytes."""
    with pytest.raises(EndOfBuffer, match="array of 26"):
        read_message(Small, 1, bytes(4) + uvarint(27) + bytes(100))


def test_an_error_inside_an_item_names_the_way_to_it() -> None:
    """The message's field and the item's field both stand in the error."""
    raw = bytes(4) + uvarint(2) + b"\x00\x01" + uvarint(9) + b"red"

    with pytest.raises(EndOfBuffer, match=r"Small\.items: Item\.colour: compact bytes"):
        read_message(Small, 1, raw)
