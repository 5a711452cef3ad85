"""Record batches: headers, records, control records, and every way of lying about them."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.record_batch import CODECS, PlainRecord, encode_batch, encode_control_batch, uvarint, varint
from tests.encode.segment import T0_MS, plain_records
from tiering.log.batch import (
    COVERED_AT,
    ControlType,
    Record,
    TransactionMarker,
    control_type,
    crc_of,
    read_header,
    read_marker,
    read_records,
)
from tiering.log.codec import Codec
from tiering.log.errors import EndOfBuffer, LogFormatError, Malformed, RecordCountMismatch, UnsupportedVersion

int64s = st.integers(min_value=-(2**63), max_value=2**63 - 1)
times_ms = st.integers(min_value=-1, max_value=2**62)
contents = st.none() | st.binary(max_size=64)
header_lists = st.lists(st.tuples(st.text(max_size=8), contents), max_size=3)


@st.composite
def record_lists(draw: st.DrawFn) -> list[PlainRecord]:
    """Records at rising offsets, holes included, with any times, keys, values and headers."""
    offset = draw(st.integers(min_value=0, max_value=2**40))
    listed = []
    for _ in range(draw(st.integers(min_value=1, max_value=8))):
        listed.append(
            PlainRecord(
                offset=offset,
                timestamp_ms=draw(times_ms),
                key=draw(contents),
                value=draw(contents),
                headers=draw(header_lists),
            )
        )
        offset += draw(st.integers(min_value=1, max_value=1000))
    return listed


def as_read(record: PlainRecord) -> Record:
    return Record(record.offset, record.timestamp_ms, record.key, record.value, tuple(record.headers))


@given(listed=record_lists(), codec=st.sampled_from(sorted(CODECS)))
def test_records_survive_the_round_trip(listed: list[PlainRecord], codec: str) -> None:
    """What is written in any codec is read back, field for field."""
    content = encode_batch(listed, codec=codec)

    header = read_header(content)

    assert header.size_bytes == len(content)
    assert header.codec_number == Codec[codec.upper()]
    assert crc_of(content, 0, header.size_bytes) == header.crc
    assert list(read_records(content, header)) == [as_read(r) for r in listed]


@given(value=int64s)
def test_every_int64_survives_as_a_varint(value: int) -> None:
    """Deltas over the whole range of int64 are decoded as they were written."""
    record = PlainRecord(offset=0, timestamp_ms=0)
    body = b"\0" + varint(value) + varint(0) + varint(-1) + varint(-1) + varint(0)
    content = encode_batch([record], payload=varint(len(body)) + body)

    [read] = read_records(content, read_header(content))

    assert read.timestamp_ms == value


def test_header_fields_are_read_from_where_the_table_says() -> None:
    """Each header field comes back with the value that was written into it."""
    content = encode_batch(
        plain_records(500, 4),
        leader_epoch=7,
        producer_id=2**40,
        producer_epoch=12,
        base_sequence=2**31 - 2,
        attributes=0x10,
    )

    header = read_header(b"\xff" * 5 + content, 5)

    assert (header.base_offset, header.last_offset, header.next_offset) == (500, 503, 504)
    assert (header.leader_epoch, header.producer_id, header.producer_epoch) == (7, 2**40, 12)
    assert (header.base_sequence, header.last_sequence) == (2**31 - 2, 1)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (T0_MS + 500, T0_MS + 503)
    assert header.record_count == 4
    assert header.is_transactional
    assert not header.is_control
    assert header.delete_horizon_ms is None


def test_log_append_time_stands_for_every_record() -> None:
    """With log append time each record's time is the batch's max timestamp (KIP-32)."""
    content = encode_batch(plain_records(0, 3), attributes=0x08, max_timestamp_ms=T0_MS + 99)

    read = list(read_records(content, read_header(content)))

    assert [r.timestamp_ms for r in read] == [T0_MS + 99] * 3


def test_delete_horizon_is_told_from_a_base_timestamp() -> None:
    """Bit 6 turns the base timestamp into the cleaner's delete horizon (KIP-534)."""
    content = encode_batch(plain_records(0, 1), attributes=0x40, base_timestamp_ms=T0_MS + 5)

    assert read_header(content).delete_horizon_ms == T0_MS + 5


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_markers_are_read(commit: bool) -> None:
    """A control batch's record says how the transaction ended, and at which coordinator epoch."""
    content = encode_control_batch(9, commit=commit, producer_id=4, timestamp_ms=T0_MS, coordinator_epoch=31)

    header = read_header(content)
    [record] = read_records(content, header)

    assert header.is_control
    assert read_marker(record) == TransactionMarker(is_commit=commit, coordinator_epoch=31)


def test_other_control_records_are_no_marker() -> None:
    """KRaft's own control records are named by type and are not taken for a transaction's end."""
    record = Record(0, 0, struct.pack(">hh", 0, 2), b"\0\0", ())

    assert control_type(record) == ControlType.LEADER_CHANGE
    assert read_marker(record) is None


