"""What may follow what in the life of a copy.

                     COPY_STARTED ──► COPY_FINISHED ──► DELETE_STARTED ──► DELETE_FINISHED ──► (tombstone)
                          └───────────────────────────────►┘
    each state           itself, unchanged: a retry
    COPY_FINISHED        COPY_FINISHED of the next generation: its objects were put back under new versions
    DELETE_STARTED,      COPY_STARTED or COPY_FINISHED of the next generation: a restore
    DELETE_FINISHED
    nothing known        COPY_STARTED of generation 0; of a later one also COPY_FINISHED: a restore, the
                         deletion before it being forgotten

What an id names may not change on the way (one id, one content), nor may a finished copy's objects within a
generation.

Owns this table. Refuses to know about leaders and offsets of the topic: whom to believe is the table's.

Invariant: what is not listed is Refused, with the reason; nothing is put right in passing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tiering.segments.records import SegmentRecord, SegmentState

STARTED = SegmentState.COPY_STARTED
FINISHED = SegmentState.COPY_FINISHED
DELETING = SegmentState.DELETE_STARTED
DELETED = SegmentState.DELETE_FINISHED

_WITHIN_GENERATION = frozenset(
    {(state, state) for state in SegmentState}
    | {(STARTED, FINISHED), (STARTED, DELETING), (FINISHED, DELETING), (DELETING, DELETED)}
)
_NEXT_GENERATION = frozenset(
    {(FINISHED, FINISHED)} | {(gone, copy) for gone in (DELETING, DELETED) for copy in (STARTED, FINISHED)}
)
_ORDER = {state: place for place, state in enumerate(SegmentState)}
_UNCHANGEABLE = (
    "log",
    "topic",
    "base_offset",
    "end_offset",
    "data_end",
    "leader_epochs",
    "max_timestamp_ms",
    "record_count",
    "batch_count",
    "size_bytes",
    "has_txn_index",
    "key_stem",
)


@dataclass(frozen=True, slots=True)
class Legal:
    """It may follow. `opens_generation`: by a restore."""

    opens_generation: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """It may not follow; `reason` is stable for programs, `detail` is for people."""

    reason: str
    detail: str


Verdict: TypeAlias = Legal | Refused


def first_record(record: SegmentRecord) -> Verdict:
    """Whether a segment's life may begin so, where nothing of it was seen before and all would have been."""
    if record.state is STARTED or (record.generation > 0 and record.state is FINISHED):
        return Legal(opens_generation=record.generation > 0)
    return Refused("no_start", f"{record.state.value} of a segment that nobody started")


def next_record(before: SegmentRecord, after: SegmentRecord) -> Verdict:
    """Whether `after` may replace `before` as the record of one segment."""
    if changed := _changed_content(before, after):
        return changed
    step = (before.state, after.state)
    if after.generation == before.generation + 1 and step in _NEXT_GENERATION:
        return Legal(opens_generation=True)
    if after.generation != before.generation:
        return Refused("generation", f"{_said(before, after)} {after.generation}")
    if step not in _WITHIN_GENERATION:
        return Refused("transition", f"{_said(before, after)} the same")
    return _changed_objects(before, after) or Legal()


def later_record(before: SegmentRecord, after: SegmentRecord) -> Verdict:
    """Whether `after` may come some steps behind `before`: compaction may have taken those between them."""
    if changed := _changed_content(before, after):
        return changed
    if after.generation > before.generation:
        return Legal(opens_generation=True)
    if after.generation == before.generation and _ORDER[before.state] <= _ORDER[after.state]:
        return _changed_objects(before, after) or Legal()
    return next_record(before, after)


def tombstone(before: SegmentRecord) -> Verdict:
    """Whether a segment's key may be forgotten altogether."""
    if before.state is DELETED:
        return Legal()
    return Refused("tombstone", f"a tombstone for a segment in {before.state.value}")


def _changed_content(before: SegmentRecord, after: SegmentRecord) -> Refused | None:
    changed = [name for name in _UNCHANGEABLE if getattr(before, name) != getattr(after, name)]
    if not changed:
        return None
    return Refused("content_changed", f"{', '.join(changed)} differ from what the id named before")


def _changed_objects(before: SegmentRecord, after: SegmentRecord) -> Refused | None:
    if before.state is STARTED or before.objects == after.objects:
        return None
    return Refused("objects_changed", f"{_said(before, after)} the same, with other objects")


def _said(before: SegmentRecord, after: SegmentRecord) -> str:
    return f"{before.state.value} of generation {before.generation}, then {after.state.value} of"
