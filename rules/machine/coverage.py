"""What is where: the tier's spans, a replica's, and how many bytes a log holds with each offset counted once.

Local data is told as holes, not as what is there: a baseline says where a disk's log begins and ends, and
from then on only what goes missing inside is news. So a state needs no history of segments to know what is
covered.

Owns this arithmetic over a state. Changes nothing. Invariant: a copy counts from COPY_FINISHED to
DELETE_STARTED, unless a newer leader's claim stands before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rules.machine.spans import NONE, Spans, cut, join, meet, normal, span
from rules.machine.state import Copy, LogState, Replica, Segment

__all__ = [
    "Spans",
    "bytes_of",
    "disk_bytes",
    "finished",
    "local",
    "pieces",
    "readable",
    "recoverable",
    "tiered",
]

STARTED, FINISHED = "COPY_STARTED", "COPY_FINISHED"
END = 2**63


def finished(state: LogState, lacking: Iterable[str] = ()) -> Iterator[Copy]:
    """The copies that count, but for those that a table lacks."""
    left_out = set(lacking)
    for copy in state.tier.values():
        if copy.state == FINISHED and not copy.is_fenced and copy.segment_id not in left_out:
            yield copy


def tiered(state: LogState, lacking: Iterable[str] = ()) -> Spans:
    return normal((each.base, each.covered_end) for each in finished(state, lacking))


def local(state: LogState, replica: Replica) -> Spans:
    """What this disk holds, up to the highest watermark: beyond it nothing is promised."""
    if replica.local_start is None and replica.start is None:
        return NONE
    start = replica.local_start if replica.local_start is not None else replica.start
    end = state.watermark if state.watermark is not None else END
    return cut(span(start or 0, end), replica.holes)


def readable(state: LogState, replica: Replica, *, has_tier: bool) -> Spans:
    """As this replica would serve it: its table, its disk."""
    above = tiered(state, state.lacking.get(replica.broker_id, ())) if has_tier else NONE
    return join(above, local(state, replica))


def recoverable(state: LogState, ranges: Spans) -> tuple[Spans, tuple[int, ...]]:
    """What of a loss lies in the tier or in objects' versions, and which brokers' disks hold all of it."""
    kept = [(each.base, each.covered_end) for each in state.tier.values() if each.is_versioned]
    versions = normal([*kept, *((each.base, each.end) for each in state.buried.values())])
    if state.is_gone:  # its directories are renamed, and deleted a minute later
        return meet(join(tiered(state), versions), ranges), ()
    holders = [
        broker_id
        for broker_id, replica in sorted(state.replicas.items())
        if ranges and not replica.is_dark and not cut(ranges, local(state, replica))
    ]
    return meet(join(tiered(state), versions), ranges), tuple(holders)


def disk_bytes(state: LogState, replica: Replica) -> int | None:
    """As the last reading had it, or what has closed since and lies there, if that is more already. What a
    cleaner leaves of a segment is less than what was told of it."""
    if replica.disk_bytes is None or state.was_compacted:
        return replica.disk_bytes
    closed = sum(
        each.size_bytes
        for each in replica.segments.values()
        if not replica.holes or not meet(replica.holes, span(each.base, each.end))
    )
    return max(replica.disk_bytes, closed)


def bytes_of(state: LogState, replica: Replica | None, *, with_tier: bool) -> tuple[int | None, int | None]:
    """Of the log as this replica has it: each offset once, and however wrongly they can be counted.

    Beside a stock broker a replica's retention sees its own disk alone. With KIP-405 it sees the tier, too:
    KAFKA-20732 counted what lies in both twice, KAFKA-17062 copies that had failed.
    """
    disk = disk_bytes(state, replica) if replica is not None else None
    if not with_tier:
        return disk, disk
    copies = sorted(finished(state), key=lambda each: (each.base, each.end, each.segment_id))
    unique, reached = 0, 0
    beside = 0  # of the tier, what lies on the disk too
    first = replica.local_start if replica is not None else None
    for copy in copies:
        fresh = max(copy.end - max(copy.base, reached), 0)
        size = copy.size_bytes * fresh // max(copy.end - copy.base, 1)
        unique += size
        is_on_disk = first is not None and copy.base >= first
        if replica is not None and is_on_disk and not meet(replica.holes, span(copy.base, copy.end)):
            beside += size
        reached = max(reached, copy.end)
    counted = sum(each.size_bytes for each in state.tier.values() if each.state in (STARTED, FINISHED))
    if disk is None:
        return unique, counted
    return unique + max(0, disk - beside), counted + disk


def pieces(state: LogState, replica: Replica, start: int, end: int) -> list[Segment]:
    """The segments that lie in `[start, end)` still, on this disk or in the tier, from the head on.

    Each with what the log held when it would have been its turn: those below go first, wherever the start is.
    """
    lying = {
        (each.base, each.end): (each.size_bytes, each.max_timestamp_ms)
        for each in replica.segments.values()
        if each.base < end
    }
    if state.is_kip405:
        for copy in finished(state):
            if copy.base < end:
                lying[copy.base, copy.end] = (copy.size_bytes, copy.max_timestamp_ms)
    total, _ = bytes_of(state, replica, with_tier=state.is_kip405)
    out = []
    for (base, stop), (size_bytes, newest_ms) in sorted(lying.items()):
        piece = Segment(base=base, end=stop, size_bytes=size_bytes, max_timestamp_ms=newest_ms)
        piece.bytes_at_most = total
        if stop > start:
            out.append(piece)
        is_there = not meet(replica.holes, span(base, stop))
        if total is not None and is_there:
            total = max(0, total - size_bytes)
    return out
