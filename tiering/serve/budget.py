"""Bytes that answers may take in memory together: who would go beyond waits for others to be taken."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tiering.serve.counters import Counters


class Budget:
    """For one event loop. First come, first served; more than all of it at once is given when it is alone."""

    def __init__(self, limit_bytes: int, counters: Counters) -> None:
        self.used_bytes = 0
        self._limit_bytes = limit_bytes
        self._counters = counters
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def taken(self, size_bytes: int) -> AsyncIterator[None]:
        size_bytes = min(size_bytes, self._limit_bytes)
        if self._waiting or self.used_bytes + size_bytes > self._limit_bytes:
            self._counters.count("budget_waits")
            await self._wait(size_bytes)
        else:
            self.used_bytes += size_bytes
        try:
            yield
        finally:
            self.used_bytes -= size_bytes
            self._wake()

    async def _wait(self, size_bytes: int) -> None:
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, given))
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():
                self.used_bytes -= size_bytes  # it was given in the moment in which its asker went
            self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting:
            size_bytes, given = self._waiting[0]
            if not given.done():
                if self.used_bytes + size_bytes > self._limit_bytes:
                    return
                self.used_bytes += size_bytes
                given.set_result(None)
            self._waiting.popleft()
