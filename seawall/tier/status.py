"""One log's state in the tier and on its broker, and what is wrong with it, in words.

    finding   data is lost or cannot be read: a gap on record, a hole, a range that is nowhere
    unknown   the broker did not say, or the table has records that it cannot read
    note      what people want to know: no claim yet, a new leader that has not claimed, a deleted topic

Owns what counts as trouble. Refuses to ask anybody: it is given the table's view and the broker's answer.

Invariant: the broker was asked before the table was read, so that what is between the two never looks lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from rules.identity import LogId
from seawall.tier.coverage import Stretch, Where, stretches, tiered_and_gaps
from tiering.cluster.interface import Cause, LeaderOffsets, Unknown
from tiering.segments.coverage import Coverage, coverage
from tiering.segments.frontier import Frontier, Stop
from tiering.segments.view import LogView


class Weight(str, Enum):
    """What a trouble comes to. Stable, for programs."""

    FINDING = "finding"
    UNKNOWN = "unknown"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    weight: Weight
    kind: str  # stable, for programs
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """None is: not known, or there is no such thing. Bytes of lag are an estimate, from what is tiered."""

    log: LogId
    topic: str
    log_start: int | None  # the first offset that can be read, from either tier
    local_start: int | None
    tiered_start: int | None
    frontier: int | None
    high_watermark: int | None
    tiered_segments: int
    tiered_bytes: int
    lag_offsets: int | None
    lag_bytes: int | None
    holds: tuple[str, ...]
    claim_epoch: int | None
    leader_epoch: int | None
    stretches: tuple[Stretch, ...]
    troubles: tuple[Trouble, ...]

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.log.partition}"

    def has(self, weight: Weight) -> bool:
        return any(each.weight is weight for each in self.troubles)


def log_status(log: LogId, topic: str, view: LogView | None, answer: LeaderOffsets | Unknown) -> LogStatus:
    """What is known of a log. `answer` is the broker's, from before the table was read."""
    leader = answer if isinstance(answer, LeaderOffsets) and answer.topic_id == log.topic_id else None
    found = None if view is None else coverage(view)
    covered = found if isinstance(found, Coverage) else None
    local_start = leader.log_start if leader is not None else None
    frontier = covered.frontier if covered is not None else None
    starts, ends = _edges(leader, frontier)
    tiered, gaps = tiered_and_gaps(covered) if covered is not None else ((), ())
    parts = (
        stretches(min(starts), max(ends), local_start=local_start, tiered=tiered, gaps=gaps) if starts else ()
    )
    segments, size_bytes, offsets = _tiered(covered)
    lag = None
    if leader is not None and frontier is not None:
        lag = max(0, leader.high_watermark - frontier.offset)
    return LogStatus(
        log=log,
        topic=topic,
        log_start=min(starts, default=None),
        local_start=local_start,
        tiered_start=frontier.start if frontier is not None else None,
        frontier=frontier.offset if frontier is not None else None,
        high_watermark=leader.high_watermark if leader is not None else None,
        tiered_segments=segments,
        tiered_bytes=size_bytes,
        lag_offsets=lag,
        lag_bytes=None if lag is None or not offsets else lag * size_bytes // offsets,
        holds=_holds(view),
        claim_epoch=view.claims[-1].epoch if view is not None and view.claims else None,
        leader_epoch=leader.leader_epoch if leader is not None else None,
        stretches=parts,
        troubles=tuple(_troubles(log, view, covered, answer, parts)),
    )


def _edges(leader: LeaderOffsets | None, frontier: Frontier | None) -> tuple[list[int], list[int]]:
    """Where the log begins and where it ends, by whoever knows."""
    starts, ends = [], []
    if leader is not None:
        starts.append(leader.log_start)
        ends.append(max(leader.log_start, leader.high_watermark))
    if frontier is not None:
        starts.append(frontier.start)
        ends.append(frontier.offset)
    return starts, ends


