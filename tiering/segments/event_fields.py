"""What every event about an attempt says, from the attempt's record.

Owns this one correspondence. A record's event keeps the record's id and time, so that the two can be told to
be of one act.
"""

from __future__ import annotations

from typing import Any

from tiering.segments.records import SegmentRecord


def about(record: SegmentRecord) -> dict[str, Any]:
    """The fields of a SegmentEvent."""
    return {
        "event_id": record.event_id,
        "occurred_at_ms": record.occurred_at_ms,
        "log": record.log,
        "topic": record.topic,
        "leader_epoch": record.leader_epoch,
        "segment_id": record.segment_id,
        "base_offset": record.base_offset,
        "end_offset": record.end_offset,
    }
