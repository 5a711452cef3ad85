"""How much comes into each topic in a day, and how long what is there reaches back.

Three ways to know, best first; a topic's rate says by which it is known, the worst of its partitions':

    DAY      the records of the last day, by ListOffsets for a time: what the log holds since then
    AGE      a log younger than a day: all that it holds, over its age
    WINDOW   the two looks, some seconds apart: what came in between, as if it came so all day

Records become bytes by what a record of that log takes on the leader's disk. Times are those in the records,
which producers set (or brokers, with LogAppendTime).

Owns the arithmetic. Refuses to guess where nothing was told: a partition without an answer is counted as
missing, and is no part of the sum.

Invariant: a log that nothing came into has a rate of 0, and one that was not looked at has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from seawall.init.seen import FirstSince, Seen
from tiering.cluster.interface import LeaderOffsets, TopicPartition, Unknown

DAY_MS = 86_400_000
DAY_S = 86_400
AGE_MS_MIN = 600_000  # the rate of a younger log says more about its beginning


class Basis(str, Enum):
    """How a rate is known. The values are stable: programs read them."""

    DAY = "day"
    AGE = "age"
    WINDOW = "window"
    EMPTY = "empty"  # nothing is in it, and nothing came


_WORST = (Basis.EMPTY, Basis.DAY, Basis.AGE, Basis.WINDOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRate:
    """`bytes_per_day` is None where the sizes are not known."""

    partition: TopicPartition
    basis: Basis
    records_per_day: float
    bytes_per_day: float | None
    bytes_now: int | None  # of the leader's replica
    oldest_age_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRate:
    """All partitions of a topic that are known; `missing` are not."""

    topic: str
    basis: Basis
    records_per_day: float
    bytes_per_day: float | None
    bytes_now: int | None
    oldest_age_ms: int | None
    window_bytes_per_s: float | None
    partitions: tuple[PartitionRate, ...]
    missing: tuple[TopicPartition, ...]


def rates(seen: Seen, topics: Iterable[str]) -> dict[str, TopicRate]:
    return {topic: _topic(seen, topic) for topic in topics}


def _topic(seen: Seen, topic: str) -> TopicRate:
    known: list[PartitionRate] = []
    missing: list[TopicPartition] = []
    came_bytes: list[float | None] = []
    for partition in seen.partitions(topic):
        before, after = seen.first.offsets.get(partition), seen.last.offsets.get(partition)
        if not isinstance(before, LeaderOffsets) or not isinstance(after, LeaderOffsets):
            missing.append(partition)
            continue
        if before.topic_id != after.topic_id:  # deleted and made again between the looks
            missing.append(partition)
            continue
        found, in_window = _partition(seen, partition, before, after)
        known.append(found)
        came_bytes.append(in_window)
    return TopicRate(
        topic=topic,
        basis=max((each.basis for each in known), key=_WORST.index, default=Basis.EMPTY),
        records_per_day=sum(each.records_per_day for each in known),
        bytes_per_day=_sum(each.bytes_per_day for each in known),
        bytes_now=None if (told := _sum(each.bytes_now for each in known)) is None else int(told),
        oldest_age_ms=max(
            (each.oldest_age_ms for each in known if each.oldest_age_ms is not None), default=None
        ),
        window_bytes_per_s=None if (came := _sum(came_bytes)) is None else came / _window_s(seen),
        partitions=tuple(known),
        missing=tuple(missing),
    )


def _partition(
    seen: Seen, partition: TopicPartition, before: LeaderOffsets, after: LeaderOffsets
) -> tuple[PartitionRate, float | None]:
    """The rate, and the bytes that came between the looks."""
    size_bytes = seen.leader_bytes(partition)
    held = after.high_watermark - after.log_start
    came = max(0, after.high_watermark - before.high_watermark)
    oldest, since = seen.ages.oldest.get(partition), seen.ages.last_day.get(partition)
    age_ms = seen.ages.now_ms - oldest.timestamp_ms if isinstance(oldest, FirstSince) else None
    is_aged = partition in seen.ages.oldest and not isinstance(oldest, Unknown)
    # What is on disk is not all that is held where a part is in remote storage, and no ages were asked for.
    per_record = size_bytes / held if size_bytes is not None and held > 0 and is_aged else None
    came_bytes = _came_bytes(seen, partition, before, after, came, per_record)
    if held == 0 and came == 0:
        basis, records = Basis.EMPTY, 0.0
    elif age_ms is not None and age_ms >= DAY_MS and not isinstance(since, Unknown):
        basis = Basis.DAY
        records = float(max(0, after.high_watermark - since.offset)) if since is not None else 0.0
    elif age_ms is not None and age_ms >= AGE_MS_MIN:
        basis, records = Basis.AGE, held * DAY_MS / age_ms
    else:
        basis, records = Basis.WINDOW, came * DAY_S / _window_s(seen)
    if records == 0:
        per_day: float | None = 0.0
    elif per_record is not None:
        per_day = records * per_record
    elif basis is Basis.WINDOW and came_bytes is not None:
        per_day = came_bytes * DAY_S / _window_s(seen)
    else:
        per_day = None
    rate = PartitionRate(
        partition=partition,
        basis=basis,
        records_per_day=records,
        bytes_per_day=per_day,
        bytes_now=size_bytes,
        oldest_age_ms=age_ms,
    )
    return rate, came_bytes


def _came_bytes(
    seen: Seen,
    partition: TopicPartition,
    before: LeaderOffsets,
    after: LeaderOffsets,
    came: int,
    per_record: float | None,
) -> float | None:
    """By the growth of the replica, unless segments may have left it meanwhile."""
    if came == 0:
        return 0.0
    key = (after.leader_id, partition)
    then, now = seen.first.size_bytes.get(key), seen.last.size_bytes.get(key)
    if then is not None and now is not None and now > then and before.log_start == after.log_start:
        return float(now - then)
    return came * per_record if per_record is not None else None


def _window_s(seen: Seen) -> float:
    return max(seen.last.at_s - seen.first.at_s, 0.001)


def _sum(values: Iterable[float | None]) -> float | None:
    """None as soon as one is not known."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total
