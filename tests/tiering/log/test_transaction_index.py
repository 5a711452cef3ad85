"""The transaction index: Kafka's own files, the range search, and each way to be wrong."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.log.kafka_json import vectors
from tiering.log.errors import (
    EntryBeyondLog,
    EntryOutOfOrder,
    LogFormatError,
    Malformed,
    PartialEntry,
    UnsupportedVersion,
)
from tiering.log.transaction_index import (
    AbortedTransaction,
    read_transaction_index,
    transaction_index_defects,
)

BASE = 1000


def entry(first: int, last: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, 4000, first, last, last + 1)


@pytest.mark.parametrize(
    "file",
    [file for file in vectors("files", "files") if file["kind"] == "transaction_index"],
    ids=lambda file: str(file["base_offset"]),
)
def test_kafkas_transaction_index_is_read(file: dict[str, Any]) -> None:
    """The same aborted transactions as Kafka's, also one that starts in an earlier segment."""
    index = read_transaction_index(bytes.fromhex(file["closed_hex"]), base_offset=file["base_offset"])

    assert [list(aborted) for aborted in index.transactions] == file["entries"]


@given(
    st.lists(st.integers(0, 10_000), unique=True).map(sorted),
    st.integers(0, 500),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
)
def test_a_range_finds_each_transaction_that_touches_it(
    lasts: list[int], length: int, start: int, size: int
) -> None:
    """No transaction with a record in the range is missed, and none without is given."""
    transactions = [AbortedTransaction(4000, max(0, last - length), last, last + 1) for last in lasts]
    raw = b"".join(struct.pack(">hqqqq", 0, *aborted) for aborted in transactions)

    index = read_transaction_index(raw, base_offset=0)

    assert list(index.transactions) == transactions
    wanted = range(start, start + size)
    touching = [
        aborted
        for aborted in transactions
        if max(aborted.first_offset, wanted.start) < min(aborted.last_offset + 1, wanted.stop)
    ]
    assert [a for a in index.overlapping(wanted.start, wanted.stop) if wanted] == touching


DEFECTS = [
    (entry(1000, 1005) + b"\x00" * 33, PartialEntry, 34),
    (entry(1000, 1005, version=1), UnsupportedVersion, 0),
    (entry(1000, 1005) + entry(1001, 1005), EntryOutOfOrder, 34),
    (entry(900, 999), EntryOutOfOrder, 0),
    (entry(1006, 1005), Malformed, 0),
    (entry(-1, 1005), Malformed, 0),
    (entry(1000, 1005) + entry(1000, 1100), EntryBeyondLog, 34),
]


@pytest.mark.parametrize(("raw", "kind", "position"), DEFECTS)
def test_each_defect_has_its_type_and_place(raw: bytes, kind: type[LogFormatError], position: int) -> None:
    """One thing wrong is one defect: of its own type, at the byte of the entry."""
    found = list(transaction_index_defects(raw, base_offset=BASE, end_offset=1100))

    assert [(type(defect), defect.position) for defect in found] == [(kind, position)]


@pytest.mark.parametrize(("raw", "kind"), [case[:2] for case in DEFECTS if case[1] is not EntryBeyondLog])
def test_a_defective_index_is_never_returned(raw: bytes, kind: type[LogFormatError]) -> None:
    """An aborted transaction that was lost or made up would show or hide records: it is raised."""
    with pytest.raises(kind):
        read_transaction_index(raw, base_offset=BASE)


def test_checking_goes_on_after_a_defect() -> None:
    """Each wrong entry is reported, and the right ones between them are still held against each other."""
    raw = entry(1, 1005, version=9) + entry(1000, 1010) + entry(1000, 1008) + entry(1000, 1020)

    found = list(transaction_index_defects(raw, base_offset=BASE))

    assert [(type(defect), defect.position) for defect in found] == [
        (UnsupportedVersion, 0),
        (EntryOutOfOrder, 68),
    ]
