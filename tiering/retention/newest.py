"""Of a segment on disk, the time by which the broker's retention goes: its newest record's.

The last entry of the time index, as the broker itself has it when it loads a log; the file's own time where
there is no entry. A closed segment's index ends in its newest record; an active one's is behind its log by
index.interval.bytes at most, and is filled up with zeros, in which the last entry is found by halving.

Owns this reading. Refuses to scan records: a host has terabytes of them.

Invariant: None only for a segment that is gone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from tiering.log.directory import FileKind, Segment
from tiering.log.index import TIME_ENTRY

_ENTRY_BYTES = TIME_ENTRY.itemsize


def newest_ms(segment: Segment) -> int | None:
    indexed = _last_entry_ms(segment.side_file(FileKind.TIME_INDEX))
    if indexed is not None:
        return indexed
    try:
        return segment.path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def _last_entry_ms(path: Path) -> int | None:
    try:
        with path.open("rb") as index:
            count = os.fstat(index.fileno()).st_size // _ENTRY_BYTES
            first, last = 0, count  # entries below `first` are none of the zeros, those from `last` on are
            while first < last:
                middle = (first + last) // 2
                if _timestamp_ms(index, middle) > 0:
                    first = middle + 1
                else:
                    last = middle
            return _timestamp_ms(index, first - 1) if first else None
    except OSError:
        return None


def _timestamp_ms(index: BinaryIO, entry: int) -> int:
    found = os.pread(index.fileno(), 8, entry * _ENTRY_BYTES)
    return int.from_bytes(found, "big", signed=True)
