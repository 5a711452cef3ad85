"""How many bytes a log has at least, each offset counted once: what size retention may go by.

Copies overlap: replicas cut their logs at different offsets, and what is in the tier is on a disk as well.
Adding up sizes has deleted live data three times in Kafka (KAFKA-15479, -17062, -20732). How many bytes two
copies share is in neither's record, so the exact number is not to be had; but copies that do not overlap
share none. The heaviest set of copies of which no two overlap is therefore a number of bytes that the log has
for certain, and where none overlap it is the exact one.

Owns this bound. Refuses sizes of what is not wholly the log's: bytes of another lineage would be counted for
offsets that have other bytes.

Invariant: `from_offset` is never more than the bytes of all offsets from there on, and never rises with the
offset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple


class Extent(NamedTuple):
    """Some holder of all bytes of `[base_offset, end_offset)`, in whatever tier."""

    base_offset: int
    end_offset: int
    size_bytes: int


class UniqueBytes:
    """The bound for every offset of a log at once."""

    def __init__(self, extents: Iterable[Extent]) -> None:
        ordered = sorted(extent for extent in extents if extent.base_offset < extent.end_offset)
        self._bases = [extent.base_offset for extent in ordered]
        # Backwards: of what begins here or later, the best is either without this extent, or with it and
        # then with the best of what begins at or after its end.
        self._best = [0] * (len(ordered) + 1)
        for place in range(len(ordered) - 1, -1, -1):
            extent = ordered[place]
            with_it = extent.size_bytes + self.from_offset(extent.end_offset)
            self._best[place] = max(self._best[place + 1], with_it)

    def from_offset(self, offset: int) -> int:
        """Bytes that the log has for certain at `offset` and after it."""
        return self._best[bisect_left(self._bases, offset)]
