"""Which assignment of a partition a piece of work belongs to.

Every assignment gets a number of its own, and so does every rewind within one: offsets may then stand for
other records than before. What comes back under a number that is no longer current is late, and moves
nothing.
"""

from __future__ import annotations

from itertools import count

from workers.consumer.records import Partition


class Epochs:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._current: dict[Partition, int] = {}

    def begin(self, partition: Partition) -> int:
        """A new epoch; one that was current is over."""
        number = self._current[partition] = next(self._numbers)
        return number

    def end(self, partition: Partition) -> None:
        self._current.pop(partition, None)

    def is_current(self, partition: Partition, epoch: int) -> bool:
        return self._current.get(partition) == epoch
