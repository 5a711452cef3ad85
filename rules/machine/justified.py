"""What justifies that something went, and what keeps it from being decided yet.

Owns these questions, which starts and segments have in common. Changes nothing but a due time, and says where
a cause cannot be told.

Invariant: a cause counts only if it held at some instant of the removal's own interval, widened by the
clocks' tolerance; what came true later justifies nothing that went before.
"""

from __future__ import annotations

from rules.machine import authority
from rules.machine.authority import UNLIMITED
from rules.machine.spans import Spans
from rules.machine.state import Advance, Gap, LogState, Removal, Rise, Segment, missing
from rules.machine.terms import Terms


def is_blocked(state: LogState, broker_id: int | None, from_ms: int, to_ms: int) -> bool:
    """Whether what is missing may be the very cause. `broker_id` None: of any.

    What was lost of a broker's disk is about its time. What was lost of the metadata or of the policy may be
    in force ever since.
    """
    return any(
        gap.closed_ms is None
        and gap.from_ms <= to_ms
        and (gap.broker_id is None or gap.to_ms >= from_ms)
        and (broker_id is None or gap.broker_id in (None, broker_id))
        for gap in state.gaps
    )


def waits(state: LogState, what: Advance | Removal | Rise, terms: Terms) -> int:
    """A declaration may come yet that authorises what effective retention did."""
    dues = (
        each.due_ms
        for each in state.deviations
        if each.since_ms <= what.at_ms + terms.clock_tolerance_ms
        and (each.reverted_ms is None or each.reverted_ms >= what.not_before_ms)
    )
    what.due_ms = max(what.due_ms, *dues, 0)
    return what.due_ms


def unexplained(state: LogState, from_ms: int, to_ms: int, ranges: Spans) -> None:
    told = ", ".join(f"[{start}, {end})" for start, end in ranges)
    gap = Gap(
        sort="cause_unknown",
        broker_id=None,
        from_ms=from_ms,
        to_ms=to_ms,
        detail=f"what would justify or condemn the removal of {told} was not seen",
        closed_ms=to_ms,
    )
    missing(state, gap)


def as_piece(removal: Removal) -> Segment:
    return Segment(
        base=removal.base,
        end=removal.end,
        size_bytes=removal.size_bytes,
        max_timestamp_ms=removal.max_timestamp_ms,
        bytes_at_most=removal.bytes_at_most,
    )


def by_retention(
    state: LogState, piece: Segment, sort: str, from_ms: int, to_ms: int
) -> tuple[list[int], bool]:
    """The policies, by offset, under which it may go, and whether that cannot be told."""
    offsets: list[int] = []
    is_unknown = False
    for offset, keeps in authority.authorised(state, sort, from_ms, to_ms):
        has_time = piece.max_timestamp_ms is not None and piece.max_timestamp_ms >= 0
        by_time = has_time and keeps.expires(piece.max_timestamp_ms or 0, to_ms)
        by_size = piece.bytes_at_most is not None and keeps.exceeds(piece.bytes_at_most, piece.size_bytes)
        if by_time or by_size:
            offsets.append(offset)
        is_unknown |= (not has_time and keeps.ms != UNLIMITED) or (
            piece.bytes_at_most is None and keeps.bytes != UNLIMITED
        )
    return offsets, is_unknown and not offsets


def went_with_the_topic(state: LogState, at_ms: int, terms: Terms) -> bool:
    return state.deleted_ms is not None and state.deleted_ms[0] <= at_ms + terms.settle_ms
