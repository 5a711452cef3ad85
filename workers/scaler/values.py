"""What is seen of a consumer group at one moment, and what is said of it. Values only.

Times are seconds of one monotonic clock, which may be any: only differences count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """What has one sampler: a group on a topic of a cluster. `cluster` is the operator's name for it, and
    `isolation` says where a log ends for its readers."""

    cluster: str
    group: str
    topic: str
    isolation: str

    def __str__(self) -> str:
        return f"{self.cluster}/{self.group}/{self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSample:
    """Offsets of one partition. `committed` is None where the group has committed nothing.

    `unknown` says why the offsets could not be had; they mean nothing then. `tail_is_marker`: somebody looked
    behind the commit and found nothing that a consumer would be given.
    """

    partition: int
    committed: int | None = None
    log_start: int = 0
    log_end: int = 0
    unknown: str | None = None
    tail_is_marker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A group at `at_s`. `membership` changes whenever who is a member does; `is_settled`: no rebalance
    runs.
    """

    at_s: float
    topic_id: str
    members: int
    membership: str
    is_settled: bool
    partitions: tuple[PartitionSample, ...]

    def of(self, partition: int) -> PartitionSample | None:
        """They are in the order of their numbers, nearly always without a hole."""
        if partition < len(self.partitions) and self.partitions[partition].partition == partition:
            return self.partitions[partition]
        return next((each for each in self.partitions if each.partition == partition), None)


class PartitionVerdict(Enum):
    """What a partition is like. Only the first ones have something that more replicas would help."""

    CAUGHT_UP = "caught up"
    BEHIND = "behind"
    PERSISTENT = "persistent"
    NO_COMMIT = "no commit yet"
    TRIMMED = "log start past the commit"
    REWOUND = "rewound"
    MARKER_TAIL = "tail of a transaction marker"
    STALLED = "stalled"
    POISONED = "poisoned"
    UNKNOWN = "unknown"


LEFT_OUT = frozenset({PartitionVerdict.STALLED, PartitionVerdict.POISONED, PartitionVerdict.UNKNOWN})
ALERTED = LEFT_OUT | {PartitionVerdict.TRIMMED, PartitionVerdict.REWOUND}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPartition:
    partition: int
    verdict: PartitionVerdict
    lag_records: int  # what counts, by the rule that was applied; 0 where nothing is known
    why: str
    age_s: float | None = None  # how old the oldest record that waits is, at least; None: nothing waits

    @property
    def is_counted(self) -> bool:
        return self.verdict not in LEFT_OUT

    @property
    def is_alerted(self) -> bool:
        return self.verdict in ALERTED


class Verdict(Enum):
    """What a group's lag is like."""

    UNKNOWN = "unknown"
    IDLE = "idle"
    LOW = "low"
    BETWEEN = "between the thresholds"
    TRANSIENT = "transient"
    RECOVERING = "recovering"
    PERSISTENT = "persistent"


class Move(Enum):
    """What becomes of the number of replicas."""

    OUT = "scale out"
    IN = "scale in"
    HOLD = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A rule that had a say, what it saw, and of which time (its samples are those in it)."""

    rule: str
    text: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is said of a group at `at_s`. Where it is UNKNOWN, no other number of it may be used."""

    at_s: float
    verdict: Verdict
    move: Move
    is_active: bool
    replicas: float  # what is wanted; HPA rounds it up
    lag_records: int = 0  # smoothed, of the partitions that count
    age_s: float | None = None
    produced_per_s: float | None = None
    consumed_per_s: float | None = None
    drain_s: float | None = None  # until nothing waits, at these rates; None: never, or nothing waits
    reasons: tuple[Reason, ...] = ()
    partitions: tuple[JudgedPartition, ...] = ()
    alerts: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        return self.verdict is not Verdict.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A scaling out whose effect is not judged yet: how it was before."""

    at_s: float
    members: int
    consumed_per_s: float
    came_at_s: float | None = None  # when the members had come


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What has to be remembered of a group beyond the window. None of `replicas`: nothing was decided yet."""

    replicas: float | None = None
    is_active: bool | None = None
    out_at_s: float | None = None
    in_at_s: float | None = None
    membership: str | None = None
    membership_at_s: float | None = None  # when it last changed, or the group was last not settled
    settling_since_s: float | None = None  # of a group that does not come to rest
    attempt: Attempt | None = None
    frozen_until_s: float | None = None
    capacity_per_s: float | None = None  # what one replica consumes when there is enough to do
    capacity_at_s: float | None = None
    tails: dict[int, int] = field(default_factory=dict)  # log end of a partition whose rest is but a marker
