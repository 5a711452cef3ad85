"""Where a log should start now, by time and by size: the metadata act of expiry, which removes nothing.

    time    a copy has expired when its newest record's timestamp is older than the total retention; one
            without a timestamp never has
    size    a copy has expired if the log keeps, at and after the copy's end, its total retention for certain
            (`unique_bytes`)

The start moves over the offsets that expired copies and recorded gaps cover without a break from where it
stands. So one copy that has not expired keeps all behind it, as readers would otherwise meet a hole.

Owns the walk. Refuses to pass the frontier, to enter a hold, and to free more than the blast limit.

Invariant: the new start is the furthest that these rules allow; it is the end of a copy, or of a gap behind
one; and it never moves back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, chain
from typing import NamedTuple

from tiering.retention.facts import TierCopy, TierFacts
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote_policy import BlastLimit, RemotePolicy
from tiering.retention.unique_bytes import Extent, UniqueBytes
from tiering.segments.records import NO_TIMESTAMP_MS, SegmentId, SegmentState

# By how much a producer's clock may be ahead (Kafka's own default, message.timestamp.after.max.ms).
CLOCK_AHEAD_MS = 3_600_000


class FreedBy(str, Enum):
    """Why a segment is freed."""

    TIME = "time"
    SIZE = "size"
    START = "start"  # it lies below what expired, and is itself of another lineage or covered by others


class Freed(NamedTuple):
    """A segment that lies wholly below the new start, and did not below the old."""

    segment_id: SegmentId
    base_offset: int
    end_offset: int
    size_bytes: int
    by: FreedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """The log's record is to say `new_start`. `then`: why not further."""

    old_start: int
    new_start: int
    freed: tuple[Freed, ...]
    then: Keep


def new_start(
    facts: TierFacts,
    policy: RemotePolicy,
    *,
    now_ms: int,
    local: tuple[Extent, ...],
    may_advance: BlastLimit,
) -> Advance | Keep:
    """The start that a log should have. `local` is what its leader has on disk; less than all is safe."""
    if policy.total_ms is None and policy.total_bytes is None:
        return Keep(reason=Reason.UNLIMITED, detail="no total retention is declared")
    walk = _Walk(facts, policy, now_ms, local)
    stops = list(walk.stops())
    allowed = [stop for stop in stops if may_advance.allows(*walk.freed_below(stop))]
    if len(allowed) < len(stops):
        detail = f"{may_advance.segments} segments, {may_advance.size_bytes} bytes may be freed now"
        then = Keep(reason=Reason.BLAST_LIMIT, detail=detail)
    else:
        then = walk.why_not_past(allowed[-1] if allowed else walk.start)
    if not allowed:
        return then
    return Advance(old_start=walk.start, new_start=allowed[-1], freed=walk.freed(allowed[-1]), then=then)


