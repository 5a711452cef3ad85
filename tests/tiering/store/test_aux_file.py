"""The `.aux` container: read back equal, readable by range, and no damage of it goes unnoticed."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.log.fuzz import SEED, check_memory, check_reader, mutation
from tiering.log.checkpoints import EpochStart
from tiering.log.crc import crc32c
from tiering.log.errors import ChecksumMismatch, EndOfBuffer, LogFormatError, Malformed, TooLarge
from tiering.log.transaction_index import AbortedTransaction
from tiering.store.aux_file import (
    HEADER_BYTES_MAX,
    SIZE_BYTES_MAX,
    AuxContents,
    SectionKind,
    encode_aux,
    fetch_section,
    read_aux,
    read_aux_header,
)

BASE, END = 1000, 2000
FULL = AuxContents(
    base_offset=BASE,
    end_offset=END,
    offset_index=bytes(range(80)),
    time_index=b"\1" * 120,
    transaction_index=b"\2" * 34,
    producer_snapshot=b"\0\1snapshot",
    leader_epochs=(EpochStart(0, 0), EpochStart(3, 400), EpochStart(4, 1500)),
    aborted=(AbortedTransaction(7, 900, 1100, 1100), AbortedTransaction(8, 1900, 2500, 2600)),
)
BARE = AuxContents(
    base_offset=0,
    end_offset=0,
    offset_index=None,
    time_index=None,
    transaction_index=None,
    producer_snapshot=None,
    leader_epochs=(),
    aborted=(),
)
SAMPLES = [encode_aux(FULL), encode_aux(BARE), encode_aux(replace(FULL, offset_index=b"", time_index=None))]

files = st.none() | st.binary(max_size=300)
offsets = st.integers(0, 2**63 - 1)


@st.composite
def contents(draw: st.DrawFn) -> AuxContents:
    base, end = sorted(draw(st.tuples(offsets, offsets)))
    epochs = zip(
        sorted(draw(st.sets(st.integers(0, 2**31 - 1), max_size=8))),
        sorted(draw(st.sets(offsets, min_size=8, max_size=8))),
        strict=False,
    )
    markers = sorted(draw(st.sets(st.integers(base, 2**63 - 1), max_size=8)))
    aborted = [
        AbortedTransaction(draw(offsets), draw(st.integers(0, min(marker, end - 1))), marker, draw(offsets))
        for marker in markers
        if end > 0
    ]
    return AuxContents(
        base_offset=base,
        end_offset=end,
        offset_index=draw(files),
        time_index=draw(files),
        transaction_index=draw(files),
        producer_snapshot=draw(files),
        leader_epochs=tuple(EpochStart(*entry) for entry in epochs),
        aborted=tuple(aborted),
    )


def mend(blob: bytes) -> bytes:
    """The header's CRC put right, so that what is wrong is found by what it says."""
    if len(blob) < 24:
        return blob
    crc_at = 24 + 24 * int.from_bytes(blob[6:8], "big")
    if len(blob) < crc_at + 4:
        return blob
    return blob[:crc_at] + crc32c(blob[:crc_at]).to_bytes(4, "big") + blob[crc_at + 4 :]


@given(written=contents())
def test_what_is_written_is_read_back(written: AuxContents) -> None:
    """Every section, absent or empty or full, and every epoch and transaction."""
    assert read_aux(encode_aux(written)) == written


def test_the_bytes_are_those_of_the_table() -> None:
    """Written by hand from docs/FORMATS.md: the format is what that page says, not what the code does."""
    head = b"SWAX" + struct.pack(">HHqq", 1, 2, 0, 0)
    table = struct.pack(">HHIqq", 5, 0, 0, 76, 0) + struct.pack(">HHIqq", 6, 0, 0, 76, 0)

    assert encode_aux(BARE) == head + table + struct.pack(">I", crc32c(head + table))


def test_a_file_that_was_not_there_is_not_an_empty_one() -> None:
    """A lost transaction index and one that never was can be told apart later."""
    absent = read_aux(encode_aux(replace(FULL, transaction_index=None)))
    empty = read_aux(encode_aux(replace(FULL, transaction_index=b"")))

    assert (absent.transaction_index, empty.transaction_index) == (None, b"")


def test_one_section_is_read_by_two_ranges() -> None:
    """The table first, then the section alone: nothing else of the object is asked for."""
    blob = encode_aux(replace(FULL, time_index=b"\1" * 100_000))
    asked: list[tuple[int, int]] = []

    def read_range(start: int, end: int) -> bytes:
        asked.append((start, end))
        return blob[start:end]

    found = fetch_section(read_range, len(blob), SectionKind.PRODUCER_SNAPSHOT)

    assert found == FULL.producer_snapshot
    assert len(asked) == 2
    assert sum(end - start for start, end in asked) < HEADER_BYTES_MAX + 100


