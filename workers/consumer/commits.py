"""When to commit, and how the time of a revocation or a stop is shared out. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workers.consumer.records import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPoint:
    """`leader_epoch` is the highest of a finished record, -1 where none is known: by it the next reader
    notices that the log was cut back below the offset (KIP-320). `metadata` is empty or an offset map.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAnswer:
    """What the broker said of one offset; `error` is None where it stands."""

    partition: Partition
    offset: int
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    every_s: float = 1.0
    every_records: int = 10_000
    maps: bool = False  # finished offsets above the commit point go into the commit's metadata
    deadline_s: float = 20.0  # of a revocation and of a stop: waiting for handlers and committing together
    floor_s: float = 3.0  # what of it is kept for the commit, however long handlers take


class CommitSchedule:
    """Due by count or by time, whichever comes first, and only if something was finished."""

    def __init__(self, settings: CommitSettings, now_s: float) -> None:
        self._settings = settings
        self._last_s = now_s
        self._finished = 0

    def finished(self, records: int) -> None:
        self._finished += records

    def is_due(self, now_s: float) -> bool:
        if self._finished >= self._settings.every_records:
            return True
        return now_s - self._last_s >= self._settings.every_s

    def committed(self, now_s: float) -> None:
        self._last_s = now_s
        self._finished = 0


class Deadline:
    """One span of time for several steps; `floor_s` of it is kept for the last one."""

    def __init__(self, clock: Callable[[], float], *, total_s: float, floor_s: float) -> None:
        self._clock = clock
        self._end_s = clock() + total_s
        self._floor_s = min(floor_s, total_s)

    def left_s(self) -> float:
        return max(self._end_s - self._clock(), 0.0)

    def left_before_last_s(self) -> float:
        return max(self._end_s - self._floor_s - self._clock(), 0.0)

    def left_for_last_s(self) -> float:
        """At least the floor: a handler that took all the time does not take the commit's."""
        return max(self.left_s(), self._floor_s)
