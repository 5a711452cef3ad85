"""When the topic may forget a removed segment: its last record is followed by a tombstone.

Until then the record says which versions of which objects a restore would put back; after the backup window
the bucket's lifecycle has taken the versions, and the record would only make every replay longer.

Owns that time. Refuses what somebody holds, and more than FORGOTTEN_PER_RUN at once.

Invariant: only what is in DELETE_FINISHED, and has been for the whole window, is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

from tiering.retention.facts import overlaps
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import TABLE_GUARDS, Situation, claim_is_ours
from tiering.segments.records import SegmentId, SegmentRecord, SegmentState

FORGOTTEN_PER_RUN = 1_000


def to_forget(now: Situation, removed: Iterable[SegmentRecord]) -> tuple[SegmentId, ...] | Keep:
    """Of the removed segments, in the order in which they were, those that nobody can put back any more."""
    for guard in (*TABLE_GUARDS, claim_is_ours):
        if kept := guard(now):
            return kept
    due: list[SegmentId] = []
    for record in removed:
        age_ms = now.now_ms - record.occurred_at_ms
        if len(due) == FORGOTTEN_PER_RUN or age_ms < now.policy.window_ms:
            break
        is_held = any(overlaps(hold, record.base_offset, record.end_offset) for hold in now.record.holds)
        if record.state is SegmentState.DELETE_FINISHED and not is_held:
            due.append(record.segment_id)
    if due:
        return tuple(due)
    return Keep(reason=Reason.GRACE, detail="no segment was removed longer ago than the backup window")