def _tiered(found: Coverage | None) -> tuple[int, int, int]:
    """Segments that readers come for, their bytes, and how many offsets they have."""
    if found is None:
        return 0, 0, 0
    read = np.maximum(found.finished.bases, found.frontier.start) < np.minimum(
        found.ends, found.frontier.offset
    )
    finished = found.finished
    offsets = finished.end_offsets[read] - finished.bases[read]
    return int(read.sum()), int(finished.sizes_bytes[read].sum()), int(offsets.sum())


def _holds(view: LogView | None) -> tuple[str, ...]:
    holds = view.record.holds if view is not None and view.record is not None else ()
    return tuple(
        f"{each.hold_id} on {_range(each.start_offset, each.end_offset)}: {each.reason}" for each in holds
    )


def _troubles(
    log: LogId,
    view: LogView | None,
    found: Coverage | None,
    answer: LeaderOffsets | Unknown,
    parts: tuple[Stretch, ...],
) -> Iterator[Trouble]:
    for part in parts:
        if part.where is Where.MISSING:
            detail = f"{_range(part.start, part.end)} is neither on the broker nor in the tier"
            yield Trouble(weight=Weight.FINDING, kind="missing", detail=detail)
    record = view.record if view is not None else None
    for gap in record.gaps if record is not None else ():
        if record is not None and gap.end_offset > record.log_start:
            detail = f"{_range(gap.start_offset, gap.end_offset)} is lost, on record: {gap.cause.value}"
            yield Trouble(weight=Weight.FINDING, kind="gap", detail=detail)
    if found is not None:
        yield from _stopped(found)
    if view is not None and (unreadable := len(view.unreadable())):
        detail = f"{unreadable} records in the topic cannot be read: a newer Seawall wrote them, or nobody"
        yield Trouble(weight=Weight.UNKNOWN, kind="unreadable", detail=detail)
    yield from _of_broker(log, answer)
    yield from _of_claim(view, answer)


def _stopped(found: Coverage) -> Iterator[Trouble]:
    """Why the frontier is where it is, where that is not simply that no more was copied."""
    at = found.frontier
    says = {
        Stop.HOLE: f"nothing holds offset {at.offset}, and copies go on at {at.next_covered}",
        Stop.OFF_LINEAGE: f"the copy that holds offset {at.offset} is of another history than the log's",
        Stop.INCOMPLETE: f"the copy that should hold offset {at.offset} ends before it, or has a hole",
    }
    if at.stop in says:
        detail = f"the frontier stands at a hole: {says[at.stop]}"
        yield Trouble(weight=Weight.FINDING, kind=at.stop.value, detail=detail)


def _of_broker(log: LogId, answer: LeaderOffsets | Unknown) -> Iterator[Trouble]:
    if isinstance(answer, LeaderOffsets):
        if answer.topic_id != log.topic_id:
            detail = f"the topic was made again (it is {answer.topic_id} now): this is the log before"
            yield Trouble(weight=Weight.NOTE, kind="recreated", detail=detail)
    elif answer.cause is Cause.NO_SUCH_TOPIC:
        detail = f"the cluster has no such partition: {answer.reason}"
        yield Trouble(weight=Weight.NOTE, kind="deleted", detail=detail)
    else:
        yield Trouble(weight=Weight.UNKNOWN, kind="broker", detail=f"its broker did not say: {answer.reason}")


def _of_claim(view: LogView | None, answer: LeaderOffsets | Unknown) -> Iterator[Trouble]:
    if view is None or view.record is None or not view.claims:
        detail = "no agent has claimed it yet: nothing of it is tiered"
        yield Trouble(weight=Weight.NOTE, kind="unclaimed", detail=detail)
        return
    claim = view.claims[-1].epoch
    is_same_log = isinstance(answer, LeaderOffsets) and answer.topic_id == view.log.topic_id
    if is_same_log and isinstance(answer, LeaderOffsets) and answer.leader_epoch > claim:
        detail = f"leader epoch is {answer.leader_epoch}, and the agent beside it has claimed {claim} at most"
        yield Trouble(weight=Weight.NOTE, kind="claim_behind", detail=detail)


def _range(start: int, end: int | None) -> str:
    return f"[{start}, {'…' if end is None else end})"
