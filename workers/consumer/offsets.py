"""Which offset of one partition may be committed: the lowest unfinished received one, else the position.

Pure. Only received offsets count. One that compaction removed, that a transaction marker stands at or that
belongs to an aborted transaction is never received: it is not waited for, and it is passed as soon as all
that was received below it is finished. The position is the offset after the last received record, or what the
broker names as the end: beyond markers that nobody ever receives.
"""

from __future__ import annotations

from collections import deque
from itertools import islice


class OffsetTracker:
    """One partition in one assignment. Offsets are received in rising order, but for a rewind."""

    __slots__ = ("_open", "_unfinished", "position")

    def __init__(self, start: int | None = None) -> None:
        self.position = start  # None until something is known
        self._open: deque[int] = deque()  # received and not below the commit point, in order
        self._unfinished: set[int] = set()

    def receive(self, offset: int) -> None:
        """A record came. One below the position is not of this assignment's order."""
        assert self.position is None or offset >= self.position
        self._open.append(offset)
        self._unfinished.add(offset)
        self.position = offset + 1

    def reach(self, offset: int) -> None:
        """The broker says that nothing is left below `offset`. An older answer changes nothing."""
        if self.position is None or offset > self.position:
            self.position = offset

    def finish(self, offset: int) -> bool:
        """A record is dealt with; False if it was not open, and then nothing changes."""
        unfinished = self._unfinished
        if offset not in unfinished:
            return False
        unfinished.remove(offset)
        waiting = self._open
        while waiting and waiting[0] not in unfinished:
            waiting.popleft()
        return True

    def rewind(self, offset: int) -> None:
        """The log was cut back to `offset`, or is read again from there: what lies below stays as it is."""
        self._unfinished = {each for each in self._unfinished if each < offset}
        self._open = deque(each for each in self._open if each < offset)
        self.position = offset

    @property
    def commit_point(self) -> int | None:
        """What to commit: where a successor starts. None while nothing is known of the partition."""
        return self._open[0] if self._open else self.position

    @property
    def blocking(self) -> int | None:
        """The offset that holds the commit point back."""
        return self._open[0] if self._open else None

    @property
    def unfinished(self) -> int:
        return len(self._unfinished)

    @property
    def ahead(self) -> int:
        """Received and not below the commit point: what a restart at the commit point would repeat."""
        return len(self._open)

    def finished_ahead(self) -> list[int]:
        """Finished offsets above the commit point, rising."""
        return [offset for offset in self._open if offset not in self._unfinished]

    def unfinished_offsets(self, most: int) -> list[int]:
        """The lowest unfinished offsets, rising."""
        return list(islice((offset for offset in self._open if offset in self._unfinished), most))

    def gaps(self, most: int) -> list[tuple[int, int]]:
        """The lowest runs of unfinished records, as half-open ranges; holes in the log do not part a run."""
        runs: list[tuple[int, int]] = []
        start: int | None = None
        end = 0
        for offset in self._open:
            if offset in self._unfinished:
                start = offset if start is None else start
                end = offset + 1
            elif start is not None:
                runs.append((start, end))
                start = None
                if len(runs) == most:
                    return runs
        if start is not None:
            runs.append((start, end))
        return runs
