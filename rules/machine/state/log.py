"""Everything of one log, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rules.identity import LogId
from rules.machine.spans import NONE, Spans
from rules.machine.state.declared import Declared, Hold, Permit, Setting
from rules.machine.state.found import Found, Gap, Pending
from rules.machine.state.obligations import CopyAbove, Deviation, EmptyRise, Fallback, Removal, Rise
from rules.machine.state.replicas import Replica
from rules.machine.state.tier import Buried, Copy


@dataclass(slots=True, kw_only=True)
class LogState:
    """Everything that is known of one log and still matters."""

    log: LogId
    topic: str
    clock_ms: int = 0
    position: tuple[int, tuple[int, str, int], int] | None = None
    tier_offset: int = -1
    kraft_offset: int = -1
    born_ms: int | None = None
    events: int = 0
    first_ms: int | None = None
    heard: dict[str, Spans] = field(default_factory=dict)

    leader_id: int | None = None
    leader_epoch: int = -1
    leadership_ms: int = 0  # the last word on leaders or in-sync replicas
    in_sync: tuple[int, ...] | None = None
    assigned: tuple[int, ...] | None = None
    leaders: dict[int, int] = field(default_factory=dict)
    unclean_epochs: list[int] = field(default_factory=list)
    epoch_starts: dict[int, int] = field(default_factory=dict)
    watermarks: dict[int, int] = field(default_factory=dict)  # by epoch
    watermark: int | None = None  # the highest that was ever published

    replicas: dict[int, Replica] = field(default_factory=dict)
    start: int | None = None  # the log's, as leaders had it
    went: Spans = NONE  # with a cause of its own, from the tier or beside one, wherever the start is
    accepted: Spans = NONE  # lost, and taken as lost by somebody
    tier: dict[str, Copy] = field(default_factory=dict)
    buried: dict[str, Buried] = field(default_factory=dict)
    is_kip405: bool = False
    is_tiered: bool = False
    claims: list[tuple[int, int]] = field(default_factory=list)
    digests: dict[int, dict[int, str]] = field(default_factory=dict)
    odd_tables: dict[int, int] = field(default_factory=dict)  # broker, offset
    sets: dict[int, tuple[int, dict[str, str]]] = field(default_factory=dict)
    lacking: dict[int, list[str]] = field(default_factory=dict)  # broker, copies not in its table
    unknown_keys: dict[str, tuple[int, int]] = field(default_factory=dict)

    was_compacted: bool = False
    config: dict[str, list[Setting]] = field(default_factory=dict)
    # How often brokers look: by term and broker, where it is not Kafka's default.
    intervals: dict[str, dict[int, int]] = field(default_factory=dict)
    policy_base: dict[str, dict[str, str]] = field(default_factory=dict)
    policy_base_offset: int = -1
    policy: list[Declared] = field(default_factory=list)
    # What these come to now; not carried.
    policy_memo: tuple[tuple[int, int, int], Any] | None = field(
        default=None, compare=False, repr=False, metadata={"is_carried": False}
    )
    adopted: dict[str, str | None] = field(default_factory=dict)
    permits: list[Permit] = field(default_factory=list)
    holds: dict[str, Hold] = field(default_factory=dict)
    restores: list[tuple[int, int, int]] = field(default_factory=list)  # at, start, end
    keep_until_ms: int | None = None
    unclean_starts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    broker_starts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # clean ones too
    empty_rises: list[EmptyRise] = field(default_factory=list)
    deleted_ms: tuple[int, int] | None = None
    is_gone: bool = False

    rises: list[Rise] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    above: list[CopyAbove] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    topic_deletion_due_ms: int | None = None
    pending: dict[str, Pending] = field(default_factory=dict)
    findings: dict[str, Found] = field(default_factory=dict)
    findings_left_out: int = 0
    gaps: list[Gap] = field(default_factory=list)
    blast: dict[int, int] = field(default_factory=dict)  # by hour, segments that no retention explains


def missing(state: LogState, gap: Gap) -> None:
    """One more: it joins one that stands, of the same sort and source. Their order is their own: two that are
    decided at once may have been decided one after the other, by another cut."""
    for known in state.gaps:
        if (known.sort, known.broker_id, known.closed_ms) == (gap.sort, gap.broker_id, gap.closed_ms):
            is_same = gap.closed_ms is None or known.detail == gap.detail
            if is_same:
                known.from_ms = min(known.from_ms, gap.from_ms)
                known.to_ms = max(known.to_ms, gap.to_ms)
                state.gaps.sort(key=_order)
                return
    state.gaps.append(gap)
    state.gaps.sort(key=_order)


def _order(gap: Gap) -> tuple[int, int, str, int, str]:
    return (gap.from_ms, gap.to_ms, gap.sort, -1 if gap.broker_id is None else gap.broker_id, gap.detail)


def newborn(log: LogId, topic: str) -> LogState:
    """Of a log that nothing was heard of."""
    return LogState(log=log, topic=topic)
