"""What an agent does next for one log that its broker leads: a pure function of what is known.

    what is known                                            next
    our claim of this epoch is not in the table              WriteClaim
    a record that is followed is not the last of its key     Rewrite: compaction would keep the other one
    a copy that nobody is working on                         Abandon
    a delete that nobody is working on                       FinishDelete
    the closed segment that holds offset n, all committed    Copy
    the same, not yet below the high watermark and the LSO   Wait
    no file holds n, and the log itself starts after it      RecordGap
    no file holds n, though the log says it is there         Stalled: bytes are missing inside the log
    nothing closed from n on                                 UpToDate

n is the frontier: the end of contiguous finished coverage (`segments.frontier`). The segment that *contains*
n is next, wherever it begins: replicas cut their logs at different offsets, and a marker of bases skips the
segment that straddles a leader change.

Owns the order of these cases. Refuses to look at a clock, a file or a network; what it is not told, it waits
for.

Invariant (T2): nothing is copied past n that leaves n behind, and n passes a hole only by RecordGap, which
needs the log's own start behind the hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rules.events import GapCause
from tiering.segments.frontier import CaughtUp, CopyNext, Missing, Range, next_segment
from tiering.segments.records import LogRecord, SegmentRecord, SegmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRange:
    """A closed segment whose bytes can be read here, under whatever name or none."""

    base_offset: int
    end_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """All that is known of one log at one moment. This broker leads it at `leader_epoch`."""

    leader_epoch: int
    may_leave_below: int  # T1: min of high watermark and last stable offset, from the leader at this epoch
    log_start: int  # the broker's: its first readable offset
    active_base: int  # where the segment begins that is still written
    local: tuple[LocalRange, ...]  # closed segments, by base offset
    claim_read_back: bool  # the table has our claim of this epoch, and has none above it
    log_record: LogRecord | None
    frontier: int | None  # None only without a log record
    unfinished: tuple[SegmentRecord, ...]  # the log's attempts in COPY_STARTED or DELETE_STARTED
    shadowed: tuple[SegmentRecord | LogRecord, ...]  # followed, and not the last records of their keys


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteClaim:
    """Claim the log for this epoch. `first_tiered_offset` counts only if the log has no record yet."""

    first_tiered_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Write a record again that is followed, and that another, not followed, stands behind."""

    record: SegmentRecord | LogRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """Delete what a dead attempt left. A log's steps go one by one: whoever asks is not working on it."""

    record: SegmentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishDelete:
    """Go on with a delete that was begun."""

    record: SegmentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Copy this segment. `covers_from` is the frontier that it continues."""

    segment: LocalRange
    covers_from: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordGap:
    """Record that `[start_offset, end_offset)` is on no replica, so that the frontier may pass."""

    start_offset: int
    end_offset: int
    cause: GapCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The next segment may not leave yet: it ends above what is committed and decided."""

    segment: LocalRange
    may_leave_below: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """The log says that `[start_offset, end_offset)` is there, and no file here holds it."""

    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class UpToDate:
    """Everything closed is copied."""


Step: TypeAlias = WriteClaim | Rewrite | Abandon | FinishDelete | Copy | RecordGap | Wait | Stalled | UpToDate


def next_step(facts: LogFacts) -> Step:
    """The one thing to do now. Doing it changes the facts; ask again."""
    if not facts.claim_read_back or facts.log_record is None or facts.frontier is None:
        return WriteClaim(first_tiered_offset=_first_local(facts))
    if facts.shadowed:
        return Rewrite(record=facts.shadowed[0])
    if facts.unfinished:
        record = facts.unfinished[0]
        is_removal = record.state is SegmentState.DELETE_STARTED
        return FinishDelete(record=record) if is_removal else Abandon(record=record)
    return _onward(facts, facts.frontier)


def _onward(facts: LogFacts, frontier: int) -> Step:
    following = next_segment([Range(s.base_offset, s.end_offset) for s in facts.local], frontier)
    match following:
        case CopyNext(segment=found):
            holding = next(s for s in facts.local if s.base_offset == found.start)
            if holding.end_offset <= facts.may_leave_below:
                return Copy(segment=holding, covers_from=frontier)
            return Wait(segment=holding, may_leave_below=facts.may_leave_below)
        case Missing(range=hole):
            hole_end = hole.end
        case CaughtUp():
            if frontier >= facts.active_base:
                return UpToDate()
            hole_end = facts.active_base
    lost_end = min(hole_end, facts.log_start)  # above the log's start the log claims to have it
    if lost_end > frontier:
        return RecordGap(start_offset=frontier, end_offset=lost_end, cause=_cause(facts, lost_end))
    return Stalled(start_offset=frontier, end_offset=hole_end)


def _first_local(facts: LogFacts) -> int:
    """Where tiering of a log begins that was never tiered: its first offset here that may be read."""
    first = facts.local[0].base_offset if facts.local else facts.active_base
    return max(first, facts.log_start)


def _cause(facts: LogFacts, hole_end: int) -> GapCause:
    """Retention takes whole segments; a start inside one was asked for by somebody."""
    bases = {segment.base_offset for segment in facts.local} | {facts.active_base}
    return GapCause.RETENTION_OVERTOOK if hole_end in bases else GapCause.RECORDS_DELETED
