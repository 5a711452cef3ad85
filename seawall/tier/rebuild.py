"""What a topic of metadata that was lost would be filled with: the bucket's copies, and a claim for each log.

A copy's record comes from its `.json`, to the byte (`tiering.segments.rebuild`). A log's own record is not in
the bucket. What the copies tell of it is told: the lineage, as far as all of them agree on one, and a start
at the first of them. Gaps, holds, a start that was moved and what is to be kept cannot be told.

    record       claims the log at the highest epoch that any copy was written under
    disagreeing  copies of one log that are not of one history: a record would have to choose, and is not made

The record stands behind the copies, not before them: a claim fences what lower epochs wrote behind it.

Owns this derivation. Refuses to guess between histories.

Invariant: on the lineage of a record that is made here every copy of the log counts in full.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from rules.identity import LogId, ObjectRef
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.keys import log_key
from tiering.segments.lineage import covered_until
from tiering.segments.rebuild import Retold
from tiering.segments.records import EpochStart, LogRecord, SegmentObjects, SegmentRecord
from tiering.store.errors import Missing
from tiering.store.interface import Stored

Append: TypeAlias = Callable[[LogId, bytes, bytes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreeing:
    """Copies of one log that are of several histories. `detail` names one."""

    log: LogId
    topic: str
    detail: str


def as_it_lies(told: Retold, head: Callable[[str], Stored]) -> Retold | None:
    """A copy that was restored lies under other versions than its .json names; None if its bytes do not."""
    live: dict[str, ObjectRef] = {}
    for kind, ref in told.record.objects.present():
        try:
            found = head(ref.key)
        except Missing:
            return None
        if (found.size_bytes, found.checksum) != (ref.size_bytes, ref.checksum):
            return None
        live[kind] = ref._replace(version_id=found.version_id)
    record = replace(told.record, objects=SegmentObjects(**live))
    return Retold(record=record, key=told.key, value=encode_segment(record), absent=())


def fill(whole: Iterable[Retold], append: Append, *, now_ms: int) -> tuple[Disagreeing, ...]:
    """Each log's copies, and behind them its claim; the logs that got none."""
    by_log: dict[LogId, list[Retold]] = defaultdict(list)
    for each in whole:
        by_log[each.record.log].append(each)
    disagreeing: list[Disagreeing] = []
    for log, copies in sorted(by_log.items()):
        for each in copies:
            append(log, each.key, each.value)
        record = log_record_of(
            (each.record for each in copies),
            event_id=str(uuid.uuid4()),
            now_ms=now_ms,
        )
        if isinstance(record, Disagreeing):
            disagreeing.append(record)
        else:
            append(log, log_key(log), encode_log(record))
    return tuple(disagreeing)


def log_record_of(copies: Iterable[SegmentRecord], *, event_id: str, now_ms: int) -> LogRecord | Disagreeing:
    """The record of the one log that these copies, at least one, are of."""
    by_base = sorted(copies, key=lambda each: (each.base_offset, each.end_offset))
    first = by_base[0]
    lineage = _lineage(by_base)
    if lineage is None:
        detail = "their leader epochs do not rise with their offsets"
        return Disagreeing(log=first.log, topic=first.topic, detail=detail)
    for each in by_base:
        if covered_until(lineage, each.base_offset, each.data_end, each.leader_epochs) != each.data_end:
            detail = f"segment {each.segment_id} at {each.base_offset} is of another history than the rest"
            return Disagreeing(log=first.log, topic=first.topic, detail=detail)
    latest = max(by_base, key=lambda each: each.leader_epoch)
    return LogRecord(
        log=first.log,
        topic=latest.topic,
        broker_id=latest.broker_id,
        claim_epoch=latest.leader_epoch,
        claim_offset=None,
        earlier_claims=(),
        leader_epochs=lineage,
        log_start=first.base_offset,
        first_tiered_offset=first.base_offset,
        gaps=(),
        generation=max(each.generation for each in by_base),
        keep_until_ms=None,
        holds=(),
        topic_deleted_at_ms=None,
        based_on=None,
        event_id=event_id,
        occurred_at_ms=now_ms,
    )


def _lineage(copies: Iterable[SegmentRecord]) -> tuple[EpochStart, ...] | None:
    """Each epoch from the first offset that any copy has of it; None if those do not rise together."""
    starts: dict[int, int] = {}
    for copy in copies:
        for epoch, start in copy.leader_epochs:
            starts[epoch] = min(start, starts.get(epoch, start))
    lineage = tuple(EpochStart(epoch, start) for epoch, start in sorted(starts.items()))
    rises = all(before.start_offset < after.start_offset for before, after in pairwise(lineage))
    return lineage if rises else None
