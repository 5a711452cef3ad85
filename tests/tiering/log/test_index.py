"""The offset and time indexes: Kafka's own files, the pre-allocated tail, and each way to be wrong."""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.log.kafka_json import vectors
from tiering.log.errors import (
    EntriesErased,
    EntryBeyondLog,
    EntryOutOfOrder,
    LogFormatError,
    PartialEntry,
)
from tiering.log.index import (
    offset_index_defects,
    read_offset_index,
    read_time_index,
    time_index_defects,
)

FILES = vectors("files", "files")
BASE = 1000


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [file for file in FILES if file["kind"] == kind]


def offset_bytes(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_bytes(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


@pytest.mark.parametrize("file", of_kind("offset_index"), ids=lambda file: str(file["base_offset"]))
@pytest.mark.parametrize("state", ["active_hex", "closed_hex"])
def test_kafkas_offset_index_is_read_open_and_closed(file: dict[str, Any], state: str) -> None:
    """The same entries and lookups as Kafka's, with or without the pre-allocated tail behind them."""
    raw = bytes.fromhex(file[state])

    index = read_offset_index(raw, base_offset=file["base_offset"])

    assert [list(entry) for entry in index] == file["entries"]
    assert index.tail_bytes == len(raw) - 8 * len(file["entries"])
    for target, offset, position in file["lookups"]:
        assert index.lookup(target) == (offset, position)


@pytest.mark.parametrize("file", of_kind("time_index"), ids=lambda file: str(file["base_offset"]))
@pytest.mark.parametrize("state", ["active_hex", "closed_hex"])
def test_kafkas_time_index_is_read_open_and_closed(file: dict[str, Any], state: str) -> None:
    """The same entries and lookups as Kafka's, also where the first entry is (0, base offset): all zero."""
    raw = bytes.fromhex(file[state])

    index = read_time_index(raw, base_offset=file["base_offset"])

    assert [list(entry) for entry in index] == file["entries"]
    assert index.tail_bytes == len(raw) - 12 * len(file["entries"])
    for target, timestamp_ms, offset in file["lookups"]:
        assert index.lookup(target) == (timestamp_ms, offset)


@given(
    st.lists(st.integers(1, 2**31 - 1), unique=True).map(sorted),
    st.integers(0, 9),
    st.integers(0, 2**62),
    st.integers(0, 2**63),
)
def test_a_lookup_finds_the_last_entry_at_or_below(
    relative: list[int], spare_entries: int, base: int, wanted: int
) -> None:
    """What is written comes back, and a lookup answers as a plain search over the entries does."""
    raw = offset_bytes(*((offset, offset) for offset in relative)) + bytes(8 * spare_entries)

    index = read_offset_index(raw, base_offset=base)

    absolute = [base + offset for offset in relative]
    found = bisect_right(absolute, wanted) - 1
    assert [entry.offset for entry in index] == absolute
    assert index.tail_bytes == 8 * spare_entries
    assert index.lookup(wanted) == ((absolute[found], relative[found]) if found >= 0 else (base, 0))


@given(
    st.lists(
        st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)), unique_by=lambda entry: entry[0]
    ),
    st.integers(-1, 2**63 - 1),
)
def test_a_time_lookup_finds_the_last_entry_at_or_before(entries: list[tuple[int, int]], wanted: int) -> None:
    """Rising timestamps with offsets that do not fall are read back, and searched as a plain search would."""
    timestamps = sorted(timestamp for timestamp, _ in entries)
    offsets = sorted(offset for _, offset in entries)
    rising = list(zip(timestamps, offsets, strict=True))

    index = read_time_index(time_bytes(*rising), base_offset=BASE)

    found = bisect_right(timestamps, wanted) - 1
    assert [(entry.timestamp_ms, entry.offset - BASE) for entry in index] == rising
    assert index.lookup(wanted) == ((timestamps[found], BASE + offsets[found]) if found >= 0 else (-1, BASE))


@pytest.mark.parametrize(("read", "size_bytes"), [(read_offset_index, 8), (read_time_index, 12)])
def test_a_fresh_index_has_no_entries(read: Callable[..., Any], size_bytes: int) -> None:
    """An empty file, and one that is all pre-allocated zeros, hold nothing: not ten megabytes of entries."""
    empty = read(b"", base_offset=BASE)
    fresh = read(bytes(size_bytes * 1000), base_offset=BASE)

    assert (len(empty), empty.tail_bytes) == (0, 0)
    assert (len(fresh), fresh.tail_bytes) == (0, size_bytes * 1000)


def test_a_single_zero_time_entry_is_an_entry() -> None:
    """A closed segment whose one record has timestamp 0 has a time index of twelve zero bytes."""
    index = read_time_index(bytes(12), base_offset=BASE)

    assert list(index) == [(0, BASE)]


