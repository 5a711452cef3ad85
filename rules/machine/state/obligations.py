"""What waits for its cause, or for more evidence, until it is decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from rules.machine.spans import Spans
from rules.machine.state.replicas import Advance


@dataclass(slots=True, kw_only=True)
class Removal:
    """A segment went: from the tier, or from the head of the leader's disk. Judged at `due_ms`."""

    where: str  # tier, local
    broker_id: int
    segment_id: str
    base: int
    end: int
    size_bytes: int
    max_timestamp_ms: int | None
    not_before_ms: int
    at_ms: int
    due_ms: int
    bytes_at_most: int | None  # of the log, each offset once
    bytes_counted: int | None  # however wrongly they can be counted
    covered: Spans  # by other finished copies, when it went and once it settled
    was_led: bool
    is_decided: bool = False
    is_unjustified: bool = False
    is_counted: bool = False  # to the topic's hour: no retention let it go
    start_then: int | None = None  # the log's, once it settled


@dataclass(slots=True, kw_only=True)
class Rise:
    """The log's own start rose over `[start, end)`, led by `broker_id`."""

    broker_id: int
    start: int
    end: int
    not_before_ms: int
    at_ms: int
    due_ms: int
    bytes_counted: int | None  # however wrongly they can be counted
    uncovered: Spans | None = None  # once it was decided
    advances: list[Advance] = field(default_factory=list)  # its leader's, by which it was


@dataclass(slots=True, kw_only=True)
class Fallback:
    """A replica's start went back from `old` to `new`."""

    broker_id: int
    old: int
    new: int
    not_before_ms: int
    at_ms: int
    due_ms: int
    moved_ms: int | None


@dataclass(slots=True, kw_only=True)
class EmptyRise:
    """A replica's watermark rose in an interval, at whose end its log was empty."""

    broker_id: int
    before: int
    watermark: int
    not_before_ms: int
    at_ms: int


@dataclass(slots=True, kw_only=True)
class CopyAbove:
    """A copy whose end was above every watermark that had been published."""

    segment_id: str
    base: int
    end: int
    at_ms: int


@dataclass(slots=True, kw_only=True)
class Deviation:
    """Effective retention keeps less than what was declared. `least` is the least that was in force."""

    key: str
    anchor: str
    since_ms: int
    due_ms: int
    least: int
    changes: int
    reverted_ms: int | None = None
    is_open: bool = False
