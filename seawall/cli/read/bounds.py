"""The ends of a range as a user writes them: an offset, or a time that stands for one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

_OFFSET = re.compile(r"\d{1,18}")
_EPOCH_MS = re.compile(r"@(\d{1,15})")
_MILLISECOND = timedelta(milliseconds=1)
ALLOWED = (
    "an offset (1500), a time in ISO 8601 (2026-11-18T09:30:00Z; UTC if it says no zone), "
    "or milliseconds since 1970 behind an @ (@1763458200000)"
)


@dataclass(frozen=True, slots=True)
class AtOffset:
    """This offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record of this time or later, control records not counted."""

    timestamp_ms: int


Bound: TypeAlias = AtOffset | AtTime


def parse_bound(text: str) -> Bound:
    """Raises ValueError with what is allowed. A bare number is an offset: some are as large as times."""
    if _OFFSET.fullmatch(text):
        return AtOffset(int(text))
    if found := _EPOCH_MS.fullmatch(text):
        return AtTime(int(found[1]))
    try:
        # Python 3.10 does not know the Z.
        at = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        raise ValueError(f"{text!r} is not {ALLOWED}") from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)
    return AtTime((at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // _MILLISECOND)


def spoken(timestamp_ms: int) -> str:
    """A time for people; empty where there is none (-1), a number where the calendar ends."""
    if timestamp_ms == -1:
        return ""
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1000, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