ENDS = {"end_offset": BASE + 100, "log_size_bytes": 5000}
OFFSET_DEFECTS = [
    (offset_bytes((5, 100)) + b"\x00", PartialEntry, 8),
    (offset_bytes((5, 100)) + b"\x01" * 7, PartialEntry, 8),
    (offset_bytes((5, 100), (5, 200)), EntryOutOfOrder, 8),
    (offset_bytes((5, 100), (4, 200)), EntryOutOfOrder, 8),
    (offset_bytes((5, 100), (6, 100)), EntryOutOfOrder, 8),
    (offset_bytes((-5, 100)), EntryOutOfOrder, 0),
    (offset_bytes((5, -100)), EntryOutOfOrder, 0),
    (offset_bytes((5, 100), (0, 0), (7, 300)), EntriesErased, 8),
    (offset_bytes((0, 0), (7, 300)), EntriesErased, 0),
    (offset_bytes((5, 100), (100, 200)), EntryBeyondLog, 8),
    (offset_bytes((5, 100), (99, 5000)), EntryBeyondLog, 8),
]
TIME_DEFECTS = [
    (time_bytes((1, 5)) + b"\x00" * 11, PartialEntry, 12),
    (time_bytes((1, 5), (1, 6)), EntryOutOfOrder, 12),
    (time_bytes((2, 5), (1, 6)), EntryOutOfOrder, 12),
    (time_bytes((1, 5), (2, 4)), EntryOutOfOrder, 12),
    (time_bytes((-1, 5)), EntryOutOfOrder, 0),
    (time_bytes((1, -1)), EntryOutOfOrder, 0),
    (time_bytes((1, 5), (0, 0), (3, 7)), EntriesErased, 12),
    (time_bytes((1, 5), (2, 100)), EntryBeyondLog, 12),
]


@pytest.mark.parametrize(("raw", "kind", "position"), OFFSET_DEFECTS)
def test_each_defect_of_an_offset_index_has_its_type_and_place(
    raw: bytes, kind: type[LogFormatError], position: int
) -> None:
    """One thing wrong is one defect: of its own type, at the byte of the entry."""
    found = list(offset_index_defects(raw, base_offset=BASE, **ENDS))

    assert [(type(defect), defect.position) for defect in found] == [(kind, position)]


@pytest.mark.parametrize(("raw", "kind", "position"), TIME_DEFECTS)
def test_each_defect_of_a_time_index_has_its_type_and_place(
    raw: bytes, kind: type[LogFormatError], position: int
) -> None:
    """One thing wrong is one defect: of its own type, at the byte of the entry."""
    found = list(time_index_defects(raw, base_offset=BASE, end_offset=ENDS["end_offset"]))

    assert [(type(defect), defect.position) for defect in found] == [(kind, position)]


def strict_readings() -> Iterator[tuple[Callable[..., Any], bytes, type[LogFormatError]]]:
    for read, cases in ((read_offset_index, OFFSET_DEFECTS), (read_time_index, TIME_DEFECTS)):
        yield from ((read, raw, kind) for raw, kind, _ in cases if kind is not EntryBeyondLog)


@pytest.mark.parametrize(("read", "raw", "kind"), list(strict_readings()))
def test_an_index_that_a_lookup_could_misread_is_never_returned(
    read: Callable[..., Any], raw: bytes, kind: type[LogFormatError]
) -> None:
    """The strict readers raise the defect that the checking ones yield."""
    with pytest.raises(kind):
        read(raw, base_offset=BASE)


def test_many_of_a_kind_are_counted_not_repeated() -> None:
    """A wholly reversed index is one defect a column, with the number of entries that are out of order."""
    raw = offset_bytes(*((offset, 10_000 - offset) for offset in range(1000, 0, -1)))

    found = list(offset_index_defects(raw, base_offset=BASE))

    assert [(type(defect), vars(defect)["field"], vars(defect)["count"]) for defect in found] == [
        (EntryOutOfOrder, "offset", 999)
    ]


@given(st.binary(max_size=200), st.integers(0, 2**62))
def test_checking_never_raises(raw: bytes, base: int) -> None:
    """Whatever the bytes are, the checks yield typed errors, at most one a kind and column."""
    for defects in (
        list(offset_index_defects(raw, base_offset=base, end_offset=base + 9, log_size_bytes=99)),
        list(time_index_defects(raw, base_offset=base, end_offset=base + 9)),
    ):
        assert all(isinstance(defect, LogFormatError) for defect in defects)
        assert len(defects) <= 6


def test_a_mapped_index_can_be_closed(tmp_path: Path) -> None:
    """The entries are copies: the map they were read from can be closed, and the file deleted, at once."""
    path = tmp_path / "00000000000000001000.index"
    path.write_bytes(offset_bytes((5, 100), (9, 200)) + bytes(64))

    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        index = read_offset_index(mapped, base_offset=BASE)
        mapped.close()

    assert list(index) == [(BASE + 5, 100), (BASE + 9, 200)]
