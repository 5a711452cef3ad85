"""What is known of each log's tiering: for people, for metrics, and for the next pass.

Owns the words for where a log stands. `state` is stable, for programs; `detail` is for people.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.identity import LogId
from tiering.cluster.gate import Eligible, NotLeader, Verdict
from tiering.cluster.interface import Unknown
from tiering.uploader.decide import Stalled, Step, UpToDate, Wait

STATES = ("new", "up_to_date", "waiting", "copying", "stalled", "failed", "unknown", "not_led", "refused")
IDLE_STATES = frozenset({"up_to_date", "not_led", "refused"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """How hard to try."""

    workers: int = 4
    backoff_first_ms: int = 1_000
    backoff_max_ms: int = 60_000
    stall_ms: int = 300_000  # a frontier that stands still so long, with work waiting, is an event


@dataclass(slots=True, kw_only=True)
class LogStatus:
    """What is known of one log's tiering, for people, metrics and the next pass."""

    log: LogId
    topic: str
    state: str = "new"  # one of STATES, which are stable
    detail: str = ""
    leader_epoch: int | None = None
    frontier: int | None = None
    may_leave_below: int | None = None
    waiting_segments: int = 0
    waiting_bytes: int = 0
    copied_segments: int = 0
    copied_bytes: int = 0
    failures: int = 0  # in a row
    next_try_ms: int = 0
    moved_at_ms: int = 0  # when the frontier last moved, or there was nothing to do
    stall_told: bool = False
    told_event_id: str = ""  # of the last claim or gap that was told


def describe(status: LogStatus, step: Step, now_ms: int) -> None:
    """Say in the status what the next step means."""
    match step:
        case UpToDate():
            status.state, status.detail = "up_to_date", ""
            status.moved_at_ms, status.stall_told = now_ms, False
        case Wait(segment=segment, may_leave_below=bound):
            status.state = "waiting"
            status.detail = f"the segment ends at {segment.end_offset}, committed up to {bound}"
        case Stalled(start_offset=start, end_offset=end):
            status.state = "stalled"
            status.detail = f"the log has offsets [{start}, {end}), and no file here holds them"
        case _:
            status.state, status.detail = "copying", type(step).__name__


def standing(verdict: Verdict) -> tuple[str, str]:
    """State and detail of a log that may not be copied now."""
    if isinstance(verdict, NotLeader):
        return "not_led", f"led by broker {verdict.leader_id}"
    if isinstance(verdict, Unknown):
        return "unknown", verdict.reason
    assert not isinstance(verdict, Eligible)
    return "waiting", verdict.reason
