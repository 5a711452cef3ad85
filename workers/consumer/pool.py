"""Where each piece of work is: waiting, ready, running, delayed, parked or on its way to the dead letters.

Pure. Owns the places and the order between them, and knows nothing of offsets. What is taken out of the pool
for good is answered to the caller, who counts it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from workers.consumer.order import Lanes
from workers.consumer.outcomes import DeadLetter, Park
from workers.consumer.records import Partition
from workers.consumer.snapshot import Blocked
from workers.consumer.work import Work


class Pool:
    def __init__(self) -> None:
        self.lanes = Lanes()
        self.running: set[Work] = set()
        self.burying: dict[int, tuple[Work, DeadLetter]] = {}
        self.parked: dict[tuple[Partition, int], tuple[Work, Park]] = {}
        self.ready: list[tuple[int, Work]] = []
        # With a letter it is the letter that is tried again, not the handler.
        self.delayed: list[tuple[float, int, Work, DeadLetter | None]] = []

    def enter(self, work: Work) -> None:
        if self.lanes.enter(work):
            self.make_ready(work)

    def make_ready(self, work: Work) -> None:
        heapq.heappush(self.ready, (work.number, work))

    def take(self, most: int) -> list[Work]:
        """The oldest that may run; they are running from here on."""
        ready = self.ready
        taken: list[Work] = []
        while ready and len(taken) < most:
            taken.append(heapq.heappop(ready)[1])
        self.running.update(taken)
        return taken

    def let_go(self, work: Work) -> None:
        """It is dealt with, or of no interest any more: the next in its lane is ready."""
        following = self.lanes.leave(work)
        if following is not None:
            heapq.heappush(self.ready, (following.number, following))

    def delay(self, work: Work, due_s: float, letter: DeadLetter | None) -> None:
        heapq.heappush(self.delayed, (due_s, work.number, work, letter))

    def due(self, now_s: float) -> Iterator[tuple[Work, DeadLetter | None]]:
        while self.delayed and self.delayed[0][0] <= now_s:
            _, _, work, letter = heapq.heappop(self.delayed)
            yield work, letter

    def out(self) -> Iterator[Work]:
        """With somebody who will answer: a handler, or the producer of dead letters."""
        yield from self.running
        for work, _ in self.burying.values():
            yield work

    def drop(self, is_gone: Callable[[Work], bool]) -> list[Work]:
        """Everything that is gone, but what is out: that holds its lane until it comes back."""
        gone = [work for _, work in self.ready if is_gone(work)]
        self.ready = [each for each in self.ready if not is_gone(each[1])]
        heapq.heapify(self.ready)
        gone += [each[2] for each in self.delayed if is_gone(each[2])]
        self.delayed = [each for each in self.delayed if not is_gone(each[2])]
        heapq.heapify(self.delayed)
        gone += [self.parked.pop(place)[0] for place, (work, _) in list(self.parked.items()) if is_gone(work)]
        waiting = list(self.lanes.drop(is_gone))
        for work in gone:
            self.let_go(work)
        return gone + waiting

    def whereabouts(
        self, partition: Partition, offset: int, is_current: Callable[[Work], bool]
    ) -> tuple[Blocked, int, str]:
        """What this record waits for, its attempt and the last word on it. Looks through everything."""

        def is_it(work: Work) -> bool:
            return (work.record.partition, work.record.offset) == (partition, offset) and is_current(work)

        if parked := self.parked.get((partition, offset)):
            return Blocked.PARKED, parked[0].record.attempt, parked[1].reason
        for work, letter in self.burying.values():
            if is_it(work):
                return Blocked.BURYING, work.record.attempt, letter.reason
        for _, _, work, delayed in self.delayed:
            if is_it(work):
                kind = Blocked.RETRYING if delayed is None else Blocked.BURYING
                return kind, work.record.attempt, delayed.reason if delayed else ""
        for work in self.running:
            if is_it(work):
                return Blocked.RUNNING, work.record.attempt, ""
        return Blocked.WAITING, 0, ""
