"""What an operator's tools say in a history: a scrub, a hold and its release, a restore.

Owns these events' fields. What is said of disks, leaders and the tier is `histories`'.
"""

from __future__ import annotations

from rules.events import (
    HoldPlaced,
    HoldReleased,
    Restored,
    RestoreTarget,
    Scrubbed,
    ScrubDepth,
    ScrubOutcome,
)
from tests.rules.machine.histories import MIB, History


def scrubs(
    h: History,
    copy: tuple[str, int, int],
    key: str,
    *,
    outcome: ScrubOutcome = ScrubOutcome.VERIFIED,
    problem: str | None = None,
    depth: ScrubDepth = ScrubDepth.DEEP,
    size_bytes: int = MIB,
    metadata_offset: int | None = None,
) -> None:
    """One object of a copy: its id, base and end."""
    segment_id, base, end = copy
    h.say(
        Scrubbed,
        component="scrub",
        segment_id=segment_id,
        base_offset=base,
        end_offset=end,
        object_key=key,
        version_id=None,
        size_bytes=size_bytes,
        scrub_depth=depth,
        scrub_outcome=outcome,
        problem=problem,
        detail="",
        metadata_offset=h.tier_offset if metadata_offset is None else metadata_offset,
    )


def holds(h: History, hold_id: str = "h1", start: int = 0, end: int | None = None) -> None:
    h.tier_offset += 1
    h.say(
        HoldPlaced,
        component="hold",
        hold_id=hold_id,
        start_offset=start,
        end_offset=end,
        principal="alice",
        reason="looking into it",
        finding_id=None,
        metadata_offset=h.tier_offset,
    )


def releases(h: History, hold_id: str = "h1") -> None:
    h.tier_offset += 1
    h.say(
        HoldReleased,
        component="hold",
        hold_id=hold_id,
        principal="alice",
        reason="done",
        metadata_offset=h.tier_offset,
    )


def restores(
    h: History,
    start: int,
    end: int,
    target: RestoreTarget = RestoreTarget.LOG_DIRECTORY,
    *,
    broker: int | None = 1,
    generation: int | None = None,
    restore_id: str = "r1",
    planned: tuple[int | None, int | None] | None = None,
) -> None:
    """`planned` None: by no plan, as events of before there were plans."""
    first, last = (None, None) if planned is None else planned
    h.say(
        Restored,
        component="backup",
        restore_id=restore_id,
        principal="alice",
        restore_target=target,
        start_offset=start,
        end_offset=end,
        broker_id=broker,
        generation=generation,
        keep_until_ms=None,
        objects=(),
        plan_hash=None if planned is None else "f" * 64,
        planned_start=first,
        planned_end=last,
    )
