"""The vocabulary of what can be wrong with a stored object, and the values that a look comes to.

    missing      no version of it is there that the record names
    deleted      that version is there, under a delete marker: a restore brings it back
    overwritten  that version is there, under another one: readers name versions and still find it
    unknown      an object is there that no record knows
    size, checksum   as the store states them, or as the bytes have them, against the record
    differs      the bytes are sound, and are not what the record says
    aux, json    the content of these two objects is not what it has to be
    unnamed      the record names no version, or a key that is not its own

What is wrong inside of a `.log` has the names of `tiering.log.defects`. All names are stable, for programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rules.identity import LogId, ObjectRef
from rules.words import ScrubDepth, ScrubOutcome
from tiering.outcome import Failed, Inconclusive, Outcome, Problem, Skipped, Verified
from tiering.segments.records import SegmentRecord
from tiering.store.keys import ObjectKind

DETAIL_CHARS_MAX = 500
PROBLEMS_TOLD_MAX = 5


class Damage(str, Enum):
    """See the module."""

    MISSING = "missing"
    DELETED = "deleted"
    OVERWRITTEN = "overwritten"
    UNKNOWN = "unknown"
    SIZE = "size"
    CHECKSUM = "checksum"
    DIFFERS = "differs"
    AUX = "aux"
    JSON = "json"
    UNNAMED = "unnamed"


class Reason(str, Enum):
    """Why an object was not looked at, or why it cannot be told. Stable, for programs."""

    REMOVED = "removed_meanwhile"  # its record says so, after the look
    CHANGED = "changed_meanwhile"  # its record names other objects now, as after a restore
    TOO_LARGE = "larger_than_budget"
    STORE = "store_error"
    METADATA = "metadata_unread"
    ALGORITHM = "checksum_unknown"
    UNSETTLED = "unsettled"  # the store contradicts itself
    UNANSWERED = "unanswered"  # no worker said what it found, or none that could be believed


def problem(damage: Damage, detail: str, *, position: int | None = None) -> Problem:
    return Problem(kind=damage.value, detail=detail, position=position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One object, and what the look at it came to. `reason` is stable, of what is neither right nor wrong."""

    record: SegmentRecord
    kind: ObjectKind
    key: str
    ref: ObjectRef | None  # None: the record names none
    depth: ScrubDepth
    outcome: Outcome
    reason: Reason | None = None
    looks: int = 1

    @property
    def log(self) -> LogId:
        return self.record.log

    @property
    def ended(self) -> ScrubOutcome:
        """The outcome as events name it."""
        match self.outcome:
            case Verified():
                return ScrubOutcome.VERIFIED
            case Failed():
                return ScrubOutcome.FAILED
            case Skipped():
                return ScrubOutcome.SKIPPED
            case Inconclusive():
                return ScrubOutcome.INCONCLUSIVE

    @property
    def problem(self) -> str | None:
        """What it is, for programs; None of what is right."""
        if isinstance(self.outcome, Failed):
            return self.outcome.problems[0].kind
        return self.reason.value if self.reason is not None else None

    @property
    def detail(self) -> str:
        """What it is, for people."""
        match self.outcome:
            case Verified():
                return "as its record says"
            case Failed(problems):
                told = "; ".join(_told(each) for each in problems[:PROBLEMS_TOLD_MAX])
                return told[:DETAIL_CHARS_MAX]
            case Skipped(why) | Inconclusive(why):
                return why[:DETAIL_CHARS_MAX]


def _told(each: Problem) -> str:
    at = f" at byte {each.position}" if each.position is not None else ""
    return f"{each.kind}{at}: {each.detail}"
