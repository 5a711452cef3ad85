"""Plans for tests: one of two pieces and a gap, to start from."""

from __future__ import annotations

from typing import Any

from backup.plan import Asked, AskedBy, Fingerprints, Lost, LostBecause, Origin, Piece, Plan, PlanBody, Range
from backup.plan.codec import plan_of
from rules.events import RestoreTarget
from tests.tiering.segments.strategies import LOG, segment
from tiering.segments.records import SegmentState


def piece(number: int, base: int, end: int, **fields: Any) -> Piece:
    """A segment under delete markers, whole."""
    record = segment(number, base, end, state=SegmentState.DELETE_FINISHED, **fields)
    tops = tuple((kind, f"marker-{number}-{kind}") for kind in ("aux", "json", "log"))
    return Piece(start=base, end=end, origin=Origin.VERSION, record=record, tops=tops)


def body(**fields: Any) -> PlanBody:
    """[0, 30) was asked for; [0, 5) is lost, [10, 20) too."""
    said: dict[str, Any] = {
        "log": LOG,
        "topic": "orders",
        "target": RestoreTarget.TIER,
        "made_at_ms": 1_700_000_000_000,
        "asked": Asked(by=AskedBy.OFFSETS, text="0:30", range=Range(0, 30)),
        "range": Range(5, 30),
        "joins_at": 30,
        "pieces": (piece(1, 5, 10), piece(2, 20, 30)),
        "lost": (
            Lost(start=0, end=5, because=LostBecause.NEVER_COPIED, detail="no copy"),
            Lost(start=10, end=20, because=LostBecause.VERSION_GONE, detail="expired"),
        ),
        "passes_gaps": True,
        "keep_for_ms": 604_800_000,
        "requests": 7,
        "estimated_ms": 1500,
        "fingerprints": Fingerprints(bucket="b" * 64, log="c" * 64, policy="d" * 64),
        "details": {"note": "a test"},
    }
    return PlanBody(**{**said, **fields})


def plan(**fields: Any) -> Plan:
    return plan_of(body(**fields))
