"""The gate before a run: what the columns' types cannot say of a slice (Great Expectations).

    of the whole slice   it is not empty; its volume is not a twentieth of what it was; little is in
                         quarantine; few kinds are not known here. Where one fails, every log is in doubt.
    of single rows       no emitter's clock runs ahead of the broker's. Where one fails, the logs of that
                         emitter are in doubt.

A log in doubt is INDETERMINATE, never PASS; what is found of it is found all the same.

Owns the words and limits. Invariant: what could not be evaluated has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

VOLUME_FRACTION = 20
VOLUME_RUNS_MIN = 3
QUARANTINED_SHARE_MAX = 0.01
READ_SHARE_MIN = 0.99
AHEAD_MAX_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What finished runs saw: events an hour, the newest first."""

    rates: Sequence[float]

    def least(self, hours: float) -> int:
        """How many events a slice of so many hours has at least; 1 where not enough is known."""
        if len(self.rates) < VOLUME_RUNS_MIN:
            return 1
        median = sorted(self.rates)[len(self.rates) // 2]
        return max(1, int(median * hours / VOLUME_FRACTION))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What was expected, and what came of it. `emitters`: whose rows failed; none: the whole slice."""

    name: str
    is_met: bool
    detail: str
    emitters: tuple[tuple[str, int, str], ...] = ()  # cluster, broker, component
