"""What a plan says: one range of one log, the pieces that it is put back from, and what is lost of it.

    Piece    `[start, end)` comes from one copy of one segment: its record in the topic of metadata, whose
             objects are the very versions to read or to copy
    Lost     `[start, end)` cannot be had, and why
    Plan     both, with what they come to, and the state of the world that they were taken from

One plan is for one log and one target. All three targets use the same pieces; what a target alone needs
(brokers to stop, the topic to fill) stands in `details`, as JSON.

Owns these values and what must hold within them. Refuses to look at the world.

Invariant: pieces and lost ranges are in order, do not overlap, and together are exactly the asked range; the
planned range begins with a piece, ends with one, and holds every piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from rules.identity import LogId, ObjectRef
from rules.words import RestoreTarget
from tiering.segments.records import Json, SegmentRecord


class Range(NamedTuple):
    """Offsets `[start, end)`."""

    start: int
    end: int

    @property
    def offsets(self) -> int:
        return self.end - self.start


class Origin(str, Enum):
    """Where a piece's bytes are now."""

    TIER = "tier"  # live in the tier
    VERSION = "version"  # versions under a delete marker, or under another version
    REPLICA = "replica"  # on a broker's disk only


class LostBecause(str, Enum):
    """Why a range cannot be had. Stable, for programs."""

    NEVER_COPIED = "never_copied"  # no copy of it was ever finished
    VERSION_GONE = "version_gone"  # there was a copy; the bucket keeps no version of it any more
    OTHER_HISTORY = "other_history"  # the only copies are of another lineage than the log's
    INCOMPLETE = "incomplete"  # the only copy has a hole in it, or ends early
    ON_RECORD = "on_record"  # a gap that an agent recorded, with its cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`[start, end)` of one copy, which may hold more.

    `record.objects` are what is read, or copied from: the versions by their ids. `tops` has, for each kind of
    object, the version or marker that lay on top of its key when this was planned; None: nothing did.
    `broker_id` is the replica's, where the origin is one.
    """

    start: int
    end: int
    origin: Origin
    record: SegmentRecord
    tops: tuple[tuple[str, str | None], ...] = ()
    broker_id: int | None = None

    @property
    def log_object(self) -> ObjectRef:
        assert self.record.objects.log is not None, "what has no .log is no piece"
        return self.record.objects.log

    @property
    def aux_object(self) -> ObjectRef:
        assert self.record.objects.aux is not None, "what has no .aux is no piece"
        return self.record.objects.aux

    @property
    def size_bytes(self) -> int:
        """Of all its objects."""
        return sum(ref.size_bytes for _, ref in self.record.objects.present())


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """`[start, end)` is not to be had."""

    start: int
    end: int
    because: LostBecause
    detail: str

    @property
    def offsets(self) -> int:
        return self.end - self.start


class AskedBy(str, Enum):
    FINDING = "finding"
    OFFSETS = "offsets"
    TIME = "time"  # as the log was at a time
    ALL = "all"  # whatever can be had


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the plan was made for, in its asker's words. `range` is what came of them."""

    by: AskedBy
    text: str
    range: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """SHA-256 of what the plan was made upon; `apply` refuses where one of them is another."""

    bucket: str
    log: str
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBody:
    """All that a plan says. `joins_at`: where the range ends and the live log begins.

    `passes_gaps`: lost ranges between
    pieces are put on record, so that what lies before them can be reached.
    """

    log: LogId
    topic: str
    target: RestoreTarget
    made_at_ms: int
    asked: Asked
    range: Range
    joins_at: int
    pieces: tuple[Piece, ...]
    lost: tuple[Lost, ...]
    passes_gaps: bool
    keep_for_ms: int
    requests: int
    estimated_ms: int
    fingerprints: Fingerprints
    details: Mapping[str, Json] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(piece.size_bytes for piece in self.pieces)

    @property
    def recoverable_offsets(self) -> int:
        return sum(piece.end - piece.start for piece in self.pieces)

    @property
    def lost_offsets(self) -> int:
        return sum(each.offsets for each in self.lost)

    @property
    def gaps(self) -> tuple[Lost, ...]:
        """What is lost between the first piece and the live log (or the last piece): readers stand there."""
        end = max(self.range.end, self.joins_at)
        return tuple(each for each in self.lost if self.range.start <= each.start < end)

    def problem(self) -> str | None:
        """The first thing that does not hold, in words; None if all does."""
        spans = sorted(
            [(each.start, each.end) for each in self.pieces] + [(each.start, each.end) for each in self.lost]
        )
        if not self.pieces:
            return "it has no pieces"
        if any(start >= end for start, end in spans):
            return "it has an empty range"
        if any(before[1] != after[0] for before, after in pairwise(spans)):
            return "its pieces and lost ranges do not follow each other"
        if (spans[0][0], spans[-1][1]) != self.asked.range:
            return f"they are not [{self.asked.range.start}, {self.asked.range.end})"
        if (self.pieces[0].start, self.pieces[-1].end) != self.range:
            return "its range is not that of its pieces"
        for piece in self.pieces:
            record = piece.record
            if record.log != self.log:
                return f"segment {record.segment_id} is of another log"
            if not record.base_offset <= piece.start < piece.end <= record.covered_end:
                return f"segment {record.segment_id} does not hold [{piece.start}, {piece.end})"
            if record.objects.log is None or record.objects.aux is None:
                return f"segment {record.segment_id} has no .log or no .aux"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A body and the SHA-256 of its one spelling, which is its name."""

    hash: str
    body: PlanBody
