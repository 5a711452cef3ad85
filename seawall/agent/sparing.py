"""A look that costs much, taken seldom; one that failed is taken again at the next turn.

So the agent is ready again as soon as its broker is, and not a whole pause later.
"""

from __future__ import annotations

from collections.abc import Callable


class Sparing:
    """For one thread. `every_s`: from one look that could to the next."""

    def __init__(self, look: Callable[[], object], *, every_s: float, now_ms: Callable[[], int]) -> None:
        self._look = look
        self._every_ms = every_s * 1000
        self._now_ms = now_ms
        self._looked_ms: int | None = None

    def run_once(self) -> None:
        now_ms = self._now_ms()
        # A clock that was put back is no reason to wait for it.
        if self._looked_ms is not None and 0 <= now_ms - self._looked_ms < self._every_ms:
            return
        self._looked_ms = None
        self._look()
        self._looked_ms = now_ms
