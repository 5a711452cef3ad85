"""What was found, what is about to be, and what evidence is missing."""

from __future__ import annotations

from dataclasses import dataclass

from rules.machine.spans import Spans


@dataclass(slots=True, kw_only=True)
class Gap:
    """Evidence is missing, of `[from_ms, to_ms]`. `broker_id` None: of any. It closes by a baseline."""

    sort: str
    broker_id: int | None
    from_ms: int
    to_ms: int
    detail: str
    closed_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class Pending:
    """A condition that holds, since when, and what a finding of it would say."""

    since_ms: int
    severity: str
    ranges: Spans
    note: str


@dataclass(slots=True, kw_only=True)
class Found:
    """A finding as it is carried. `subject` and `anchor` name it for ever; the rest may grow.

    `cleared_ms`: its condition was evaluated and false; `resolved_ms`: which clearing was stated on complete
    evidence, and stands whatever is missing later. `closed_ms`, `closed_by`: restored, accepted, withdrawn.
    `happened` is the interval of what it condemns.
    """

    rule_id: str
    subject: str
    anchor: str
    severity: str
    ranges: Spans
    opened_ms: int
    happened: tuple[int, int]
    note: str
    cleared_ms: int | None = None
    resolved_ms: int | None = None
    closed_ms: int | None = None
    closed_by: str = ""
