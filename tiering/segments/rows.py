"""A table's segments as columns: one row of ROW a segment, in one array that grows in place.

    log              which of the table's logs                          int32
    base             base offset                                        int64
    end              the next segment's base                            int64
    covered_end      up to where all offsets are in the bytes           int64
    max_timestamp    of the records, in ms                              int64
    offset           of the record in the metadata topic                int64
    size             of the .log, in bytes                              int64
    leader_epoch     of whoever wrote the record                        int32
    first_epoch      of the segment's first record                      int32
    generation       of the copy                                        int32
    state            SegmentState, as its place in STATES               uint8
    standing         Standing: whether the record is followed           uint8
    flags            Flag bits                                          uint8
    chunk, start, length   where the record's value is (`values`)       3 x uint32
    digest           SHA-256 of key and value last stored; 0: none      32 bytes

A thousand objects would take fifty times as much, and a garbage collector would walk them.

Owns the array and the keys of its rows. Refuses to judge what is put in.

Invariant: a row's number is its own for as long as its key is in the table; then it is used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

from tiering.segments.seal import STATES as STATES

ROW = np.dtype(
    [
        ("base", "<i8"),
        ("end", "<i8"),
        ("covered_end", "<i8"),
        ("max_timestamp", "<i8"),
        ("offset", "<i8"),
        ("size", "<i8"),
        ("log", "<i4"),
        ("leader_epoch", "<i4"),
        ("first_epoch", "<i4"),
        ("generation", "<i4"),
        ("chunk", "<u4"),
        ("start", "<u4"),
        ("length", "<u4"),
        ("state", "u1"),
        ("standing", "u1"),
        ("flags", "u1"),
        ("unused", "u1"),
        ("digest", "u1", (32,)),
    ]
)
DIGEST_BYTES = 32
FREE = -1  # the `log` of a row without a segment
STATE_CODES = {state: code for code, state in enumerate(STATES)}
GROWTH = 8  # an eighth more at a time: the array is moved by the kernel, not copied

Rows = npt.NDArray[Any]


class Standing(IntEnum):
    """What a table makes of the record that a row holds."""

    FOLLOWED = 0
    FENCED = 1  # a copy by a leader of an epoch below a claim before it
    REFUSED = 2  # nothing legal was ever said of this segment
    UNREADABLE = 3  # nothing readable was


class Flag(IntFlag):
    """What else is known of a row."""

    MANY_EPOCHS = 1  # they stand in `RowStore.epochs`
    SHADOWED = 2  # the key's last record is not the one that is followed: compaction will keep the wrong one
    UNREADABLE = 4  # the key's last record cannot be read: the segment may have moved on
    UNDIGESTED = 8  # its digest is not made yet, and in no sum: `TableState.make_digests`. In no snapshot


class RowStore:
    """The rows, their keys, and the epochs of the few segments that have many."""

    def __init__(self, capacity: int = 64) -> None:
        self._rows: Rows = np.zeros(capacity, ROW)
        self._used = 0
        self._free: list[int] = []
        self.keys: list[bytes | None] = []
        self.index: dict[bytes, int] = {}
        self.epochs: dict[int, bytes] = {}

    @classmethod
    def restored(cls, rows: Rows, keys: list[bytes | None], epochs: dict[int, bytes]) -> RowStore:
        """A store with these rows; one without a key is free."""
        assert rows.flags.owndata, "it grows in place"
        store = cls(0)
        store._rows, store._used = rows, len(rows)
        store.keys, store.epochs = keys, epochs
        store.index = {key: row for row, key in enumerate(keys) if key is not None}
        store._free = [row for row, key in enumerate(keys) if key is None]
        return store

    def __len__(self) -> int:
        return len(self.index)

    @property
    def rows(self) -> Rows:
        """All rows, free ones included. Valid until the next `new`."""
        return self._rows[: self._used]

    @property
    def size_bytes(self) -> int:
        return self._rows.nbytes

    def new(self, key: bytes) -> int:
        """A row for a key that has none."""
        if self._free:
            number = self._free.pop()
            self.keys[number] = key
        else:
            number = self.extend([key])
        self.index[key] = number
        return number

    def extend(self, keys: Sequence[bytes]) -> int:
        """Rows at the end for new keys; the first one's number. The index is the caller's to fill."""
        first = self._used
        self._used += len(keys)
        if self._used > len(self._rows):
            capacity = max(self._used, len(self._rows) + len(self._rows) // GROWTH)
            self._rows.resize(capacity, refcheck=False)
        self.keys += keys
        return first

    def forget(self, number: int) -> None:
        key = self.keys[number]
        assert key is not None
        del self.index[key]
        self.keys[number] = None
        self.epochs.pop(number, None)
        self._rows[number] = np.zeros((), ROW)
        self._rows[number]["log"] = FREE
        self._free.append(number)
