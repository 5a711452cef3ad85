"""Fetches what will be asked for next, before it is asked for, within a bound.

A read says in which order it expects to ask (`expected`, which may be wrong: the ends of ranges are guesses
from an index). What was expected and passed over is dropped; what was not expected is fetched at once.

Owns the futures of one read. Invariant: at most `limit` chunks are fetched and not yet taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

from tiering.reader.chunks import Source


class Turn(NamedTuple):
    """A chunk of one read. They compare by piece, then by chunk: the two say which object it is of."""

    piece: int
    chunk: int
    source: Source


class Ahead:
    """The chunks of one read, by rising turn. For one thread."""

    def __init__(
        self, pool: Executor, fetch: Callable[[Turn], bytes], expected: Iterator[Turn], limit: int
    ) -> None:
        self._pool = pool
        self._fetch = fetch
        self._expected = expected
        self._limit = limit
        self._waiting: deque[tuple[Turn, Future[bytes]]] = deque()

    def take(self, turn: Turn) -> bytes:
        """The chunk of this turn; what comes after it is being fetched meanwhile."""
        while self._waiting and self._waiting[0][0] < turn:
            self._waiting.popleft()[1].cancel()
        self._fill(turn)
        if self._waiting and self._waiting[0][0] == turn:
            wanted = self._waiting.popleft()[1]
            self._fill(turn)
            return wanted.result()
        return self._fetch(turn)

    def close(self) -> None:
        while self._waiting:
            self._waiting.popleft()[1].cancel()

    def _fill(self, now: Turn) -> None:
        while len(self._waiting) < self._limit:
            turn = next((each for each in self._expected if each >= now), None)
            if turn is None:
                return
            self._waiting.append((turn, self._pool.submit(self._fetch, turn)))
