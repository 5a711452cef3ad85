"""The transaction index of a segment: the aborted transactions whose abort marker stands in it.

    entry
    at  0  version             int16, 0
    at  2  producer_id         int64
    at 10  first_offset        int64   of the transaction's first record, maybe in an earlier segment
    at 18  last_offset         int64   of its abort marker, in this segment
    at 26  last_stable_offset  int64   of the partition, once this transaction was over
    34 bytes

The file is made at the first abort and appended to in the order of the markers. A reader of a range needs
the indexes of every later segment too, up to the last stable offset: an abort stands where its marker
stands, not where its records do.

Refuses: to look at the markers themselves.

Invariant: the entries of a TransactionIndex rise in `last_offset`, and none ends before it starts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tiering.log.errors import (
    EntryBeyondLog,
    EntryOutOfOrder,
    LogFormatError,
    Malformed,
    PartialEntry,
    UnsupportedVersion,
)
from tiering.log.wire import Buffer

TRANSACTION_INDEX = "transaction index"
VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """One aborted transaction: its records are those of its producer in `[first_offset, last_offset]`."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionIndex:
    """The aborted transactions of one segment, in the order of their markers."""

    base_offset: int
    transactions: tuple[AbortedTransaction, ...]

    def overlapping(self, start_offset: int, end_offset: int) -> tuple[AbortedTransaction, ...]:
        """Those that may have records in `[start_offset, end_offset)`."""
        return tuple(
            aborted
            for aborted in self.transactions
            if aborted.last_offset >= start_offset and aborted.first_offset < end_offset
        )


def read_transaction_index(buffer: Buffer, *, base_offset: int) -> TransactionIndex:
    """The transaction index of the segment that starts at `base_offset`; its first defect is raised."""
    transactions: list[AbortedTransaction] = []
    for found in _walk(buffer, base_offset, None):
        if isinstance(found, LogFormatError):
            raise found
        transactions.append(found)
    return TransactionIndex(base_offset=base_offset, transactions=tuple(transactions))


def transaction_index_defects(
    buffer: Buffer, *, base_offset: int, end_offset: int | None = None
) -> Iterator[LogFormatError]:
    """What is wrong with a transaction index, entry by entry, streamed."""
    return (found for found in _walk(buffer, base_offset, end_offset) if isinstance(found, LogFormatError))


def _walk(
    buffer: Buffer, base_offset: int, end_offset: int | None
) -> Iterator[AbortedTransaction | LogFormatError]:
    previous_last = base_offset - 1  # a marker of this segment is not before its first offset
    for entry in range(len(buffer) // ENTRY_BYTES):
        position = entry * ENTRY_BYTES
        version, *fields = _ENTRY.unpack_from(buffer, position)
        what = f"{TRANSACTION_INDEX}, entry {entry}"
        if version != VERSION:
            yield UnsupportedVersion(position=position, what=what, version=version, supported=str(VERSION))
            continue
        aborted = AbortedTransaction(*fields)
        if not 0 <= aborted.first_offset <= aborted.last_offset:
            why = f"spans from offset {aborted.first_offset} to {aborted.last_offset}"
            yield Malformed(position=position, what=what, why=why)
            continue
        if aborted.last_offset <= previous_last:
            yield EntryOutOfOrder(
                position=position,
                what=TRANSACTION_INDEX,
                entry=entry,
                field="last_offset",
                value=aborted.last_offset,
                previous=previous_last,
                count=1,
            )
            continue
        if end_offset is not None and aborted.last_offset >= end_offset:
            yield EntryBeyondLog(
                position=position,
                what=TRANSACTION_INDEX,
                entry=entry,
                field="last_offset",
                value=aborted.last_offset,
                end=end_offset,
                count=1,
            )
            continue
        previous_last = aborted.last_offset
        yield aborted
    if left_bytes := len(buffer) % ENTRY_BYTES:
        yield PartialEntry(
            position=len(buffer) - left_bytes,
            what=TRANSACTION_INDEX,
            size_bytes=len(buffer),
            entry_bytes=ENTRY_BYTES,
            left_bytes=left_bytes,
        )
