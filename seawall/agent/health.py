"""Whether the agent is alive and ready, as values: each doubt by name, with what it means.

    alive    every loop has come round within its deadline; a supervisor restarts an agent that is not
    ready    it is alive, its table is caught up, its policy known, its broker's log dirs readable

Owns this judgement. Refuses to call an agent ready that only started: ready means that it would copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

STUCK_AFTER_MS = 15 * 60_000  # longer than any single step's own deadlines together


@dataclass(slots=True)
class Health:
    """What the loops report. May be used from several threads."""

    now_ms: Callable[[], int]
    stuck_after_ms: int = STUCK_AFTER_MS
    _beats: dict[str, int] = field(default_factory=dict)
    _doubts: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def beat(self, loop: str, *, pause_ms: int = 0) -> None:
        """The loop has come round, or has taken a step; after it, it may pause for so long."""
        with self._lock:
            self._beats[loop] = self.now_ms() + pause_ms

    def ended(self, loop: str) -> None:
        """The loop was asked to end and did."""
        with self._lock:
            self._beats.pop(loop, None)

    def doubt(self, name: str, why: str) -> None:
        """Why the agent is not ready; an empty text takes the doubt back."""
        with self._lock:
            if why:
                self._doubts[name] = why
            else:
                self._doubts.pop(name, None)

    def stuck(self) -> dict[str, str]:
        """The loops that have not come round, and since when they should have."""
        with self._lock:
            late = {name: self.now_ms() - due for name, due in self._beats.items()}
        return {name: f"silent for {ms} ms" for name, ms in late.items() if ms > self.stuck_after_ms}

    def doubts(self) -> dict[str, str]:
        """All that keeps the agent from being ready."""
        with self._lock:
            doubts = dict(self._doubts)
        return {**doubts, **{f"loop {name}": why for name, why in self.stuck().items()}}
