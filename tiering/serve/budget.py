"""Room for what is held in memory for clients: who would take more than there is waits for others to be done.

    up to half of it   for everybody
    the other half     for those alone who take no more than a share each

So slow clients with large answers do not keep out the others: from half on, answers are made no larger than
a share (`room_bytes`), and there is a share for as many clients as there may be.

Owns the count. Invariant: no more than `limit_bytes` is given, but for one that is larger than a share, which
is let in when there is no other such, and for what `Room.resize` adds, which was read before it was known.
"""

from __future__ import annotations

import asyncio
from collections import deque

from tiering.serve.counters import Counters


class Room:
    """What was given; given back once."""

    __slots__ = ("_budget", "_is_large", "size_bytes")

    def __init__(self, budget: Budget, size_bytes: int, *, is_large: bool) -> None:
        self._budget = budget
        self._is_large = is_large
        self.size_bytes = size_bytes

    def resize(self, size_bytes: int) -> None:
        """To what it came to; nobody waits for what is there already."""
        self._budget.changed(size_bytes - self.size_bytes, is_large=self._is_large)
        self.size_bytes = size_bytes

    def give_back(self) -> None:
        self.resize(0)


class Budget:
    """For one event loop. First come, first served among the large, and among the others."""

    def __init__(self, limit_bytes: int, counters: Counters, *, share_bytes: int, waits: str) -> None:
        self.used_bytes = 0
        self.most_bytes = 0  # that were ever in use
        self._large_bytes = 0
        self._limit_bytes = limit_bytes
        self._share_bytes = max(1, share_bytes)
        self._counters = counters
        self._waits = waits  # what counts those that waited
        self._small: deque[tuple[int, asyncio.Future[Room]]] = deque()
        self._large: deque[tuple[int, asyncio.Future[Room]]] = deque()

    @property
    def is_pressed(self) -> bool:
        """Whether somebody waits."""
        return bool(self._small or self._large)

    def room_bytes(self, most_bytes: int) -> int:
        """How large an answer that could be `most_bytes` should be made now."""
        is_free = self.used_bytes == 0 or self.used_bytes + most_bytes <= self._limit_bytes // 2
        return most_bytes if is_free else min(most_bytes, self._share_bytes)

    async def take(self, size_bytes: int) -> Room:
        is_large = size_bytes > self._share_bytes
        waiting = self._large if is_large else self._small
        if not waiting and self._fits(size_bytes, is_large=is_large):
            return self._given(size_bytes, is_large=is_large)
        self._counters.count(self._waits)
        given: asyncio.Future[Room] = asyncio.get_running_loop().create_future()
        waiting.append((size_bytes, given))
        try:
            return await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():
                given.result().give_back()  # it was given in the moment in which its asker went
            else:
                given.cancel()
                self._wake()
            raise

    def changed(self, by_bytes: int, *, is_large: bool) -> None:
        self.used_bytes += by_bytes
        self._large_bytes += by_bytes if is_large else 0
        self.most_bytes = max(self.most_bytes, self.used_bytes)
        if by_bytes < 0:
            self._wake()

    def _fits(self, size_bytes: int, *, is_large: bool) -> bool:
        if is_large:
            return self._large_bytes == 0 or self.used_bytes + size_bytes <= self._limit_bytes // 2
        return self.used_bytes == 0 or self.used_bytes + size_bytes <= self._limit_bytes

    def _given(self, size_bytes: int, *, is_large: bool) -> Room:
        self.changed(size_bytes, is_large=is_large)
        return Room(self, size_bytes, is_large=is_large)

    def _wake(self) -> None:
        for waiting, is_large in ((self._small, False), (self._large, True)):
            while waiting:
                size_bytes, given = waiting[0]
                if not given.done():
                    if not self._fits(size_bytes, is_large=is_large):
                        break
                    given.set_result(self._given(size_bytes, is_large=is_large))
                waiting.popleft()