def test_a_section_that_is_not_there_is_none() -> None:
    """By range as in whole."""
    blob = encode_aux(BARE)

    assert fetch_section(lambda start, end: blob[start:end], len(blob), SectionKind.TIME_INDEX) is None
    assert fetch_section(lambda start, end: blob[start:end], len(blob), SectionKind.ABORTED) == b""


def test_a_newer_writers_section_is_passed_over() -> None:
    """A kind that nobody here knows does not hide those that are known."""
    blob = encode_aux(BARE)
    head = blob[:6] + (3).to_bytes(2, "big") + blob[8:24]
    table = struct.pack(">HHIqq", 5, 0, 0, 100, 0) + struct.pack(">HHIqq", 6, 0, 0, 100, 0)
    table += struct.pack(">HHIqq", 99, 0, crc32c(b"new"), 100, 3)
    newer = head + table + struct.pack(">I", crc32c(head + table)) + b"new"

    assert read_aux(newer) == BARE
    assert [section.kind for section in read_aux_header(newer).sections] == [5, 6, 99]


@pytest.mark.parametrize("blob", SAMPLES)
def test_every_flipped_bit_is_noticed(blob: bytes) -> None:
    """Whichever of all bits of a file: reading it whole is an error."""
    for at in range(len(blob)):
        for bit in range(8):
            broken = bytearray(blob)
            broken[at] ^= 1 << bit
            with pytest.raises(LogFormatError):
                read_aux(bytes(broken))


@pytest.mark.parametrize("blob", SAMPLES)
def test_every_cut_and_every_addition_is_noticed(blob: bytes) -> None:
    """A file is exactly what its table says."""
    for size_bytes in range(len(blob)):
        with pytest.raises(EndOfBuffer):
            read_aux(blob[:size_bytes])
    with pytest.raises(Malformed, match="follow the last section"):
        read_aux(blob + b"\0")


def test_mutations_are_read_or_refused() -> None:
    """Damage of any kind comes to a typed error, with the header's CRC right as well as wrong."""
    raw = check_reader(read_aux, SAMPLES, count=3000)
    mended = check_reader(read_aux, SAMPLES, count=3000, mend=mend)
    headers = check_reader(read_aux_header, SAMPLES, count=3000, mend=mend)

    assert min(raw.refused, mended.refused, headers.refused) > 1000


def test_what_is_read_of_a_mutation_is_what_was_written() -> None:
    """No damage turns one file's contents into others': what reads without an error is a sample's."""
    originals = [read_aux(sample) for sample in SAMPLES]

    for number in range(3000):
        try:
            found = read_aux(mutation(SAMPLES, SEED, number).blob)
        except LogFormatError:
            continue
        assert found in originals


def test_memory_follows_the_bytes_and_not_their_claims() -> None:
    """Counts and sizes in a damaged table allocate nothing."""
    check_memory(read_aux, SAMPLES, count=1000, bytes_per_byte=40, mend=mend)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(FULL, leader_epochs=(EpochStart(1, 5), EpochStart(1, 6))),
        replace(FULL, leader_epochs=(EpochStart(1, 5), EpochStart(2, 5))),
        replace(FULL, leader_epochs=(EpochStart(-1, 0),)),
        replace(FULL, aborted=(AbortedTransaction(1, 10, 20, 30),)),  # ended before the segment
        replace(FULL, aborted=(AbortedTransaction(1, END, END + 1, 0),)),  # begins after it
        replace(FULL, aborted=FULL.aborted[::-1]),
        replace(FULL, base_offset=END + 1),
        replace(FULL, base_offset=-1),
    ],
)
def test_what_makes_no_sense_is_not_written(wrong: AuxContents) -> None:
    """Epochs that do not rise, transactions that are not the segment's, offsets that are none."""
    with pytest.raises(LogFormatError):
        encode_aux(wrong)


def test_a_table_that_claims_too_much_is_refused() -> None:
    """A size past the limit is refused from the table alone, before anything is read."""
    blob = bytearray(encode_aux(BARE))
    blob[24 + 24 + 16 : 24 + 24 + 24] = (SIZE_BYTES_MAX + 1).to_bytes(8, "big")

    with pytest.raises(TooLarge):
        read_aux_header(mend(bytes(blob)))


def test_an_error_says_which_section() -> None:
    """Its kind and where it stands."""
    blob = bytearray(encode_aux(FULL))
    blob[-1] ^= 1

    with pytest.raises(ChecksumMismatch, match="aux file, section 6"):
        read_aux(bytes(blob))
