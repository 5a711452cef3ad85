"""What was declared for one topic, as far as removing from its tier goes, and how much may go at once.

Owns the reading of the policy's values: what is undeclared or unlimited is None here, and None keeps. Refuses
to add an opinion to them, but one: the tier of a deleted topic stays at least TOPIC_GRACE_MS, because nothing
that is left in Kafka could show that the deletion was a mistake.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import NamedTuple

from rules.policy.quantities import UNLIMITED, Limit
from rules.policy.topic import TopicPolicy

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TOPIC_GRACE_MS = 7 * DAY_MS
BLAST_BYTES_PER_HOUR = 2**40


class BlastLimit(NamedTuple):
    """How much may go at most."""

    segments: int
    size_bytes: int

    def allows(self, segments: int, size_bytes: int) -> bool:
        return segments <= self.segments and size_bytes <= self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePolicy:
    """What was declared for one topic. `total_*` of None keeps for ever."""

    deletes: bool
    total_ms: int | None
    total_bytes: int | None
    grace_ms: int  # from a log's new start to the removal of what lies below it
    topic_grace_ms: int
    window_ms: int  # for how long a removed segment can be put back
    blast_per_hour: BlastLimit

    @property
    def blast_per_advance(self) -> BlastLimit:
        """A log's start moves once in a grace, so that one move may be as much as is removed in that time."""
        hours = max(1, -(-self.grace_ms // HOUR_MS))
        return BlastLimit(self.blast_per_hour.segments * hours, self.blast_per_hour.size_bytes * hours)


def remote_policy(declared: TopicPolicy, *, blast_bytes_per_hour: int = BLAST_BYTES_PER_HOUR) -> RemotePolicy:
    return RemotePolicy(
        deletes=declared.remote_deletion,
        total_ms=_limit(declared.total_retention_ms),
        total_bytes=_limit(declared.total_retention_bytes),
        grace_ms=declared.delete_grace_ms,
        topic_grace_ms=max(declared.delete_grace_ms, TOPIC_GRACE_MS),
        window_ms=declared.backup_window_days * DAY_MS,
        blast_per_hour=BlastLimit(declared.blast_limit_segments_per_hour, blast_bytes_per_hour),
    )


def _limit(declared: Limit | None) -> int | None:
    return None if declared is None or declared is UNLIMITED else declared


class BlastLedger:
    """What went of each topic within the last hour, so that runs add up. Not for several threads at once."""

    def __init__(self) -> None:
        self._spent: defaultdict[str, deque[tuple[int, int]]] = defaultdict(deque)  # topic id: (when, bytes)

    def spend(self, topic_id: str, size_bytes: int, *, now_ms: int) -> None:
        """One segment is on its way out. Said before its first record, so that a failure has been counted."""
        self._spent[topic_id].append((now_ms, size_bytes))

    def left(self, topic_id: str, limit: BlastLimit, *, now_ms: int) -> BlastLimit:
        """What may still go. A clock that was put back frees nothing."""
        spent = self._spent[topic_id]
        while spent and spent[0][0] <= now_ms - HOUR_MS:
            spent.popleft()
        used_bytes = sum(size_bytes for _, size_bytes in spent)
        return BlastLimit(max(0, limit.segments - len(spent)), max(0, limit.size_bytes - used_bytes))
