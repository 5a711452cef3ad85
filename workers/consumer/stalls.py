"""Tells once when a partition's commit point has stopped moving, and once when it moves again."""

from __future__ import annotations

from workers.consumer.core import Core
from workers.consumer.records import Partition
from workers.consumer.snapshot import Stall


class StallWatch:
    """Pure; looks at most every `every_s`, since it is asked in each turn."""

    def __init__(self, after_s: float, every_s: float = 0.25) -> None:
        self._after_s, self._every_s = after_s, every_s
        self._next_s = 0.0
        self._told: dict[Partition, int] = {}

    def look(self, core: Core, now_s: float) -> tuple[list[Stall], list[tuple[Partition, int]]]:
        """The stalls that began and those that ended, each with its offset."""
        if now_s < self._next_s:
            return [], []
        self._next_s = now_s + self._every_s
        blocking = core.blocking(now_s)
        ended = [
            (place, offset)
            for place, offset in self._told.items()
            if blocking.get(place, (-1, 0))[0] != offset
        ]
        for partition, _ in ended:
            del self._told[partition]
        began = []
        for partition, (offset, age_s) in blocking.items():
            if age_s >= self._after_s and partition not in self._told:
                self._told[partition] = offset
                began.append(_stall(core, partition, offset, age_s, now_s))
        core.counts.stalls += len(began)
        return began, ended


def _stall(core: Core, partition: Partition, offset: int, age_s: float, now_s: float) -> Stall:
    blocked, attempt, reason = core.whereabouts(partition, offset)
    seen = next(each for each in core.snapshot(now_s).partitions if each.partition == partition)
    return Stall(
        partition=partition,
        blocking_offset=offset,
        blocking_age_s=age_s,
        blocked=blocked,
        attempt=attempt,
        reason=reason,
        ahead_records=seen.ahead_records,
        in_flight_records=seen.in_flight_records,
    )
