"""Time that passes only when somebody sleeps or says so, for whatever is given its clock and its sleep."""

from __future__ import annotations

import threading


class Hands:
    """The hands of a clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now_s = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self.now_s += seconds

    def turn(self, seconds: float) -> None:
        self.now_s += seconds
