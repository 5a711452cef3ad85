"""What the topics of a shared scrub must be like.

    tasks      `__seawall_scrub_tasks`, PARTITIONS partitions: so many workers have something to do at most
    answers    `__seawall_scrub_answers`, one partition: every coordinator reads all of it
    letters    `__seawall_scrub_letters`, one partition: tasks that no worker could read or do, and why

Short-lived, deleted by time: the truth is in the topic of metadata and in the coordinator's memory. A task
that is lost is a segment that ends unclear and has its turn first in the next run; one that is kept is of a
run that is over. So nothing of them is ever evidence.

    cleanup.policy                   delete alone
    retention.ms                     a day, and two hours at least: longer than an answer is waited for
    min.insync.replicas              2, of three replicas or more: an answer is durable before an offset moves
    unclean.leader.election.enable   false

Owns these rules. Refuses to look: `kafka` does. Invariant: `settings` of any replication have no fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tiering.cluster import durable
from tiering.cluster.interface import DescribedTopic, TopicSettings
from tiering.cluster.settings import UNLIMITED

HOUR_MS = 3_600_000
RETENTION_LEAST_MS = 2 * HOUR_MS
RETENTION_MS = 24 * HOUR_MS
LETTERS_RETENTION_MS = 14 * RETENTION_MS
MESSAGE_BYTES_MAX = 2 * 1024 * 1024  # a record of the topic of metadata, and its envelope
REPLICAS = 3
PARTITIONS = 24
GROUP = "seawall-scrub-workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Of the three."""

    tasks: str = "__seawall_scrub_tasks"
    answers: str = "__seawall_scrub_answers"
    letters: str = "__seawall_scrub_letters"


def settings(replication: int, retention_ms: int = RETENTION_MS) -> dict[str, str]:
    """What one is made with."""
    return durable.settings(replication, MESSAGE_BYTES_MAX) | {
        "retention.ms": str(retention_ms),
        "segment.ms": str(HOUR_MS),  # what is in the active segment is never deleted
    }


def faults(described: DescribedTopic, found: TopicSettings, *, partitions: int | None) -> Iterator[str]:
    """Everything that is wrong, in words. `partitions`: how many there must be; None: any number."""
    if found.cleanup_policy.value != {"delete"}:
        yield f"cleanup.policy is {','.join(sorted(found.cleanup_policy.value))}, and not delete"
    retention_ms = found.retention_ms.value
    if retention_ms != UNLIMITED and retention_ms < RETENTION_LEAST_MS:
        yield f"retention.ms is {retention_ms}, less than {RETENTION_LEAST_MS} (2 hours)"
    yield from durable.faults(described, found, MESSAGE_BYTES_MAX)
    if partitions is not None and len(described.partitions) != partitions:
        yield f"it has {len(described.partitions)} partitions, and not {partitions}"
