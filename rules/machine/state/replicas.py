"""One life of a replica: what its disk holds, and what its start passed."""

from __future__ import annotations

from dataclasses import dataclass, field

from rules.machine.spans import NONE, Spans


@dataclass(slots=True, kw_only=True)
class Segment:
    """A closed one on a disk, or one that was there. `bytes_at_most`: all that the log held when it went."""

    base: int
    end: int
    size_bytes: int
    max_timestamp_ms: int | None
    bytes_at_most: int | None = None
    told_ms: int = 0


@dataclass(slots=True, kw_only=True)
class Advance:
    """A replica's start went from `start` to `end` in `(not_before_ms, at_ms]`; `pieces` lay there."""

    start: int
    end: int
    not_before_ms: int
    at_ms: int
    due_ms: int
    is_blind: bool  # nobody saw the disk
    pieces: list[Segment]
    uncovered: Spans | None = None  # once it was decided


@dataclass(slots=True, kw_only=True)
class Replica:
    """One life of a replica. `doubt`: what its first start passed that the log's own had not."""

    broker_id: int
    directory_id: str | None
    incarnation: int | None
    began_ms: int
    ordinal: int
    start: int | None
    start_since_ms: int  # first read as it is
    start_read_ms: int  # last read so
    start_moved_ms: int | None
    local_start: int | None
    watermark: int | None
    log_end: int | None
    disk_bytes: int | None
    has_been_in_sync: bool = False
    is_dark: bool = False
    segments: dict[int, Segment] = field(default_factory=dict)
    holes: Spans = NONE
    doubt: Spans = NONE
    passed: Spans = NONE  # with a cause: needs no other when the start passes it again
    advances: list[Advance] = field(default_factory=list)
    low_since_ms: int | None = None  # as leader, below what was published
