"""What the reference table says of one log, as far as removing from it needs to know.

    view of the table ──► TierFacts ──► remote.next_act, local.decide

Owns the two judgements that come before every other: whether the table may be believed at all (DOUBTS), and
what a copy counts for on the log's lineage (`TierCopy.covered_end`, `is_whole`). Refuses to leave out what it
does not understand: an unreadable record of the log is a doubt about all of it.

Invariant: facts are of one moment of the table, and say which (`applied_to`), against an end of the topic
that was read for them (`end_offset`). A table that is behind it, or has no record of the log, is doubted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tiering.outcome import Inconclusive
from tiering.segments.frontier import Range, clipped_ends, clipped_gaps, frontier
from tiering.segments.records import Claim, Hold, LogId, LogRecord, SegmentId, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.view import LogView


class TierCopy(NamedTuple):
    """A copy that is followed. `[base_offset, covered_end)` is of the log's lineage and all there.

    `is_whole`: so is every byte of it, and `size_bytes` is what the log has in that range.
    """

    segment_id: SegmentId
    base_offset: int
    end_offset: int
    covered_end: int
    max_timestamp_ms: int
    size_bytes: int
    state: SegmentState
    is_whole: bool
    metadata_offset: int

    @property
    def order(self) -> tuple[int, int, str]:
        """In which copies go: ascending, and the same in every table."""
        return self.base_offset, self.end_offset, self.segment_id


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFacts:
    """One log of one table. `copies` are all that are followed and not yet deleted, in their order."""

    log: LogId
    record: LogRecord | None
    record_offset: int | None
    claim: Claim | None  # the highest of the log, whoever's
    claims_to_repeat: tuple[Claim, ...]
    frontier: int | None
    copies: tuple[TierCopy, ...]
    gaps: tuple[Range, ...]  # on record as being on no replica
    row_count: int  # segments of the log that the topic still has a record of, whatever became of them
    unreadable_count: int
    is_shadowed: bool  # the log's last record is one that was not followed
    applied_to: int
    end_offset: int

    def finished(self) -> Iterator[TierCopy]:
        return (copy for copy in self.copies if copy.state is SegmentState.COPY_FINISHED)


def is_behind(facts: TierFacts) -> str | None:
    """Lag: what it has not read may be a hold, or a restore."""
    if facts.applied_to >= facts.end_offset:
        return None
    return f"the table has read to {facts.applied_to} of {facts.end_offset}"


def is_unclaimed(facts: TierFacts) -> str | None:
    """An empty table, or one of another topic."""
    return "the table has no record of the log" if facts.record is None else None


def is_unreadable(facts: TierFacts) -> str | None:
    """A newer agent wrote what this one cannot understand; or bytes were damaged."""
    if not facts.unreadable_count:
        return None
    return f"{facts.unreadable_count} records of the log cannot be read"


def is_contended(facts: TierFacts) -> str | None:
    """Somebody's word on the log came too late to be followed, and will come again: it may be a hold."""
    return "the log's last record is not the one that is followed" if facts.is_shadowed else None


# Why nothing may be removed on the word of a table. Each says so, or None.
DOUBTS = (is_behind, is_unclaimed, is_unreadable, is_contended)


def overlaps(hold: Hold, start: int, end: int) -> bool:
    """Whether a hold is on any offset of `[start, end)`, of whatever lineage."""
    return hold.start_offset < end and (hold.end_offset is None or hold.end_offset > start)


def facts_of(log: LogId, view: LogView | None, *, applied_to: int, end_offset: int) -> TierFacts:
    """The facts in a table's view, given how far the table has read and where the topic ended just before."""
    if view is None or view.record is None:
        return _nothing_known(log, applied_to, end_offset)
    found = frontier(view)
    return TierFacts(
        log=log,
        record=view.record,
        record_offset=view.record_offset,
        claim=view.claims[-1] if view.claims else None,
        claims_to_repeat=view.claims_to_repeat(),
        frontier=None if isinstance(found, Inconclusive) else found.offset,
        copies=tuple(sorted(_copies(view), key=lambda copy: copy.order)),
        gaps=clipped_gaps(view.record, view.record.leader_epochs),
        row_count=len(view.keys),
        unreadable_count=len(view.unreadable()),
        is_shadowed=view.own_key_shadowed,
        applied_to=applied_to,
        end_offset=end_offset,
    )


def _nothing_known(log: LogId, applied_to: int, end_offset: int) -> TierFacts:
    return TierFacts(
        log=log,
        record=None,
        record_offset=None,
        claim=None,
        claims_to_repeat=(),
        frontier=None,
        copies=(),
        gaps=(),
        row_count=0,
        unreadable_count=0,
        is_shadowed=False,
        applied_to=applied_to,
        end_offset=end_offset,
    )


def _copies(view: LogView) -> Iterator[TierCopy]:
    """A copy that covers nothing now still is one: it is being deleted, or of another lineage."""
    assert view.record is not None
    ends = clipped_ends(view.finished, view.record.leader_epochs).tolist()
    reach = {view.finished.segment_id(row): end for row, end in enumerate(ends)}
    for found in view.segments():
        if found.standing is Standing.FOLLOWED and found.state is not SegmentState.DELETE_FINISHED:
            covered_end = reach.get(found.segment_id, found.base_offset)
            yield TierCopy(
                segment_id=found.segment_id,
                base_offset=found.base_offset,
                end_offset=found.end_offset,
                covered_end=covered_end,
                max_timestamp_ms=found.max_timestamp_ms,
                size_bytes=found.size_bytes,
                state=found.state,
                is_whole=covered_end == found.end_offset,
                metadata_offset=found.metadata_offset,
            )
