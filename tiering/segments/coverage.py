"""Which copy answers for which offset: what may be read from the tier, each offset once.

Only `[start, frontier)` is there to be read: below, the log has been cut; at and beyond, the broker has the
bytes, or nobody, or they are of another lineage. Where copies overlap the one that reaches furthest is
taken, and of two that reach as far the one committed first: any two tables choose alike.

Owns lookups by offset, by offset and epoch, and by time. Refuses to read bytes, and to end a search by time
at the first copy that has none late enough: timestamps need not rise.

Invariant: the pieces of a range are in order, do not overlap, and leave nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tiering.outcome import Inconclusive
from tiering.segments.frontier import Frontier, Range, clipped_ends, clipped_gaps, frontier
from tiering.segments.lineage import Epochs, epoch_at
from tiering.segments.logs import Column
from tiering.segments.records import SegmentId
from tiering.segments.view import FinishedSegments, LogView


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`[start, end)` is read from this segment, which may hold more."""

    start: int
    end: int
    segment_id: SegmentId


@dataclass(frozen=True, slots=True, kw_only=True)
class GapPiece:
    """`[start, end)` is on no replica and in no copy, and that is on record."""

    start: int
    end: int


Answer: TypeAlias = Piece | GapPiece


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What of a log can be read from the tier."""

    frontier: Frontier
    lineage: Epochs
    gaps: tuple[Range, ...]
    finished: FinishedSegments
    ends: Column  # each finished segment's, clipped to the lineage
    reach: Column  # the furthest of it and those before it

    def find(self, offset: int, epoch: int | None = None) -> Answer | None:
        """What answers for an offset; with an epoch, only if the log's record there is of that epoch."""
        if epoch is not None and epoch_at(self.lineage, offset) != epoch:
            return None
        return next(self.pieces(offset, offset + 1), None)

    def pieces(self, start: int, end: int) -> Iterator[Answer]:
        """What answers for each offset of a range that can be read, in order."""
        at = max(start, self.frontier.start)
        end = min(end, self.frontier.offset)
        while at < end:
            answer = self._at(at)
            until = min(answer.end, end)
            yield (
                GapPiece(start=at, end=until)
                if isinstance(answer, GapPiece)
                else Piece(start=at, end=until, segment_id=answer.segment_id)
            )
            at = until

    def from_time(self, timestamp_ms: int) -> Iterator[Piece]:
        """In order, the pieces of segments that have a record of this time or later.

        The first such record is in the first of them that has one within the piece: the segment's latest may
        lie outside of it, so that the reader has to look.
        """
        late = {
            self.finished.segment_id(row)
            for row in np.flatnonzero(self.finished.max_timestamps_ms >= timestamp_ms).tolist()
        }
        for piece in self.pieces(self.frontier.start, self.frontier.offset):
            if isinstance(piece, Piece) and piece.segment_id in late:
                yield piece

    def unreferenced(self) -> Iterator[SegmentId]:
        """Finished segments of which nothing can be read: expired, beyond the frontier, or not the log's."""
        first = np.maximum(self.finished.bases, self.frontier.start)
        last = np.minimum(self.ends, self.frontier.offset)
        for row in np.flatnonzero(first >= last).tolist():
            yield self.finished.segment_id(row)

    def _at(self, offset: int) -> Answer:
        """The whole of what answers for an offset below the frontier."""
        row = int(np.searchsorted(self.finished.bases, offset, side="right")) - 1
        best: tuple[int, int] | None = None
        chosen = -1
        while row >= 0 and self.reach[row] > offset:
            candidate = (int(self.ends[row]), -int(self.finished.metadata_offsets[row]))
            if candidate[0] > offset and (best is None or candidate > best):
                best, chosen = candidate, row
            row -= 1
        if best is not None:
            return Piece(start=offset, end=best[0], segment_id=self.finished.segment_id(chosen))
        gap = next(each for each in self.gaps if each.start <= offset < each.end)
        following = int(np.searchsorted(self.finished.bases, offset, side="right"))
        # A copy that begins inside the gap has the bytes after all, on whatever replica they were.
        begins = [int(self.finished.bases[row]) for row in range(following, len(self.ends))]
        held = (begin for begin, end in zip(begins, self.ends[following:], strict=True) if end > begin)
        return GapPiece(start=offset, end=min(gap.end, next(held, gap.end)))


def coverage(view: LogView, lineage: Epochs | None = None) -> Coverage | Inconclusive:
    """What of a log can be read, on the lineage that its record has, or on another."""
    found = frontier(view, lineage)
    if isinstance(found, Inconclusive) or view.record is None:
        return Inconclusive("no leader's agent has claimed the log yet")
    lineage = lineage or view.record.leader_epochs
    ends = clipped_ends(view.finished, lineage)
    return Coverage(
        frontier=found,
        lineage=lineage,
        gaps=clipped_gaps(view.record, lineage),
        finished=view.finished,
        ends=ends,
        reach=np.maximum.accumulate(ends),
    )
