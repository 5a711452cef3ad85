"""The frontier: up to where everything is in the tier, and so where copying goes on (invariant T2).

    n = the end of contiguous coverage from max(log_start, first_tiered_offset), where coverage is
        - each finished copy, from its base to its `covered_end`, clipped to the log's lineage, and
        - each recorded gap, clipped to what the leaders up to its epoch wrote

Overlap is allowed. A started or failed copy covers nothing. A hole ends coverage, whatever lies beyond it,
until a gap record says that the bytes are on no replica. When the lineage changes below n, n falls to the
fork: what lies beyond is kept, unreferenced, and never read.

Owns n, and which local segment comes next. Refuses to store n: a stored marker can pass a hole or be lost, a
computed one cannot.

Invariant: every offset of [start, n) is in a finished copy on the lineage or in a recorded gap, and n is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

import numpy as np

from tiering.outcome import Inconclusive
from tiering.segments.lineage import Epochs, covered_until
from tiering.segments.logs import Column
from tiering.segments.records import INT64_MAX, Gap, LogRecord
from tiering.segments.view import FinishedSegments, LogView


class Stop(str, Enum):
    """Why the frontier is not further on."""

    END = "end"  # no copy reaches beyond it
    HOLE = "hole"  # copies lie beyond, and nothing holds the offset itself
    OFF_LINEAGE = "off_lineage"  # a finished copy holds the offset, of another history than the log's
    INCOMPLETE = "incomplete"  # a finished copy should hold it, but its bytes end before or have holes


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """`[start, offset)` is covered. `next_covered`: where the next copy beyond begins, if there is one."""

    start: int
    offset: int
    stop: Stop
    next_covered: int | None


class Range(NamedTuple):
    start: int
    end: int


def frontier(view: LogView, lineage: Epochs | None = None) -> Frontier | Inconclusive:
    """The frontier of a log, on the lineage that its record has, or on another."""
    record = view.record
    if record is None:
        return Inconclusive("no leader's agent has claimed the log yet")
    lineage = lineage or record.leader_epochs
    start = max(record.log_start, record.first_tiered_offset)
    ends = clipped_ends(view.finished, lineage)
    gaps = clipped_gaps(record, lineage)
    begins = np.concatenate([view.finished.bases, np.array([gap.start for gap in gaps], np.int64)])
    reaches = np.concatenate([ends, np.array([gap.end for gap in gaps], np.int64)])
    covering = reaches > np.maximum(begins, start)
    offset, following = _contiguous(start, begins[covering], reaches[covering])
    return Frontier(
        start=start, offset=offset, stop=_stop(view.finished, ends, offset, following), next_covered=following
    )


def _contiguous(start: int, begins: Column, ends: Column) -> tuple[int, int | None]:
    """Up to where ranges cover everything from `start`, and where the next one begins."""
    if not len(begins):
        return start, None
    order = np.argsort(begins, kind="stable")
    begins, reach = begins[order], np.maximum.accumulate(ends[order])
    before = np.concatenate([[start], np.maximum(reach[:-1], start)])
    broken = np.flatnonzero(begins > before)
    if len(broken):
        return int(before[broken[0]]), int(begins[broken[0]])
    return max(start, int(reach[-1])), None


def _stop(finished: FinishedSegments, ends: Column, offset: int, following: int | None) -> Stop:
    holding = (finished.bases <= offset) & (finished.end_offsets > offset)
    if np.any(holding & (finished.covered_ends > offset)):
        return Stop.OFF_LINEAGE
    if np.any(holding):
        return Stop.INCOMPLETE
    return Stop.END if following is None else Stop.HOLE


def clipped_ends(finished: FinishedSegments, lineage: Epochs) -> Column:
    """Up to where each copy is the log's, its base if nowhere: `lineage.covered_until`, for many."""
    starts = np.array([each.start_offset for each in lineage], np.int64)
    epochs = np.array([each.epoch for each in lineage], np.int64)
    first = np.maximum(finished.bases, starts[0])
    place = np.searchsorted(starts, first, side="right") - 1
    agrees = (epochs[place] == finished.first_epochs) & (first < finished.covered_ends)
    next_start = np.append(starts[1:], INT64_MAX)[place]
    ends = np.where(agrees, np.minimum(finished.covered_ends, next_start), finished.bases)
    for row, own in finished.many_epochs.items():
        base, covered_end = int(finished.bases[row]), int(finished.covered_ends[row])
        ends[row] = covered_until(lineage, base, covered_end, own)
    return np.asarray(ends)


def clipped_gaps(record: LogRecord, lineage: Epochs) -> tuple[Range, ...]:
    """The recorded gaps, without what later leaders wrote since in the same place."""
    ends = (min(gap.end_offset, _written_anew(gap, lineage)) for gap in record.gaps)
    clipped = (Range(gap.start_offset, end) for gap, end in zip(record.gaps, ends, strict=True))
    return tuple(gap for gap in clipped if gap.start < gap.end)


def _written_anew(gap: Gap, lineage: Epochs) -> int:
    """The first offset by a leader later than the gap: if that is inside it, its bytes are new ones."""
    later = (each.start_offset for each in lineage if each.epoch > gap.leader_epoch)
    return next(later, INT64_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyNext:
    """This closed local segment is next. It holds the frontier, and may begin before it."""

    segment: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp:
    """No closed local segment reaches beyond the frontier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """These bytes come next, and this replica does not have them: copied by another, or recorded as a gap."""

    range: Range


Next: TypeAlias = CopyNext | CaughtUp | Missing


def next_segment(closed: Sequence[Range], offset: int) -> Next:
    """Of the closed local segments, by rising base, the one that holds the frontier.

    Never the first whose base is past it: replicas cut their segments differently, and after a change of
    leader the segment that straddles the frontier would be left out.
    """
    beyond = next((segment for segment in closed if segment.end > offset), None)
    if beyond is None:
        return CaughtUp()
    if beyond.start > offset:
        return Missing(range=Range(offset, beyond.start))
    return CopyNext(segment=beyond)