class _Walk:
    """One log at one moment."""

    def __init__(
        self, facts: TierFacts, policy: RemotePolicy, now_ms: int, local: tuple[Extent, ...]
    ) -> None:
        assert facts.record is not None, "without a record the table is doubted"
        self.start = facts.record.log_start
        self._policy = policy
        self._now_ms = now_ms
        self._finished = tuple(facts.finished())
        self._gaps = facts.gaps
        # A hold behind the start keeps what follows as well: what is removed is a prefix.
        self._held_from = min((hold.start_offset for hold in facts.record.holds), default=None)
        self._frontier = self.start if facts.frontier is None else facts.frontier
        in_tier = (Extent(c.base_offset, c.end_offset, c.size_bytes) for c in self._finished if c.is_whole)
        self._unique = UniqueBytes(chain(in_tier, local))
        # What a start frees: of these, by rising end, those that end at or below it.
        removable = [c for c in facts.copies if c.state is not SegmentState.COPY_STARTED]
        self._freeable = sorted(
            (c for c in removable if c.end_offset > self.start),
            key=lambda copy: (copy.end_offset, copy.order),
        )
        self._freeable_ends = [copy.end_offset for copy in self._freeable]
        self._freeable_bytes = list(accumulate((copy.size_bytes for copy in self._freeable), initial=0))

    def stops(self) -> Iterator[int]:
        """Where the start could come to stand, rising."""
        expired = ((c.base_offset, c.covered_end, True) for c in self._finished if self._expired(c))
        gaps = ((start, end, False) for start, end in self._empty_gaps())
        bound = self._frontier if self._held_from is None else min(self._frontier, self._held_from)
        at, has_expired = self.start, False
        for base, end, is_copy in sorted(chain(expired, gaps)):
            if base > at:
                return
            if at < end <= bound:
                at, has_expired = end, has_expired or is_copy
                if has_expired:
                    yield at

    def freed_below(self, stop: int) -> BlastLimit:
        """How much a start frees."""
        count = bisect_right(self._freeable_ends, stop)
        return BlastLimit(count, self._freeable_bytes[count])

    def freed(self, stop: int) -> tuple[Freed, ...]:
        copies = self._freeable[: bisect_right(self._freeable_ends, stop)]
        return tuple(
            Freed(
                copy.segment_id,
                copy.base_offset,
                copy.end_offset,
                copy.size_bytes,
                (self._expired(copy) if copy.is_whole else None) or FreedBy.START,
            )
            for copy in sorted(copies, key=lambda copy: copy.order)
        )

    def why_not_past(self, stop: int) -> Keep:
        """What keeps the start from going on from here, the blast limit aside."""
        covering = [c for c in self._finished if c.base_offset <= stop < c.covered_end]
        held_from = self._held_from
        if held_from is not None and (stop >= held_from or any(map(self._expired, covering))):
            return Keep(reason=Reason.HELD, detail=f"a hold begins at {held_from}")
        if stop >= self._frontier or not covering:
            return Keep(reason=Reason.AT_FRONTIER, detail=f"no copy goes on from {stop}")
        if self._policy.total_ms is not None:
            return self._why_not_old(covering)
        detail = f"{self._unique.from_offset(stop)} bytes from {stop} on, of {self._policy.total_bytes}"
        return Keep(reason=Reason.NOT_EXPIRED, detail=detail)

    def _why_not_old(self, covering: list[TierCopy]) -> Keep:
        """Of several copies the one that would expire first tells; one without a timestamp never does."""
        dated = [copy for copy in covering if copy.max_timestamp_ms != NO_TIMESTAMP_MS]
        if not dated:
            detail = f"segment {covering[0].segment_id} has no timestamp"
            return Keep(reason=Reason.TIMESTAMP_UNKNOWN, detail=detail)
        first = min(dated, key=lambda copy: copy.max_timestamp_ms)
        detail = f"segment {first.segment_id} has a record of {first.max_timestamp_ms}"
        is_ahead = first.max_timestamp_ms > self._now_ms + CLOCK_AHEAD_MS
        reason = Reason.TIMESTAMP_IN_FUTURE if is_ahead else Reason.NOT_EXPIRED
        return Keep(reason=reason, detail=detail)

    def _expired(self, copy: TierCopy) -> FreedBy | None:
        if self._is_old(copy):
            return FreedBy.TIME
        limit = self._policy.total_bytes
        if limit is not None and self._unique.from_offset(copy.covered_end) >= limit:
            return FreedBy.SIZE
        return None

    def _is_old(self, copy: TierCopy) -> bool:
        limit, newest_ms = self._policy.total_ms, copy.max_timestamp_ms
        return limit is not None and newest_ms != NO_TIMESTAMP_MS and self._now_ms - newest_ms > limit

    def _empty_gaps(self) -> Iterator[tuple[int, int]]:
        """The gaps, each up to where a copy that has not expired has the bytes after all."""
        kept = [c for c in self._finished if c.covered_end > c.base_offset and not self._expired(c)]
        for start, end in self._gaps:
            inside = (c.base_offset for c in kept if c.base_offset < end and c.covered_end > start)
            yield start, max(start, min(inside, default=end))
