"""The primitives: Kafka's own bytes, round trips, and claims that the buffer cannot keep."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.message import compact_bytes, compact_string, tagged_fields
from tests.encode.record_batch import uvarint, varint
from tests.tiering.log.kafka_json import vectors
from tiering.log import wire
from tiering.log.errors import EndOfBuffer, LogFormatError, Malformed

READERS: dict[str, wire.Reader[Any]] = {
    "varint": wire.read_varint,
    "varlong": wire.read_varlong,
    "uvarint": wire.read_uvarint,
    "uuid": wire.read_uuid,
}
FIXED: list[tuple[wire.Reader[Any], str]] = [
    (wire.read_int8, "b"),
    (wire.read_int16, "h"),
    (wire.read_int32, "i"),
    (wire.read_int64, "q"),
    (wire.read_uint16, "H"),
    (wire.read_uint32, "I"),
    (wire.read_float64, "d"),
]


@pytest.mark.parametrize(
    "vector", vectors("primitives", "primitives"), ids=lambda v: f"{v['type']}={v['value']}"
)
def test_kafkas_primitives_are_read_as_kafka_means_them(vector: dict[str, Any]) -> None:
    """What ByteUtils and Uuid wrote is read whole, and as the value that went in."""
    raw = bytes.fromhex(vector["hex"])

    assert READERS[vector["type"]](raw, 0) == (vector["value"], len(raw))


@pytest.mark.parametrize(("read", "code"), FIXED, ids=[code for _, code in FIXED])
@given(data=st.data())
def test_fixed_widths_are_big_endian(read: wire.Reader[Any], code: str, data: st.DataObject) -> None:
    """Any bytes of the width are the value that struct reads from them, wherever they stand."""
    size_bytes = struct.calcsize(">" + code)
    raw = data.draw(st.binary(min_size=size_bytes, max_size=size_bytes))

    value, end = read(b"before" + raw + b"after", 6)

    assert end == 6 + size_bytes
    assert struct.pack(">" + code, value) == raw or value != value  # NaN is not itself


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_survive(value: int) -> None:
    """Every int32 goes through a zigzag varint unchanged."""
    raw = varint(value)

    assert wire.read_varint(b"\xff" + raw, 1) == (value, 1 + len(raw))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_survive(value: int) -> None:
    """Every int64 goes through a zigzag varlong unchanged."""
    raw = varint(value)

    assert wire.read_varlong(raw, 0) == (value, len(raw))


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_uvarints_survive(value: int, behind: bytes) -> None:
    """Every uint32 goes through an unsigned varint unchanged, whatever follows it."""
    raw = uvarint(value)

    assert wire.read_uvarint(raw + behind, 0) == (value, len(raw))


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        (wire.read_uvarint, b"\xff\xff\xff\xff\xff\x01"),
        (wire.read_uvarint, b"\xff\xff\xff\xff\x10"),
        (wire.read_varint, b"\x80" * 5 + b"\x00"),
        (wire.read_varint, b"\xff\xff\xff\xff\x1f"),
        (wire.read_varlong, b"\xff" * 10 + b"\x01"),
        (wire.read_varlong, b"\xff" * 9 + b"\x02"),
    ],
)
def test_an_overlong_varint_is_malformed(read: wire.Reader[int], raw: bytes) -> None:
    """A varint that goes on after its most bytes, or has bits above its width, is no varint."""
    with pytest.raises(Malformed):
        read(raw, 0)


def test_a_padded_varint_that_fits_is_read() -> None:
    """Kafka reads a value with needless bytes, so that a client that writes so is not called corrupt."""
    assert wire.read_uvarint(b"\x85\x80\x00", 0) == (5, 3)


@pytest.mark.parametrize("read", [wire.read_uvarint, wire.read_varint, wire.read_varlong])
@pytest.mark.parametrize("raw", [b"", b"\x80", b"\xff\xff"])
def test_a_cut_varint_is_the_end_of_the_buffer(read: wire.Reader[int], raw: bytes) -> None:
    """A varint whose last byte is missing wants more bytes; it is not a smaller number."""
    with pytest.raises(EndOfBuffer):
        read(raw, 0)


@pytest.mark.parametrize("read", [read for read, _ in FIXED] + [wire.read_bool, wire.read_uuid])
def test_a_fixed_width_past_the_end_is_refused(read: wire.Reader[Any]) -> None:
    """Bytes that are not there are not read, at the end nor beyond it."""
    for position in (0, 1, 100):
        with pytest.raises(EndOfBuffer):
            read(b"", position)


def test_a_bool_is_zero_or_one() -> None:
    """Kafka writes 0 and 1; anything else is a damaged byte, not a true one."""
    assert wire.read_bool(b"\x00", 0) == (False, 1)
    assert wire.read_bool(b"\x01", 0) == (True, 1)
    with pytest.raises(Malformed):
        wire.read_bool(b"\x02", 0)


@given(st.none() | st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_survive(text: str | None) -> None:
    """Text and null come back from both string forms; null from the nullable readers only."""
    raw = None if text is None else text.encode()
    plain = struct.pack(">h", -1) if raw is None else struct.pack(">h", len(raw)) + raw
    compact = compact_string(text)

    assert wire.read_nullable_string(plain, 0) == (text, len(plain))
    assert wire.read_nullable_compact_string(compact, 0) == (text, len(compact))
    for read, encoded in ((wire.read_string, plain), (wire.read_compact_string, compact)):
        if text is None:
            with pytest.raises(Malformed, match="null"):
                read(encoded, 0)
        else:
            assert read(encoded, 0) == (text, len(encoded))


@given(st.none() | st.binary())
def test_bytes_survive(content: bytes | None) -> None:
    """Bytes and null come back from both byte forms; null from the nullable readers only."""
    plain = struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content
    compact = compact_bytes(content)

    assert wire.read_nullable_bytes(plain, 0) == (content, len(plain))
    assert wire.read_nullable_compact_bytes(compact, 0) == (content, len(compact))
    for read, encoded in ((wire.read_bytes, plain), (wire.read_compact_bytes, compact)):
        if content is None:
            with pytest.raises(Malformed, match="null"):
                read(encoded, 0)
        else:
            assert read(encoded, 0) == (content, len(encoded))


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        (wire.read_string, struct.pack(">h", 2**15 - 1)),
        (wire.read_bytes, struct.pack(">i", 2**31 - 1)),
        (wire.read_compact_string, uvarint(2**32 - 1)),
        (wire.read_compact_bytes, uvarint(2**32 - 1)),
        (wire.compact_array(wire.read_int8, 1), uvarint(2**32 - 1)),
        (wire.read_tagged_fields, uvarint(2**32 - 1)),
        (wire.read_tagged_fields, uvarint(1) + uvarint(0) + uvarint(2**32 - 1)),
    ],
)
def test_a_length_that_does_not_fit_allocates_nothing(read: wire.Reader[Any], raw: bytes) -> None:
    """A claim of gigabytes in a few bytes is refused before anything is made for it."""
    with pytest.raises(EndOfBuffer):
        read(raw + bytes(100), 0)


@pytest.mark.parametrize(
    ("read", "raw"),
    [(wire.read_string, struct.pack(">h", -2)), (wire.read_bytes, struct.pack(">i", -(2**31)))],
)
def test_a_negative_length_is_malformed(read: wire.Reader[Any], raw: bytes) -> None:
    """-1 is null; no other length is below zero."""
    with pytest.raises(Malformed, match="length"):
        read(raw, 0)


def test_text_that_is_not_utf8_is_malformed() -> None:
    """A damaged name is an error; it does not become another name."""
    with pytest.raises(Malformed, match="UTF-8"):
        wire.read_compact_string(uvarint(3) + b"\xff\xfe", 0)


@given(st.none() | st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_arrays_survive(items: list[int] | None) -> None:
    """The items come back in order, as a tuple; a null array is not an empty one."""
    raw = b"\x00" if items is None else uvarint(len(items) + 1) + struct.pack(f">{len(items)}i", *items)
    read = wire.nullable_compact_array(wire.read_int32, 4)

    assert read(raw, 0) == (None if items is None else tuple(items), len(raw))


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=20), max_size=8))
def test_tagged_fields_say_where_each_is(tags: dict[int, bytes]) -> None:
    """Each tag comes with the bytes that stand in it, in rising order."""
    raw = tagged_fields(tags)

    fields, end = wire.read_tagged_fields(raw, 0)

    assert end == len(raw)
    assert [(tag, raw[start:stop]) for tag, start, stop in fields] == sorted(tags.items())


@pytest.mark.parametrize("tags", [b"\x02\x05\x00\x05\x00", b"\x02\x05\x00\x04\x00"])
def test_tags_that_do_not_rise_are_malformed(tags: bytes) -> None:
    """A tag twice, or out of order, would let the last one win in silence (KIP-482 wants them rising)."""
    with pytest.raises(Malformed, match="comes after"):
        wire.read_tagged_fields(tags, 0)


@given(st.text("ABCabcxyz0189-_+/= \n", min_size=21, max_size=23) | st.text(max_size=22))
def test_a_uuid_is_parsed_only_as_kafka_prints_it(text: str) -> None:
    """What parses prints as itself, so that two texts never name one id."""
    parsed = wire.parse_uuid(text)

    assert parsed is None or (parsed == text and len(text) == 22 and set(text).isdisjoint("+/= \n"))


@given(st.binary(min_size=16, max_size=16))
def test_uuids_survive_printing_and_parsing(raw: bytes) -> None:
    """Every 16 bytes have one printed form, which parses."""
    printed, _ = wire.read_uuid(raw, 0)

    assert wire.parse_uuid(printed) == printed


def test_every_kind_of_buffer_is_read_alike(tmp_path: Path) -> None:
    """bytes, bytearray, memoryview and a memory map give the same values and the same errors."""
    raw = b"\x00\x05" + uvarint(4) + b"abc" + bytes(range(16))
    (tmp_path / "file").write_bytes(raw)

    def everything(buffer: wire.Buffer) -> list[object]:
        with pytest.raises(LogFormatError) as caught:
            wire.read_int64(buffer, len(raw) - 3)
        return [
            wire.read_int16(buffer, 0),
            wire.read_compact_string(buffer, 2),
            wire.read_uuid(buffer, 6),
            str(caught.value),
        ]

    with (
        (tmp_path / "file").open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        from_map = everything(mapped)

    assert from_map == everything(raw) == everything(bytearray(raw)) == everything(memoryview(raw))
