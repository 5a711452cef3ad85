"""What a check can come to. "Did not look" and "could not tell" are values of their own, never a pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong: `kind` is stable for programs, `detail` is for people."""

    kind: str
    detail: str
    position: int | None = None  # byte in the file
    offset: int | None = None  # Kafka offset


@dataclass(frozen=True, slots=True)
class Verified:
    """Looked at in full, to the depth that was asked for, and right."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Wrong, and in what."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """Not looked at, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """Looked at, and it cannot be told, and why."""

    reason: str


Outcome: TypeAlias = Verified | Failed | Skipped | Inconclusive
