"""What the tables of evidence need from time to time, decided from what they are; no Spark.

    columns     those that a newer Seawall knows are added, never changed or removed
    properties  what was declared of a table and is not so any more is set again
    days        a closed day's many small files become few, in the order in which they are asked for
    files       what no version of the declared window names any more is removed
    log         a checkpoint, behind which Delta removes what its own declared window lets go

A day is closed when the commits' day is past it: nothing is added to it any more, so that its files are
rewritten once. That a day was done is seen from its files alone, so that no list can be stale.

Owns the decisions. Invariant: nothing here shortens a window, and no row is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# Few enough files to open, and enough of them that a question about one log opens a part.
FILE_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFiles:
    """What a partition of a table is made of."""

    day: str
    files: int
    size_bytes: int

    @property
    def files_wanted(self) -> int:
        return -(-self.size_bytes // FILE_BYTES) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What one table needs, or what was done to it."""

    table: str
    columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    days: tuple[DayFiles, ...] = ()
    unneeded_files: int = 0


def due(days: Iterable[DayFiles], *, today: str) -> tuple[DayFiles, ...]:
    """The closed days whose files are more than they need be, oldest first. Days are ISO: text is order."""
    closed = (each for each in days if each.day < today)
    return tuple(
        sorted((each for each in closed if each.files > each.files_wanted), key=lambda each: each.day)
    )


def drifted(found: Mapping[str, str], declared: Mapping[str, str]) -> dict[str, str]:
    """What was declared and is not so."""
    return {name: value for name, value in declared.items() if found.get(name) != value}
