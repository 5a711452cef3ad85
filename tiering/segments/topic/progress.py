"""How far somebody has read the topic, against where it ends.

    began_ends   where each partition ended when the following began: past all of them it is caught up
    ends         where they end as far as is known: lag is the distance
    seen_end_s   when the end of a partition was last reached

Whoever was at the end less than half the topic's least compaction lag ago has missed no record since; later
than that compaction may have taken the beginning of a life, and the table would refuse the rest.

Owns these numbers, and the waiting for them, for many threads. Refuses to read anything.

Invariant: positions only rise, and `failure`, once there, stays: nothing is caught up after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Condition

from tiering.segments.errors import FollowingEnded


class Progress:
    """Of all partitions of one topic. `away_max_s`: see above."""

    def __init__(
        self, what: str, partition_count: int, positions: Mapping[int, int], *, away_max_s: float
    ) -> None:
        self._what = what
        self._positions = {number: positions.get(number, 0) for number in range(partition_count)}
        self._away_max_s = away_max_s
        self._began_ends: dict[int, int] | None = None
        self._ends: dict[int, int] = {}
        self._seen_end_s: dict[int, float] = {}
        self._changed = Condition()
        self._failure: Exception | None = None
        self.trouble: str | None = None  # what goes wrong now and is tried again

    @property
    def failure(self) -> Exception | None:
        return self._failure

    def fail(self, failure: Exception) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def positions(self) -> dict[int, int]:
        with self._changed:
            return dict(self._positions)

    def learn_ends(self, ends: Mapping[int, int], now_s: float) -> None:
        """What the leaders say now. Raises FollowingEnded for an end that is behind what was read."""
        with self._changed:
            for partition, end in ends.items():
                position = self._positions[partition]
                if end < position:
                    why = f"partition {partition} ends at {end}, and was read up to {position}"
                    raise FollowingEnded(what=self._what, why=why)
            if self._began_ends is None:
                self._began_ends = dict(ends)
            self._ends.update(ends)
            for partition, end in ends.items():
                if self._positions[partition] >= end:
                    self._seen_end_s[partition] = now_s
            self._changed.notify_all()

    def check_unbroken(self, partition: int, now_s: float) -> None:
        """Raises FollowingEnded if records were read too late for all of them to be there still."""
        with self._changed:
            seen_s = self._seen_end_s.get(partition)
        if seen_s is not None and now_s - seen_s > self._away_max_s:
            away_s = round(now_s - seen_s)
            why = f"partition {partition} was last read to its end {away_s} s ago, and may be compacted since"
            raise FollowingEnded(what=self._what, why=why)

    def passed(self, partition: int, position: int) -> None:
        """Everything below `position` was applied."""
        with self._changed:
            self._positions[partition] = max(self._positions[partition], position)
            self._changed.notify_all()

    def at_end(self, partition: int, position: int, now_s: float) -> None:
        """There is nothing at `position` yet."""
        with self._changed:
            self._seen_end_s[partition] = now_s
        self.passed(partition, position)

    @property
    def is_caught_up(self) -> bool:
        with self._changed:
            return self._is_past(self._began_ends)

    def lag(self) -> dict[int, int] | None:
        """Offsets behind the end, per partition; None before the ends were learned."""
        with self._changed:
            if self._began_ends is None:
                return None
            return {each: max(0, end - self._positions[each]) for each, end in self._ends.items()}

    def wait_caught_up(self, timeout_s: float) -> bool:
        """Whether it is, in time. Raises the failure."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure or self._is_past(self._began_ends), timeout_s)
            return self._is_past_or_raises(self._began_ends)

    def wait_past(self, ends: Mapping[int, int], timeout_s: float) -> bool:
        """Whether everything below these ends was applied, in time. Raises the failure."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure or self._is_past(ends), timeout_s)
            return self._is_past_or_raises(ends)

    def _is_past_or_raises(self, ends: Mapping[int, int] | None) -> bool:
        if self._failure is not None:
            raise self._failure
        return self._is_past(ends)

    def _is_past(self, ends: Mapping[int, int] | None) -> bool:
        if ends is None or self._failure is not None:
            return False
        return all(self._positions[partition] >= end for partition, end in ends.items())
