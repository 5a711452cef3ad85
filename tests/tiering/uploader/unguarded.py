"""The uploader with one guard taken away, once for each: what the model has to catch.

Each variant is what a system in the field does, or what a reader of the code might find simpler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rules.events import DeleteCause, GapCause
from tiering.log.columns import ChainEnd, HeaderBlock, first_defect
from tiering.log.defects import DefectKind
from tiering.outcome import Inconclusive
from tiering.segments.frontier import CaughtUp, CopyNext, Frontier, Next, Range, frontier
from tiering.segments.lineage import Epochs
from tiering.segments.logs import Column
from tiering.segments.records import SegmentRecord, SegmentState
from tiering.segments.view import FinishedSegments, LogView
from tiering.store.keys import ObjectKind
from tiering.uploader.copy import LogAttempts, Ports
from tiering.uploader.decide import Copy, LogFacts, RecordGap, Stalled, Step, UpToDate, next_step
from tiering.uploader.one_log import OneLog
from tiering.uploader.service import UploadService
from tiering.uploader.status import LogStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Unguarded:
    """What replaces what."""

    name: str
    patches: Mapping[str, Callable[..., object]]


def any_bound(facts: LogFacts) -> Step:
    """T1: what is closed may leave, committed or not."""
    return next_step(replace(facts, may_leave_below=2**60))


def no_second_look(*_: object) -> None:
    """T1: the leader is not asked before and after the copy."""


def by_base(closed: Sequence[Range], offset: int) -> Next:
    """T2: a marker of bases takes the first segment that begins at the frontier or later."""
    following = next((segment for segment in closed if segment.start >= offset), None)
    return CaughtUp() if following is None else CopyNext(segment=following)


def past_failures(view: LogView, lineage: Epochs | None = None) -> Frontier | Inconclusive:
    """T2: a marker that moves on with every attempt, whatever becomes of it."""
    found = frontier(view, lineage)
    if isinstance(found, Inconclusive):
        return found
    return replace(found, offset=max([found.offset, *(each.end_offset for each in view.segments())]))


def any_hole(facts: LogFacts) -> Step:
    """T2: what this replica has no file for is recorded as being on none."""
    step = next_step(facts)
    if isinstance(step, Stalled):
        return RecordGap(
            start_offset=step.start_offset, end_offset=step.end_offset, cause=GapCause.SEGMENT_MISSING
        )
    return step


def no_record_of_a_hole(facts: LogFacts) -> Step:
    """T2: what is gone is gone; go on behind it."""
    step = next_step(facts)
    if isinstance(step, RecordGap):
        beyond = next((each for each in facts.local if each.base_offset >= step.end_offset), None)
        return UpToDate() if beyond is None else Copy(segment=beyond, covers_from=step.end_offset)
    return step


def any_bytes(block: HeaderBlock, before: ChainEnd) -> tuple[int, DefectKind] | None:
    """T3: checksums are not looked at."""
    return first_defect(replace(block, crc_matches=np.ones_like(block.crc_matches)), before)


def objects_first(record: SegmentRecord, cause: DeleteCause, ports: Ports, attempts: LogAttempts) -> None:
    """T5: the objects go, then the metadata says so."""
    for kind in ObjectKind:
        ports.objects.mark_deleted(f"{record.key_stem}.{kind.value}")
    for state in (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED):
        ports.tier.publish(
            replace(
                record,
                state=state,
                leader_epoch=attempts.leader_epoch,
                event_id=ports.new_id(),
                occurred_at_ms=ports.now_ms(),
            )
        )


def no_fence(self: object, epoch: int, offset: int) -> bool:
    """T6: whoever writes is believed."""
    return False


def no_fences(self: object, epochs: Column, offsets: Column) -> Column:
    """T6: the same, for many."""
    return np.zeros(len(offsets), np.bool_)


def any_lineage(finished: FinishedSegments, lineage: Epochs) -> Column:
    """T6: a copy is the log's, of whatever epochs it is."""
    return finished.covered_ends


_advance = UploadService._advance


def never_again(self: UploadService, one: OneLog) -> None:
    """T7: after an error that log's worker is gone, and nobody says so."""
    if one.status.failures == 0:
        _advance(self, one)
    else:
        self._busy.discard(one.status.log)


def no_edge(self: object, status: LogStatus, act: Callable[[], None]) -> bool:
    """T7: what one log runs into is everybody's."""
    act()
    return True


SERVICE = "tiering.uploader.service.UploadService"
VARIANTS = (
    Unguarded(
        name="t1_bound",
        patches={
            "tiering.uploader.one_log.next_step": any_bound,
            "tiering.uploader.copy._check_lead": no_second_look,
        },
    ),
    Unguarded(name="t2_by_base", patches={"tiering.uploader.decide.next_segment": by_base}),
    Unguarded(name="t2_past_failures", patches={"tiering.uploader.one_log.frontier": past_failures}),
    Unguarded(name="t2_any_hole", patches={"tiering.uploader.one_log.next_step": any_hole}),
    Unguarded(name="t2_no_record", patches={"tiering.uploader.one_log.next_step": no_record_of_a_hole}),
    Unguarded(name="t3_any_bytes", patches={"tiering.log.segment.first_defect": any_bytes}),
    Unguarded(name="t5_objects_first", patches={"tiering.uploader.one_log.remove_segment": objects_first}),
    Unguarded(
        name="t6_no_fence",
        patches={
            "tiering.segments.logs.Claims.fences": no_fence,
            "tiering.segments.logs.Claims.fence_mask": no_fences,
        },
    ),
    Unguarded(
        name="t6_any_lineage",
        patches={
            "tiering.segments.frontier.clipped_ends": any_lineage,
            "tiering.segments.coverage.clipped_ends": any_lineage,
        },
    ),
    Unguarded(name="t7_never_again", patches={f"{SERVICE}._advance": never_again}),
    Unguarded(name="t7_no_edge", patches={f"{SERVICE}._caught": no_edge}),
)
