"""The inside of a consumer as values, at one moment; the metrics have the same names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from workers.consumer.records import Partition

GAPS_SHOWN = 20


class Blocked(Enum):
    """What the record at the blocking offset is waiting for."""

    RUNNING = "its handler runs"
    WAITING = "it waits for a free handler or behind its key"
    RETRYING = "it waits to be tried again"
    PARKED = "it was parked"
    BURYING = "its dead letter is not durable yet"


@dataclass(slots=True, kw_only=True)
class Counts:
    """Since the start; the only mutable value here, and `core` alone changes it."""

    received: int = 0
    done: int = 0
    skipped: int = 0
    retried: int = 0
    raised: int = 0
    dead_letters: int = 0
    dead_letters_failed: int = 0
    parked: int = 0
    late_results: int = 0
    rewinds: int = 0
    unassigned: int = 0  # records of a partition that went while the batch was on its way
    remembered: int = 0  # not handled again, for the offset map says that they were
    maps_ignored: int = 0
    commits: int = 0
    commits_failed: int = 0
    stalls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    """`gaps` are the lowest runs of unfinished records, half-open; at most GAPS_SHOWN of them."""

    partition: Partition
    epoch: int
    position: int | None
    commit_point: int | None
    committed: int | None
    in_flight_records: int
    ahead_records: int
    gaps: tuple[tuple[int, int], ...]
    blocking_offset: int | None
    blocking_age_s: float
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`queue_depth` wait for a handler, `running` have one; the rest hold their keys."""

    partitions: tuple[PartitionSnapshot, ...]
    in_flight_records: int
    in_flight_bytes: int
    queue_depth: int
    running: int
    retrying: int
    parked: int
    burying: int
    lanes: int
    is_full: bool
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """The commit point of a partition does not move; said once when it begins and once when it ends."""

    partition: Partition
    blocking_offset: int
    blocking_age_s: float
    blocked: Blocked
    attempt: int
    reason: str
    ahead_records: int
    in_flight_records: int