@pytest.mark.parametrize("record", [Record(0, 0, b"\0\0\0", b"", ()), Record(0, 0, None, b"", ())])
def test_a_short_control_key_is_a_typed_error(record: Record) -> None:
    """A control record whose key cannot hold a type is EndOfBuffer, not a crash."""
    with pytest.raises(EndOfBuffer):
        control_type(record)


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_magics_are_named_and_never_read(magic: int) -> None:
    """A batch of another format is refused by its number, even where the buffer ends early."""
    content = encode_batch(plain_records(0, 1), magic=magic)

    for size_bytes in (17, 40, len(content)):
        with pytest.raises(UnsupportedVersion) as caught:
            read_header(content[:size_bytes])
        assert caught.value.version == magic


@pytest.mark.parametrize("size_bytes", [0, 1, 16, 17, 60])
def test_a_header_cut_short_is_end_of_buffer(size_bytes: int) -> None:
    """Fewer than 61 bytes are never read as a header."""
    with pytest.raises(EndOfBuffer):
        read_header(encode_batch(plain_records(0, 1))[:size_bytes])


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_every_flipped_byte_under_the_crc_is_detected(codec: str) -> None:
    """Whichever covered byte is inverted, the CRC no longer matches."""
    content = encode_batch(plain_records(0, 3, value=b"some value" * 3), codec=codec)
    header = read_header(content)

    missed = []
    for at in range(COVERED_AT, len(content)):
        broken = bytearray(content)
        broken[at] ^= 0xFF
        if crc_of(broken, 0, header.size_bytes) == header.crc:
            missed.append(at)

    assert missed == []


@pytest.mark.parametrize("claimed", [0, 1, 2, 4, 2**31 - 1, -5])
def test_a_lying_record_count_is_told(claimed: int) -> None:
    """More or fewer records than the header counts is RecordCountMismatch, whatever it counts."""
    content = encode_batch(plain_records(0, 3), record_count=claimed)

    with pytest.raises(RecordCountMismatch):
        list(read_records(content, read_header(content)))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (varint(100) + b"\0" * 20, "length 100"),
        (varint(-3) + b"\0" * 20, "length -3"),
        (varint(6) + b"\0" + varint(0) + varint(0) + varint(50) + b"\0\0", "leaves its record"),
        (varint(6) + b"\0" + varint(0) + varint(0) + varint(-2) + varint(-1) + varint(0), "length -2"),
        (varint(7) + b"\0\0\0\1\1" + varint(50) + b"\0", "50 headers"),
        (varint(7) + b"\0\0\0\1\1" + varint(-1) + b"\0", "headers"),
        (varint(8) + b"\0\0\0\1\1" + varint(1) + b"\1\0", "no name"),
        (varint(7) + b"\0\0\0\1\1\0\0", "its length says"),
        (b"\xff" * 11, "ten bytes"),
        (varint(3) + b"\0\x80\x80", "record 0"),
    ],
)
def test_a_malformed_record_is_a_typed_error(payload: bytes, why: str) -> None:
    """Each broken record is Malformed with its index and the reason."""
    content = encode_batch(plain_records(0, 1), payload=payload)

    with pytest.raises(Malformed) as caught:
        list(read_records(content, read_header(content)))
    assert why in str(caught.value)
    assert caught.value.what == "record 0"


def test_an_unknown_codec_is_refused() -> None:
    """Codecs 5 to 7 do not exist; the batch is not guessed at."""
    content = encode_batch(plain_records(0, 1), attributes=0x06)

    with pytest.raises(UnsupportedVersion) as caught:
        read_records(content, read_header(content))
    assert caught.value.what == "codec"


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_that_cannot_hold_a_header_is_malformed(length: int) -> None:
    """A batch length under 49 is refused before anything is computed from it."""
    content = bytearray(encode_batch(plain_records(0, 1)))
    content[8:12] = struct.pack(">i", length)

    with pytest.raises(Malformed):
        read_header(content)


def test_a_batch_that_leaves_the_buffer_is_end_of_buffer() -> None:
    """Records are not read from a batch whose end is not there."""
    content = encode_batch(plain_records(0, 2))
    header = replace(read_header(content), size_bytes=len(content) + 1)

    with pytest.raises(EndOfBuffer):
        read_records(content, header)


def test_a_record_count_of_millions_allocates_nothing() -> None:
    """A huge count over an empty payload ends at once: the loop is bounded by the bytes."""
    content = encode_batch([], base_offset=0, record_count=2**31 - 1, payload=b"")

    with pytest.raises(LogFormatError):
        list(read_records(content, read_header(content)))


def test_header_names_that_are_not_utf8_survive() -> None:
    """A header name is bytes to a broker; what is not UTF-8 is kept, not refused."""
    body = b"\0\0\0\1\1" + varint(1) + varint(1) + b"\xff" + varint(-1)
    content = encode_batch(plain_records(0, 1), payload=varint(len(body)) + body)

    [record] = read_records(content, read_header(content))

    assert record.headers == (("\udcff", None),)


def test_uvarint_and_varint_of_the_encoder_agree_with_known_bytes() -> None:
    """The test encoder itself is right on the vectors that protobuf publishes."""
    assert uvarint(300) == b"\xac\x02"
    assert [varint(n) for n in (0, -1, 1, -2)] == [b"\0", b"\1", b"\2", b"\3"]
