"""A limit on bytes a second that is smooth inside a segment: a token bucket, taken from piece by piece.

A pause between whole segments would keep the average and still fill the network card for seconds. Here each
piece of 256 KiB waits its turn, whichever thread it comes from, in the order in which the threads asked.

Invariant: in any span of time t, at most `rate * t + burst` bytes are let through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

Clock = Callable[[], float]  # seconds, never going back
Sleep = Callable[[float], None]


class Pace(Protocol):
    """Lets bytes through when it is time."""

    def take(self, size_bytes: int) -> float: ...


class Throttle:
    """Shared by every thread that sends."""

    def __init__(
        self, *, bytes_per_s: float | None, burst_bytes: int = 1024 * 1024, clock: Clock, sleep: Sleep
    ) -> None:
        assert bytes_per_s is None or bytes_per_s > 0
        self._bytes_per_s = bytes_per_s
        self._burst_bytes = burst_bytes
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._spent_until = clock()  # when all that was let through so far is paid for
        self.waited_s = 0.0

    def take(self, size_bytes: int) -> float:
        """Wait until `size_bytes` may pass; how long that was."""
        if self._bytes_per_s is None:
            return 0.0
        with self._lock:
            now = self._clock()
            saved_up_since = now - self._burst_bytes / self._bytes_per_s
            self._spent_until = max(self._spent_until, saved_up_since) + size_bytes / self._bytes_per_s
            wait_s = max(0.0, self._spent_until - now)
            self.waited_s += wait_s
        if wait_s > 0:
            self._sleep(wait_s)
        return wait_s


class InTurn:
    """Several limits, each of which holds."""

    def __init__(self, *limits: Pace) -> None:
        self._limits = limits

    def take(self, size_bytes: int) -> float:
        """Wait until all of them let `size_bytes` pass; how long that was."""
        return sum(limit.take(size_bytes) for limit in self._limits)


def unlimited() -> Throttle:
    """No limit."""
    return Throttle(bytes_per_s=None, clock=lambda: 0.0, sleep=lambda _: None)
