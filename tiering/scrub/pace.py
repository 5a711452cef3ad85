"""How long a run goes on, and how far it has come: asked by all its workers.

Listing has half of the time there is. When the time is up, what has begun is given up, unless nothing has
come to its end yet: each run gets somewhere. When the run ends, it is given up at once.

Owns the clock's limits and the count of bytes. Refuses to stop anything: whoever works asks, and leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Event as Flag
from threading import Lock
from typing import TypeVar

from tiering.scrub.ports import Ask, Ports

T = TypeVar("T")


class GivenUp(Exception):
    """The time is up in the middle of something, or the run ends."""


class Pace:
    """Of one run, from when it is made."""

    def __init__(self, ports: Ports, ask: Ask) -> None:
        began_s = ports.clock()
        self._ports = ports
        self.until_s = None if ask.max_s is None else began_s + ask.max_s
        self._list_until_s = None if ask.max_s is None else began_s + ask.max_s / 2
        self._ending = Flag()
        self._got_somewhere = Flag()
        self._counting = Lock()
        self.came_bytes = 0

    @property
    def may_list_on(self) -> bool:
        return not self._is_past(self._list_until_s)

    def end(self) -> None:
        """Whoever still reads gives up."""
        self._ending.set()

    def got_somewhere(self) -> None:
        """Something has come to its end."""
        self._got_somewhere.set()

    def each_of(self, entries: Iterable[T]) -> Iterator[T]:
        """They, as long as there is time."""
        for each in entries:
            if self._ending.is_set() or self._is_past(self.until_s):
                raise GivenUp
            yield each

    @property
    def is_over(self) -> bool:
        """Whether what has begun is given up."""
        return self._ending.is_set() or (self._got_somewhere.is_set() and self._is_past(self.until_s))

    def check(self) -> None:
        if self.is_over:
            raise GivenUp

    def came(self, size_bytes: int) -> None:
        """So much was read; returns when more may be."""
        self.check()
        self._ports.pace(size_bytes)
        self.came_elsewhere(size_bytes)

    def came_elsewhere(self, size_bytes: int) -> None:
        """So much was read by another process, at a pace of its own."""
        with self._counting:
            self.came_bytes += size_bytes

    def _is_past(self, until_s: float | None) -> bool:
        return until_s is not None and self._ports.clock() >= until_s
