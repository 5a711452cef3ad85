"""What is looked at next, and for how long: the subset, the order, the budget.

    Subset       the nth of t shares, by a hash of the name that no run and no machine changes
    least_recent the names of a share in the order in which they were last looked at, never first
    Budget       bytes and time that one run may take

Owns these three decisions. Refuses to read a clock, a memory or a bucket: it is given what they say.

Invariant: the t shares of one t have every name once. What a budget admits is never more than its bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

PARTS_MAX = 10_000
_SUBSET = re.compile(r"(\d{1,5})/(\d{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Share `part`, from 1, of `parts`."""

    part: int = 1
    parts: int = 1

    @classmethod
    def parse(cls, text: str) -> Subset:
        """ValueError says what is allowed, in words that fit after "must be"."""
        found = _SUBSET.fullmatch(text)
        part, parts = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= part <= parts <= PARTS_MAX:
            raise ValueError(f"n/t, such as 2/7: share n, from 1, of t, at most {PARTS_MAX}")
        return cls(part=part, parts=parts)

    def __contains__(self, name: str) -> bool:
        """Whether a name is of this share. Not Python's own hash: that is another in every process."""
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        return number % self.parts == self.part - 1

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"


def least_recent(names: Iterable[str], looked_at_ms: Mapping[str, int]) -> list[str]:
    """In order: what nobody ever looked at, then what was looked at longest ago."""
    return sorted(names, key=lambda name: (looked_at_ms.get(name, -1), name))


class Refusal(Enum):
    """Why something is not looked at in this run."""

    SPENT = "spent"  # the budget is used up: everything that comes after is left, too
    TOO_LARGE = "too_large"  # it alone is more than the whole budget: no run with this one reaches it


@dataclass(slots=True, kw_only=True)
class Budget:
    """What is left of a run's. None: no limit."""

    max_bytes: int | None
    until_s: float | None
    clock: Callable[[], float]
    admitted_bytes: int = 0

    def admit(self, size_bytes: int) -> Refusal | None:
        """Whether something of this size may be begun now; it counts as read from then on."""
        if self.is_over:
            return Refusal.SPENT
        if self.max_bytes is not None:
            if size_bytes > self.max_bytes:
                return Refusal.TOO_LARGE
            if self.admitted_bytes + size_bytes > self.max_bytes:
                return Refusal.SPENT
        self.admitted_bytes += size_bytes
        return None

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.until_s is not None and self.clock() >= self.until_s
