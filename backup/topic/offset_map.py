"""Which offset of the source became which of the target: runs of offsets that moved together.

    source    [100, 160)            [163, 170)      what lies between was a marker, or aborted
    target    [  0,  60)            [ 61,  68)      offset 60 is the marker of our own transaction

Owns lookups. Refuses to guess beyond what was replayed.

Invariant: runs rise in both, without overlap; each committed record of the range is in exactly one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Run(NamedTuple):
    """So many `offsets` from `source` on became those from `target` on."""

    source: int
    target: int
    offsets: int

    @property
    def source_end(self) -> int:
        return self.source + self.offsets

    @property
    def target_end(self) -> int:
        return self.target + self.offsets


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The same runs, those that touch on both sides made one."""
    found: list[Run] = []
    for run in runs:
        last = found[-1] if found else None
        if last is not None and (last.source_end, last.target_end) == (run.source, run.target):
            found[-1] = Run(last.source, last.target, last.offsets + run.offsets)
        else:
            found.append(run)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMap:
    """The map of one log: `[start, end)` of the source was replayed, and the target's records end at
    `target_end`."""

    start: int
    end: int
    target_end: int
    runs: tuple[Run, ...]

    def translate(self, position: int) -> int | None:
        """Where a consumer goes on that would read `position` next: the first record at or behind it.

        None beyond what was replayed: what comes there is not in the target. Below it, the first that is.
        """
        if position > self.end:
            return None
        place = bisect_right(self.runs, position, key=lambda run: run.source) - 1
        if place >= 0 and position < self.runs[place].source_end:
            return self.runs[place].target + position - self.runs[place].source
        following = place + 1
        return self.runs[following].target if following < len(self.runs) else self.target_end
