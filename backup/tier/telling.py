"""What a restore to the tier tells the audit: the copies that count again, and the ranges that are back.

    copy_finished   of each segment, in its new generation
    restored        of each unbroken range: a gap that was passed is in none, so no finding about it closes

Owns these events. Refuses to say more than was read back.

Invariant: the same plan tells the same events however often it is carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backup.plan.values import Piece, Plan, Range
from backup.tier.check import own_id
from rules.events import CopyFinished, Restored, RestoreTarget
from rules.identity import ObjectRef
from tiering.segments.event_fields import about
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.segments.view import LogView

EVENT_PIECES_MAX = 200  # each names three objects, and an event is at most some megabytes


def unbroken(pieces: tuple[Piece, ...], most: int | None = None) -> list[tuple[Piece, ...]]:
    """The pieces in runs without a gap between them, of at most so many each."""
    runs: list[list[Piece]] = []
    for piece in pieces:
        if runs and runs[-1][-1].end == piece.start and (most is None or len(runs[-1]) < most):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return [tuple(run) for run in runs]


def ranges_of(pieces: tuple[Piece, ...]) -> tuple[Range, ...]:
    """What the pieces cover without a gap, in ranges."""
    return tuple(Range(run[0].start, run[-1].end) for run in unbroken(pieces))


def events_of(
    plan: Plan, view: LogView, segments: Mapping[SegmentId, SegmentRecord], principal: str
) -> Iterator[CopyFinished | Restored]:
    """Of copies that this plan published. The ranges go down: each joins on to what the judge has by then."""
    record = view.record
    assert record is not None, "it was looked at"
    offsets = {each.segment_id: each.metadata_offset for each in view.segments()}
    own = [each for each in segments.values() if each.event_id == own_id(plan, each.segment_id)]
    own.sort(key=lambda each: each.base_offset)
    at_ms = max((each.occurred_at_ms for each in own), default=record.occurred_at_ms)
    for found in own:
        yield CopyFinished(
            **about(found),
            generation=found.generation,
            data_end=found.data_end,
            size_bytes=found.size_bytes,
            record_count=found.record_count,
            max_timestamp_ms=found.max_timestamp_ms,
            objects=tuple(ref for _, ref in found.objects.present()),
            metadata_offset=offsets[found.segment_id],
        )
    for run in reversed(unbroken(plan.body.pieces, EVENT_PIECES_MAX)):
        start, end = run[0].start, run[-1].end
        yield Restored(
            event_id=own_id(plan, f"restored-{start}"),
            occurred_at_ms=at_ms,
            log=record.log,
            topic=record.topic,
            leader_epoch=record.claim_epoch,
            restore_id=own_id(plan, "restore"),
            principal=principal,
            restore_target=RestoreTarget.TIER,
            start_offset=start,
            end_offset=end,
            broker_id=None,
            generation=record.generation,
            keep_until_ms=record.keep_until_ms,
            objects=_sources(run),
            plan_hash=plan.hash,
            planned_start=start,
            planned_end=end,
        )


def _sources(run: tuple[Piece, ...]) -> tuple[ObjectRef, ...]:
    return tuple(ref for piece in run for _, ref in piece.record.objects.present())
