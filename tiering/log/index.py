"""The offset index and the time index of a segment: sparse, sorted, searched by halving.

    offset index entry                          time index entry
    at  0  relative_offset  int32               at  0  timestamp_ms     int64
    at  4  position         int32               at  8  relative_offset  int32
    8 bytes                                     12 bytes

`relative_offset` counts from the base offset, which stands in the file's name. An offset entry says: read on
from this byte of the `.log`, where a batch starts, to come to this offset. A time entry says: no record up to
this offset is later than this time. Neither file carries a checksum.

The active segment's files are allocated at full size (10 MiB as a rule) and zero behind the last entry;
rolling the segment cuts the zeros off, a crash leaves them. That tail is counted, never read as entries.
An all-zero entry is no entry: Kafka never indexes the first batch, so offset entries start above zero; a
time entry can be all zero only as the first, where records carry timestamp 0.

Refuses: to judge an index against its segment's records (the caller knows where the log ends), to mend.

Invariant: what `read_...` returns is sorted, so that `lookup` is right; anything else is raised. The arrays
are copies: no view keeps a file mapped. `..._defects` yields at most one error of each kind, with a count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiering.log.errors import EntriesErased, EntryBeyondLog, EntryOutOfOrder, LogFormatError, PartialEntry
from tiering.log.wire import Buffer

if TYPE_CHECKING:  # numpy.typing takes as long to import as numpy
    from numpy.typing import NDArray

OFFSET_INDEX = "offset index"
TIME_INDEX = "time index"
OFFSET_ENTRY = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
TIME_ENTRY = np.dtype([("timestamp_ms", ">i8"), ("relative_offset", ">i4")])
NO_TIMESTAMP_MS = -1


class OffsetPosition(NamedTuple):
    """Reading on from byte `position` of the segment comes to `offset`."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """No record up to `offset` is later than `timestamp_ms`."""

    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffsetIndex:
    """The entries of an offset index, and how many pre-allocated bytes follow them."""

    base_offset: int
    relative_offsets: NDArray[np.int32]
    positions: NDArray[np.int32]
    tail_bytes: int

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, entry: int) -> OffsetPosition:
        return OffsetPosition(
            self.base_offset + int(self.relative_offsets[entry]), int(self.positions[entry])
        )

    def __iter__(self) -> Iterator[OffsetPosition]:
        return (self[entry] for entry in range(len(self)))

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or below `offset`: read the segment from there on. Before it, the start."""
        entry = bisect_right(self.relative_offsets, offset - self.base_offset) - 1
        return self[entry] if entry >= 0 else OffsetPosition(self.base_offset, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeIndex:
    """The entries of a time index, and how many pre-allocated bytes follow them."""

    base_offset: int
    timestamps_ms: NDArray[np.int64]
    relative_offsets: NDArray[np.int32]
    tail_bytes: int

    def __len__(self) -> int:
        return len(self.timestamps_ms)

    def __getitem__(self, entry: int) -> TimestampOffset:
        return TimestampOffset(
            int(self.timestamps_ms[entry]), self.base_offset + int(self.relative_offsets[entry])
        )

    def __iter__(self) -> Iterator[TimestampOffset]:
        return (self[entry] for entry in range(len(self)))

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """The last entry at or before `timestamp_ms`: no record up to its offset is later."""
        entry = bisect_right(self.timestamps_ms, timestamp_ms) - 1
        return self[entry] if entry >= 0 else TimestampOffset(NO_TIMESTAMP_MS, self.base_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One sorted column of an index: its values, and what its values are relative to."""

    name: str
    field: str
    base: int = 0
    may_repeat: bool = False
    end: int | None = None  # where the log ends in this column's terms; None: not asked


class _Entries:
    """The raw entries of an index file, apart from its tail."""

    def __init__(self, buffer: Buffer, dtype: np.dtype[Any], what: str) -> None:
        self.what = what
        self.entry_bytes = dtype.itemsize
        self.size_bytes = len(buffer)
        every = np.frombuffer(buffer, dtype=dtype, count=len(buffer) // dtype.itemsize)
        is_set = np.zeros(len(every), dtype=bool)
        for field in dtype.names or ():
            is_set |= every[field] != 0
        if what == TIME_INDEX and len(every) and (len(every) == 1 or is_set[1:].any()):
            is_set[0] = True  # a real (timestamp 0, base offset); before nothing but zeros it is the tail
        self.set_at = np.flatnonzero(is_set)
        self.count = int(self.set_at[-1]) + 1 if len(self.set_at) else 0
        self.rows = every[: self.count].copy()

    @property
    def tail_bytes(self) -> int:
        return self.size_bytes - self.count * self.entry_bytes

    def column(self, field: str) -> NDArray[Any]:
        """A copy of one field, in this machine's byte order."""
        values: NDArray[Any] = self.rows[field]
        return values.astype(values.dtype.newbyteorder("="))

    def defects(self, columns: tuple[_Column, ...]) -> Iterator[LogFormatError]:
        if left_bytes := self.size_bytes % self.entry_bytes:
            yield PartialEntry(
                position=self.size_bytes - left_bytes,
                what=self.what,
                size_bytes=self.size_bytes,
                entry_bytes=self.entry_bytes,
                left_bytes=left_bytes,
            )
        if len(self.set_at) < self.count:
            erased = int(np.flatnonzero(self.set_at != np.arange(len(self.set_at)))[0])
            yield EntriesErased(
                position=erased * self.entry_bytes,
                what=self.what,
                entry=erased,
                count=len(self.set_at) - erased,
            )
        for column in columns:
            yield from self._disorder(column)
            yield from self._beyond(column)

    def _disorder(self, column: _Column) -> Iterator[LogFormatError]:
        values = self.rows[column.field][self.set_at].astype(np.int64)
        # Nothing in these files is negative; -1 before the first entry makes that part of the order.
        before = np.concatenate((np.array([-1], dtype=np.int64), values[:-1]))
        wrong = np.flatnonzero((values < before) | (values < 0) if column.may_repeat else values <= before)
        if len(wrong):
            first = int(wrong[0])
            entry = int(self.set_at[first])
            yield EntryOutOfOrder(
                position=entry * self.entry_bytes,
                what=self.what,
                entry=entry,
                field=column.name,
                value=column.base + int(values[first]),
                previous=column.base + int(before[first]),
                count=len(wrong),
            )

    def _beyond(self, column: _Column) -> Iterator[LogFormatError]:
        if column.end is None:
            return
        values = self.rows[column.field][self.set_at].astype(np.int64)
        wrong = np.flatnonzero(values >= column.end - column.base)
        if len(wrong):
            entry = int(self.set_at[int(wrong[0])])
            yield EntryBeyondLog(
                position=entry * self.entry_bytes,
                what=self.what,
                entry=entry,
                field=column.name,
                value=column.base + int(values[int(wrong[0])]),
                end=column.end,
                count=len(wrong),
            )


def _offset_columns(
    base_offset: int, end_offset: int | None, end_position: int | None
) -> tuple[_Column, ...]:
    return (
        _Column(name="offset", field="relative_offset", base=base_offset, end=end_offset),
        _Column(name="position", field="position", end=end_position),
    )


def _time_columns(base_offset: int, end_offset: int | None) -> tuple[_Column, ...]:
    return (
        _Column(name="timestamp_ms", field="timestamp_ms"),
        # Kafka refuses a lower offset here, not the same one again.
        _Column(name="offset", field="relative_offset", base=base_offset, end=end_offset, may_repeat=True),
    )


def read_offset_index(buffer: Buffer, *, base_offset: int) -> OffsetIndex:
    """The offset index of the segment that starts at `base_offset`; its first defect is raised."""
    entries = _Entries(buffer, OFFSET_ENTRY, OFFSET_INDEX)
    for defect in entries.defects(_offset_columns(base_offset, None, None)):
        raise defect
    return OffsetIndex(
        base_offset=base_offset,
        relative_offsets=entries.column("relative_offset"),
        positions=entries.column("position"),
        tail_bytes=entries.tail_bytes,
    )


def read_time_index(buffer: Buffer, *, base_offset: int) -> TimeIndex:
    """The time index of the segment that starts at `base_offset`; its first defect is raised."""
    entries = _Entries(buffer, TIME_ENTRY, TIME_INDEX)
    for defect in entries.defects(_time_columns(base_offset, None)):
        raise defect
    return TimeIndex(
        base_offset=base_offset,
        timestamps_ms=entries.column("timestamp_ms"),
        relative_offsets=entries.column("relative_offset"),
        tail_bytes=entries.tail_bytes,
    )


def offset_index_defects(
    buffer: Buffer, *, base_offset: int, end_offset: int | None = None, log_size_bytes: int | None = None
) -> Iterator[LogFormatError]:
    """What is wrong with an offset index, against the end of its segment where that is given."""
    entries = _Entries(buffer, OFFSET_ENTRY, OFFSET_INDEX)
    yield from entries.defects(_offset_columns(base_offset, end_offset, log_size_bytes))


def time_index_defects(
    buffer: Buffer, *, base_offset: int, end_offset: int | None = None
) -> Iterator[LogFormatError]:
    """What is wrong with a time index, against the end of its segment where that is given."""
    entries = _Entries(buffer, TIME_ENTRY, TIME_INDEX)
    yield from entries.defects(_time_columns(base_offset, end_offset))
