"""Which Kafka a broker is, as far as it can be told.

No answer of a broker names its release. The newest `metadata.version` that it knows does (KIP-778): each
release since 3.0 brought a level, and a broker knows those up to its own. Levels that are newer than this
table are said to be newer.

Owns the table: org.apache.kafka.server.common.MetadataVersion of Kafka 4.3.1.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

OLDEST_FOR_US = (3, 9)  # DESIGN: the record and file formats that are read here were held against 3.9 and 4.3

# The first level of each release.
_RELEASES = (
    (1, (3, 0)),
    (2, (3, 1)),
    (3, (3, 2)),
    (4, (3, 3)),
    (8, (3, 4)),
    (9, (3, 5)),
    (12, (3, 6)),
    (15, (3, 7)),
    (20, (3, 8)),
    (21, (3, 9)),
    (22, (4, 0)),
    (26, (4, 1)),
    (28, (4, 2)),
    (30, (4, 3)),
    (31, (4, 4)),
)
_NEWEST_LEVEL = 31


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Kafka, without its patch level. `is_newer`: that one, or one after it."""

    number: tuple[int, int]
    is_newer: bool = False

    def __str__(self) -> str:
        major, minor = self.number
        return f"{major}.{minor}{' or newer' if self.is_newer else ''}"


def release_of(level: int) -> Release | None:
    """The release that a level of metadata.version came with; None below the first."""
    at = bisect_right(_RELEASES, level, key=lambda row: row[0])
    if at == 0:
        return None
    return Release(_RELEASES[at - 1][1], level > _NEWEST_LEVEL)
