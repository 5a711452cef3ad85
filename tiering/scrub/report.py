"""What one run came to, for whoever prints it or makes an exit code of it.

Invariant: what is not said to have been looked at was not; nothing is dropped without a count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from rules.identity import LogId
from rules.words import ScrubOutcome
from tiering.scrub.damage import Checked, Damage
from tiering.scrub.inventory import Difference

KEPT_MAX = 10_000


class Unknown(NamedTuple):
    """An object that nobody's record knows."""

    log: LogId
    found: Difference


class Unlisted(NamedTuple):
    """A log of which no listing came to its end, and why."""

    log: LogId
    why: str


@dataclass(slots=True, kw_only=True)
class Report:
    """`told` are the objects that are not right, with the other lists the first KEPT_MAX of each."""

    told: list[Checked] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    unlisted: list[Unlisted] = field(default_factory=list)
    counts: Counter[ScrubOutcome] = field(default_factory=Counter)
    missing_count: int = 0
    unknown_count: int = 0
    unlisted_count: int = 0
    logs_listed: int = 0
    logs_left: int = 0
    objects_listed: int = 0
    segments: int = 0  # looked at, to the depth that was asked for
    by_worker: Counter[str] = field(default_factory=Counter)  # how many of them another process looked at
    segments_left: int = 0  # of the subset, for another run
    segments_too_large: int = 0
    read_bytes: int = 0
    settled_by_second_look: int = 0
    stopped: str | None = None  # why the run ended before its work and its budget did

    def add(self, checked: Checked) -> None:
        self.counts[checked.ended] += 1
        self.missing_count += checked.problem == Damage.MISSING.value
        if checked.ended is ScrubOutcome.VERIFIED:
            self.settled_by_second_look += checked.looks > 1
        elif len(self.told) < KEPT_MAX:
            self.told.append(checked)

    def add_unknown(self, log: LogId, found: Difference) -> None:
        self.unknown_count += 1
        if len(self.unknown) < KEPT_MAX:
            self.unknown.append(Unknown(log, found))

    def add_unlisted(self, found: Unlisted) -> None:
        self.unlisted_count += 1
        if len(self.unlisted) < KEPT_MAX:
            self.unlisted.append(found)

    @property
    def has_findings(self) -> bool:
        return self.counts[ScrubOutcome.FAILED] > 0 or self.unknown_count > 0

    @property
    def is_untold(self) -> bool:
        """Whether something that was begun could not be told, or nothing was looked at."""
        unclear = self.counts[ScrubOutcome.INCONCLUSIVE] > 0 or self.unlisted_count > 0
        return unclear or self.stopped is not None or not self.counts[ScrubOutcome.VERIFIED]

    @property
    def is_all_missing(self) -> bool:
        """Whether of all that was wanted nothing was there: the look of a wrong bucket, too."""
        ended = self.counts[ScrubOutcome.FAILED], self.counts.total()
        return self.missing_count > 0 and ended == (self.missing_count, self.missing_count)
