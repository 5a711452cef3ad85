"""The event that a log's record speaks of: what an agent owes that was killed between the two.

A claim, and a gap, is first a record of the metadata topic and then an event. The record says all that the
event does, its id among it, so that the event can be made again from it, letter by letter: whoever hears it
twice hears one act.

Owns which event it is. Refuses to know whether it was told. Only the record that stands is looked at, and
only where the broker of the asking agent wrote it: whatever is written since, a hold or a new start, has an
event id of its own, and the record before is gone.

Invariant: for a record that `one_log` has just published, the event that it emits then.
"""

from __future__ import annotations

from rules.events import GapRecorded, LeadershipClaimed
from tiering.segments.records import Gap, LogRecord
from tiering.segments.view import LogView


def claimed(record: LogRecord, metadata_offset: int) -> LeadershipClaimed:
    """What is told of a claim that stands at this offset of the metadata topic."""
    return LeadershipClaimed(
        event_id=record.event_id,
        occurred_at_ms=record.occurred_at_ms,
        log=record.log,
        topic=record.topic,
        leader_epoch=record.claim_epoch,
        broker_id=record.broker_id,
        metadata_offset=metadata_offset,
    )


def gap_recorded(record: LogRecord, gap: Gap, metadata_offset: int) -> GapRecorded:
    """What is told of a gap by the record that was the first to have it."""
    return GapRecorded(
        event_id=gap.event_id,
        occurred_at_ms=gap.recorded_at_ms,
        log=record.log,
        topic=record.topic,
        leader_epoch=gap.leader_epoch,
        start_offset=gap.start_offset,
        end_offset=gap.end_offset,
        cause=gap.cause,
        metadata_offset=metadata_offset,
    )


def owed(view: LogView | None, broker_id: int) -> LeadershipClaimed | GapRecorded | None:
    """The event that goes with the log's record as it stands, if this broker's agent is to tell it."""
    if view is None or view.record is None or view.record_offset is None:
        return None
    record = view.record
    if record.broker_id != broker_id:
        return None
    if record.claim_offset is None:
        return claimed(record, view.record_offset)
    mine = [gap for gap in record.gaps if gap.event_id == record.event_id]
    return gap_recorded(record, mine[0], view.record_offset) if mine else None
