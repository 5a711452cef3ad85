"""The lines of `seawall log dump` for people: of a record, and of the records of many batches at once.

A segment holds a million records. Where nothing but their offsets, times and sizes is asked for, they are
read and written side by side, which takes a fifth of the time; the lines are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

import numpy as np

from tiering.log.record_columns import RecordColumns, read_record_columns
from tiering.log.windows import Window

VALUE_SHOWN_BYTES = 80
Row = dict[str, Any]
_CALENDAR_END_MS = 253_402_300_800_000  # the first of January 10000


def record_line(row: Row) -> str:
    """One record."""
    line = f"    {row['offset']}  {time_text(row['timestamp_ms'])}"
    if "control" in row:
        return f"{line}  {_short(json.dumps(row['control']))}"
    for name in ("key", "value"):
        shown = row.get(name, row.get(f"{name}_hex"))
        line += f"  {name} {_size(row[f'{name}_bytes'])}"
        if shown is not None:
            line += f" {_short(repr(shown))}"
    if row.get("headers"):
        line += f"  headers {_short(json.dumps(row['headers']))}"
    if "message" in row:
        line += f"  {json.dumps(row['message'])}"
    return line


def time_text(timestamp_ms: int) -> str:
    """A time for people; a number where it is none (-1, or far beyond the calendar)."""
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1000, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if timestamp_ms >= 0 else "no time"


def _size(size_bytes: int | None) -> str:
    return "null" if size_bytes is None else f"{size_bytes} bytes"


def _short(text: str) -> str:
    return text if len(text) <= VALUE_SHOWN_BYTES else text[: VALUE_SHOWN_BYTES - 1] + "…"


class WindowLines:
    """The records' lines of each batch of a window, made when the first is asked for."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._lines: list[list[str] | None] | None = None

    def of(self, index: int) -> list[str] | None:
        """Those of one batch; None where its records must be read one by one, to say what is wrong."""
        if self._lines is None:
            groups = read_record_columns(self._window.buffer, self._window.bounds)
            self._lines = [lines for columns in groups for lines in _lines_of(columns)]
        return self._lines[index]


class _Sizes(dict[int, str]):
    """The text of each size; few differ."""

    def __missing__(self, size_bytes: int) -> str:
        self[size_bytes] = text = _size(None if size_bytes < 0 else size_bytes)
        return text


def _lines_of(columns: RecordColumns) -> Iterator[list[str] | None]:
    sizes = _Sizes()
    listed = [
        f"    {offset}  {time}  key {sizes[key]}  value {sizes[value]}"
        for offset, time, key, value in zip(
            columns.offset.tolist(),
            _times(columns),
            columns.key_bytes.tolist(),
            columns.value_bytes.tolist(),
            strict=True,
        )
    ]
    for (begin, end), is_sound in zip(
        pairwise(columns.starts.tolist()), columns.is_sound.tolist(), strict=True
    ):
        yield listed[begin:end] if is_sound else None


def _times(columns: RecordColumns) -> list[str]:
    times = columns.timestamp_ms
    if len(times) and times.min() >= 0 and times.max() < _CALENDAR_END_MS:
        texts: list[str] = np.datetime_as_string(times.astype("datetime64[ms]"), timezone="UTC").tolist()
        return texts
    return [time_text(timestamp_ms) for timestamp_ms in times.tolist()]
