"""Moments as people write them: a day or a minute, in UTC, and milliseconds since 1970 for everything else.

Owns the two forms. Refuses a moment without its zone, and asks no clock.
"""

from __future__ import annotations

from datetime import datetime, timezone

FORMS = ("%Y-%m-%d", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%SZ")
SPOKEN = "a day such as 2026-12-31 or a time such as 2026-12-31T06:00Z, in UTC"


def read_moment(text: str) -> int:
    """ValueError, in words that fit after "must be"."""
    for form in FORMS:
        try:
            at = datetime.strptime(text, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
        return int(at.timestamp() * 1000)
    raise ValueError(SPOKEN)


def write_moment(at_ms: int) -> str:
    """To the minute where it is one, else to the second."""
    at = datetime.fromtimestamp(at_ms // 1000, tz=timezone.utc)
    return f"{at:%Y-%m-%dT%H:%MZ}" if at.second == 0 else f"{at:%Y-%m-%dT%H:%M:%SZ}"
