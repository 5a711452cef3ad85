"""What Kafka's tier holds of each log, all in all, at one offset of its topic: a baseline, no change.

Owns the digest: the SHA-256 over a line `segment_id base_offset end_offset state` for each copy that is
there, by base offset, then id; the state is started, finished or deleting.

Invariant: two readers that have read the same records say the same of a log at the same offset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from audit_engine.observers.kip405.segments import NOT_KNOWN, Copy
from rules.events import Source, TierState
from rules.identity import LogId


def tier_states(
    copies: Iterable[Copy],
    *,
    cluster_id: str,
    metadata_partition: int,
    metadata_offset: int,
    now_ms: int,
    new_id: Callable[[], str],
) -> Iterator[TierState]:
    """One of each log that has a copy, in the order of their names. The copies are of one partition."""
    of_log: dict[tuple[str, int, str], list[Copy]] = {}
    for copy in copies:
        of_log.setdefault((copy.topic, copy.partition, copy.topic_id), []).append(copy)
    for topic, partition, topic_id in sorted(of_log):
        held = sorted(of_log[topic, partition, topic_id], key=_place)
        counting = [copy for copy in held if copy.counts]
        start, end = covered(counting)
        yield TierState(
            event_id=new_id(),
            occurred_at_ms=now_ms,
            log=LogId(cluster_id, topic_id, partition),
            topic=topic,
            leader_epoch=NOT_KNOWN,
            metadata_partition=metadata_partition,
            metadata_offset=metadata_offset,
            digest=digest(held),
            tiered_start=start,
            frontier=end,
            segment_count=len(counting),
            size_bytes=sum(copy.size_bytes for copy in counting),
            source=Source.REMOTE_LOG_METADATA,
        )


def covered(counting: Iterable[Copy]) -> tuple[int, int]:
    """From the first offset on as far as there is no hole; the copies are in the order of their bases."""
    start = end = NOT_KNOWN
    for copy in counting:
        if copy.base_offset == NOT_KNOWN:
            continue
        if start == NOT_KNOWN:
            start, end = copy.base_offset, copy.end_offset
        elif copy.base_offset <= end:
            end = max(end, copy.end_offset)
        else:
            break
    return start, end


def digest(held: Iterable[Copy]) -> str:
    lines = "".join(f"{c.segment_id} {c.base_offset} {c.end_offset} {_state(c)}\n" for c in held)
    return hashlib.sha256(lines.encode()).hexdigest()


def _place(copy: Copy) -> tuple[int, str]:
    return copy.base_offset, copy.segment_id


def _state(copy: Copy) -> str:
    if copy.deleting is not None:
        return "deleting"
    return "finished" if copy.finished is not None else "started"
