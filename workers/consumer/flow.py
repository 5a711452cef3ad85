"""How much may be in flight, and which partitions are paused while polling goes on.

In flight is what was received and is not finished. A partition also counts what is finished above its commit
point, since a crash repeats that: one stuck record stops its partition before it stops the others. A
partition that reached its bound is paused until it is down to `resume_at` of it, and all of them when the
whole is full; two levels, because a pause makes librdkafka throw away and fetch again what it had read ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workers.consumer.records import Partition

FORGET_RECORDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """`records_max` is kept exactly, `partition_records_max` but for one poll; `bytes_max` but for what the
    records of one poll are larger than those that came lately.
    """

    records_max: int = 10_000
    bytes_max: int = 64 << 20
    partition_records_max: int = 5_000
    poll_records_max: int = 1_000
    resume_at: float = 0.5

    def __post_init__(self) -> None:
        if min(self.records_max, self.bytes_max, self.partition_records_max, self.poll_records_max) < 1:
            raise ValueError("every bound of FlowLimits has to be 1 or more")
        if not 0 <= self.resume_at < 1:
            raise ValueError(
                "resume_at has to be at least 0 and below 1, else nothing is ever resumed calmly"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to tell the client."""

    pause: frozenset[Partition]
    resume: frozenset[Partition]


class Flow:
    """The paused set; pure, the client is told by somebody else."""

    def __init__(self, limits: FlowLimits) -> None:
        self.limits = limits
        self.paused: frozenset[Partition] = frozenset()
        self.is_full = False
        self._stuck: frozenset[Partition] = frozenset()
        self._largest_bytes = 1

    def saw(self, size_bytes: int) -> None:
        """A record of this size came: the next ones are taken to be as large."""
        if size_bytes > self._largest_bytes:
            self._largest_bytes = size_bytes
        else:  # one giant is forgotten within some thousand records
            self._largest_bytes -= (self._largest_bytes - size_bytes + FORGET_RECORDS - 1) // FORGET_RECORDS

    def room(self, records: int, size_bytes: int) -> int:
        """How many records may be asked for; 0 from full until the whole is down to `resume_at`."""
        limits = self.limits
        if self.is_full:
            low = records <= limits.records_max * limits.resume_at
            if not (low and size_bytes <= limits.bytes_max * limits.resume_at):
                return 0
        in_records = limits.records_max - records
        in_bytes = (limits.bytes_max - size_bytes) // self._largest_bytes
        if in_bytes < 1 and size_bytes == 0:
            in_bytes = 1  # one record larger than the bound has to pass alone
        room = max(min(in_records, in_bytes, limits.poll_records_max), 0)
        self.is_full = room == 0
        return room

    def change(self, loads: Mapping[Partition, int], *, all_of_them: bool) -> Change:
        """What has to be paused and resumed, given how many records each assigned partition holds."""
        limits = self.limits
        low = limits.partition_records_max * limits.resume_at
        self._stuck = frozenset(
            partition
            for partition, load in loads.items()
            if load >= limits.partition_records_max or (partition in self._stuck and load > low)
        )
        wanted = frozenset(loads) if all_of_them else self._stuck
        change = Change(pause=wanted - self.paused, resume=(self.paused & loads.keys()) - wanted)
        self.paused = wanted
        return change

    def forget(self, partitions: Iterable[Partition]) -> frozenset[Partition]:
        """These are gone; those of them that were paused, so that they do not come back paused."""
        gone = self.paused & frozenset(partitions)
        self.paused -= gone
        self._stuck -= frozenset(partitions)
        return gone
