"""Whether two executors of one log came to the same, event by event: the proof of paper `002`, by trying.

    Step       what an executor had come to behind one event of its log
    Chain      the hash over all steps so far; equal chains, equal histories
    compared   two executions held against each other: Equal with the hash, or the first Divergence

An execution is deterministic if its steps are a function of the log alone. One that reads a clock, draws a
number or goes through a set in whatever order it lies in memory comes to other steps sooner or later; which
event that began at is what a person needs.

Owns the comparison. Refuses to call it equal where nothing was compared: that is `Equal` of no steps, and the
caller says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from typing import NamedTuple, TypeAlias


class Step(NamedTuple):
    """`at`: the event's place in the log, for people. `says`: all that was come to, in one spelling."""

    at: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Equal:
    steps: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first event behind which the two are not the same; None: the one had come to its end."""

    number: int  # of the step, from 0
    first: Step | None
    second: Step | None

    @property
    def at(self) -> str:
        found = self.first or self.second
        assert found is not None
        return found.at


Compared: TypeAlias = Equal | Divergence


class Chain:
    """SHA-256 over each step and the hash of those before it."""

    def __init__(self) -> None:
        self._hash = sha256().digest()
        self.steps = 0

    def add(self, step: Step) -> None:
        said = b"\0".join(each.encode("utf-8", "surrogatepass") for each in step)
        self._hash = sha256(self._hash + said).digest()
        self.steps += 1

    def hex(self) -> str:
        return self._hash.hex()


def compared(first: Iterable[Step], second: Iterable[Step]) -> Compared:
    chain = Chain()
    for number, (one, other) in enumerate(zip_longest(first, second)):
        if one != other:
            return Divergence(number=number, first=one, second=other)
        assert one is not None
        chain.add(one)
    return Equal(steps=chain.steps, hash=chain.hex())
