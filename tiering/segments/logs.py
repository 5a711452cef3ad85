"""What a table keeps of one log beside its rows: claims, the log's own record, the digest so far.

Owns the two rules by which a log's records are believed: a claim fences what lower epochs write behind it
(`Claims`), and of two records based on the same one the first wins (`LogState.is_based_on_last`). Refuses to
decode anything.

Invariant: what `Claims` fences depends on the claims alone, not on the order in which they were learned.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from tiering.segments.keys import RecordKey
from tiering.segments.records import Claim

SEEN_RECORDS = 16  # of one log's own records, the offsets that are remembered

NOTHING = b""
Column = npt.NDArray[Any]


class Claims:
    """Claims of one log, by rising offset and epoch; those that fence nothing beside others are left out."""

    __slots__ = ("_epochs", "_offsets")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._epochs: list[int] = []

    @property
    def highest_epoch(self) -> int:
        return self._epochs[-1] if self._epochs else -1

    def all(self) -> tuple[Claim, ...]:
        return tuple(Claim(*each) for each in zip(self._epochs, self._offsets, strict=True))

    def is_news(self, claim: Claim) -> bool:
        """Whether it fences anything that the claims known do not."""
        place = bisect_right(self._offsets, claim.offset)
        return place == 0 or self._epochs[place - 1] < claim.epoch

    def add(self, claim: Claim) -> None:
        if not self.is_news(claim):
            return
        first = bisect_left(self._offsets, claim.offset)
        last = max(first, bisect_right(self._epochs, claim.epoch))
        self._offsets[first:last] = [claim.offset]
        self._epochs[first:last] = [claim.epoch]

    def fences(self, epoch: int, offset: int) -> bool:
        """Whether some claim before `offset` is of a higher epoch."""
        before = bisect_left(self._offsets, offset)
        return before > 0 and self._epochs[before - 1] > epoch

    def fence_mask(self, epochs: Column, offsets: Column) -> npt.NDArray[np.bool_]:
        """`fences`, for many at once."""
        if not self._offsets:
            return np.zeros(len(offsets), np.bool_)
        before = np.searchsorted(self._offsets, offsets, side="left")
        highest = np.array([-1, *self._epochs])[before]
        return np.asarray(highest > epochs)


class LogState:
    """One log in a table."""

    __slots__ = (
        "claims",
        "digest",
        "name",
        "offset",
        "own_digest",
        "record_offset",
        "revision",
        "rows",
        "seen",
        "shadowed",
        "unreadable",
        "value",
    )

    def __init__(self, name: RecordKey) -> None:
        self.name = name
        self.rows = array("q")
        self.claims = Claims()
        self.value = NOTHING  # of the log's own record that is followed, or NOTHING
        self.record_offset: int | None = None
        self.own_digest: bytes | None = None  # of the log's own record that came last, followed or not
        self.shadowed = False
        self.unreadable = False
        self.seen: deque[int] = deque(maxlen=SEEN_RECORDS)
        self.digest = 0
        self.offset = -1  # of the last record of the log, its own or a segment's
        self.revision = 0  # rises with every change

    def is_based_on_last(self, based_on: int | None) -> bool:
        """Whether a record that says so knew the one that is followed now.

        One that this table never saw was taken by compaction: whoever is based on it knew more than this.
        """
        if self.record_offset is None or based_on == self.record_offset:
            return True
        return based_on is not None and not self._saw(based_on)

    def _saw(self, offset: int) -> bool:
        forgotten = len(self.seen) == SEEN_RECORDS and offset < self.seen[0]
        return forgotten or offset in self.seen
