"""How the story is told: chapters that each prove what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class ProofFailed(Exception):
    """A claim of the story does not hold: an outcome, not a failure to look, so it has no code of its own."""

    def __init__(self, claim: str, found: object) -> None:
        super().__init__(f"the demo's proof does not hold: {claim}\n\nFound instead: {found}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a chapter proved, in words and in numbers. `notes`: lines below, such as what is simulated."""

    says: str
    facts: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    name: str
    doing: str
    act: Callable[[], Told]


def prove(claim: str, holds: bool, found: object = "") -> None:
    if not holds:
        raise ProofFailed(claim, found)


def mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.1f} MiB"


def spans(ranges: Iterable[Sequence[int]]) -> str:
    """Ranges as people read them."""
    return " ".join(f"[{start:,}, {end:,})" for start, end in ranges) or "(the topic)"
