"""What a topic must be like to hold evidence until it has been ingested, and audited again if need be.

    cleanup.policy                   delete alone: compaction would leave one event a log
    retention.ms                     14 days at least, or unlimited, and set on the topic itself: a default of
                                     the brokers that goes wrong is just what the evidence is for
    retention.bytes                  unlimited, set on the topic itself
    max.message.bytes                room for the largest event that the spool takes
    unclean.leader.election.enable   false
    min.insync.replicas              2, of three replicas or more: else one disk's word is an acknowledgement

How many partitions there are is free, and may grow: order is the emitter's numbers, not the topic's offsets.

Owns these rules. Refuses to look: the adapter does. Invariant: `settings` of any replication have no fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from audit_engine.spool.spool import EVENT_BYTES_MAX
from tiering.cluster import durable
from tiering.cluster.interface import DescribedTopic, TopicSettings
from tiering.cluster.settings import UNLIMITED, Source

DAY_MS = 24 * 3_600_000
RETENTION_LEAST_MS = 14 * DAY_MS
RETENTION_MS = 30 * DAY_MS
BATCH_OVERHEAD_BYTES = 64 * 1024
MESSAGE_BYTES_MAX = EVENT_BYTES_MAX + BATCH_OVERHEAD_BYTES
REPLICAS = 3


def settings(replication: int) -> dict[str, str]:
    """What the topic is made with."""
    kept = {"retention.bytes": str(UNLIMITED), "retention.ms": str(RETENTION_MS)}
    return durable.settings(replication, MESSAGE_BYTES_MAX) | kept


def faults(described: DescribedTopic, found: TopicSettings) -> Iterator[str]:
    """Everything that is wrong, in words."""
    if found.cleanup_policy.value != {"delete"}:
        yield f"cleanup.policy is {','.join(sorted(found.cleanup_policy.value))}"
    retention, size = found.retention_ms, found.retention_bytes
    if retention.value != UNLIMITED and retention.value < RETENTION_LEAST_MS:
        yield f"retention.ms is {retention.value}, less than {RETENTION_LEAST_MS} (14 days)"
    elif retention.source is not Source.TOPIC:
        yield f"retention.ms is {retention.value} by the brokers' settings, and not by its own"
    if size.value != UNLIMITED:
        yield f"retention.bytes is {size.value}"
    elif size.source is not Source.TOPIC:
        yield f"retention.bytes is {size.value} by the brokers' settings, and not by its own"
    yield from durable.faults(described, found, MESSAGE_BYTES_MAX)
