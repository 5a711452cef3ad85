"""Which assignment of a partition a piece of work belongs to.

Every assignment gets a number of its own, and so does every rewind within one: from there on, offsets at or
above it stand for other records than before, and those below it for the same ones. What comes back under a
number that is over is late, and moves nothing.
"""

from __future__ import annotations

from itertools import count

from workers.consumer.records import Partition


class _Epoch:
    __slots__ = ("current", "first", "rewinds")

    def __init__(self, number: int) -> None:
        self.first = self.current = number
        self.rewinds: list[
            tuple[int, int]
        ] = []  # the number from there on, and the offset that it went back to


class Epochs:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._epochs: dict[Partition, _Epoch] = {}

    def begin(self, partition: Partition) -> int:
        """A new assignment; one that was current is over."""
        self._epochs[partition] = _Epoch(next(self._numbers))
        return self._epochs[partition].current

    def rewind(self, partition: Partition, offset: int) -> int:
        """What was received at or above `offset` is over."""
        epoch = self._epochs[partition]
        epoch.current = next(self._numbers)
        # An older rewind to a higher offset says nothing that this one does not say.
        epoch.rewinds = [each for each in epoch.rewinds if each[1] < offset] + [(epoch.current, offset)]
        return epoch.current

    def end(self, partition: Partition) -> None:
        self._epochs.pop(partition, None)

    def is_current(self, partition: Partition, number: int, offset: int) -> bool:
        epoch = self._epochs.get(partition)
        if epoch is None or number < epoch.first:
            return False
        return number == epoch.current or all(offset < to for since, to in epoch.rewinds if since > number)
