"""What may run side by side: one record of a lane at a time, and the next only when it is let go.

A lane is a key of a partition, or a partition. It is held while its record runs, waits for a retry, is parked
or on its way to the dead letters; so a retry holds only its key. It is held by work of an ended assignment
too, until that comes back: within one process two records of a key never run at once, whatever is rebalanced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from enum import Enum

from workers.consumer.records import Record
from workers.consumer.work import Work


class Order(Enum):
    BY_KEY = "key"
    BY_PARTITION = "partition"
    NONE = "none"


class NullKeys(Enum):
    """Records without a key, where the order is by key: whoever sent them asked for none."""

    UNORDERED = "unordered"
    BY_PARTITION = "partition"


def lane_of(record: Record, order: Order, null_keys: NullKeys) -> Hashable:
    if order is Order.BY_KEY:
        if record.key is not None:
            return (record.partition, record.key)
        return record.partition if null_keys is NullKeys.BY_PARTITION else None
    return record.partition if order is Order.BY_PARTITION else None


class Lanes:
    """Held lanes, and what waits in each."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[Work] | None] = {}

    def enter(self, work: Work) -> bool:
        """Whether `work` may run at once; else it waits behind what came before it."""
        lane = work.lane
        if lane is None:
            return True
        if lane not in self._waiting:
            self._waiting[lane] = None  # most lanes never have anybody waiting
            return True
        waiting = self._waiting[lane]
        if waiting is None:
            waiting = self._waiting[lane] = deque()
        waiting.append(work)
        return False

    def leave(self, work: Work) -> Work | None:
        """`work` is out of its lane: the next one in it, which holds it from now on."""
        lane = work.lane
        if lane is None:
            return None
        waiting = self._waiting[lane]
        if waiting:
            return waiting.popleft()
        del self._waiting[lane]
        return None

    def drop(self, is_gone: Callable[[Work], bool]) -> Iterator[Work]:
        """What is gone of what waits; who holds a lane keeps it."""
        for lane, waiting in self._waiting.items():
            if waiting and any(is_gone(work) for work in waiting):
                yield from filter(is_gone, waiting)
                self._waiting[lane] = deque(work for work in waiting if not is_gone(work))

    def __len__(self) -> int:
        return len(self._waiting)
