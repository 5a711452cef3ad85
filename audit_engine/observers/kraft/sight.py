"""What all events of one moment have in common: where it was seen, when, and how sure its time is.

Owns the ids: `prefix`, kind and subject. A dated event's prefix names the record by its controller epoch and
its offset, which is one record in all histories of the log; that of a coalesced one names both its ends.

Invariant: two observers that saw the same moment say equal events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from rules.events import (
    ClusterEvent,
    PartitionMetadataEvent,
    ReplicaRemoval,
    ReplicaRemoved,
    Source,
    TopicEvent,
)
from rules.identity import LogId
from tiering.cluster.image import NO_TIMESTAMP, Change, ClusterImage, PartitionKey, PartitionState
from tiering.log.wire import Uuid

NOT_KNOWN = -1

C = TypeVar("C", bound=ClusterEvent)
T = TypeVar("T", bound=TopicEvent)
P = TypeVar("P", bound=PartitionMetadataEvent)


def _every(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is told. `hosted_by`: of partitions, only those that this broker has, or had, a replica of."""

    takes: Callable[[str], bool] = _every
    hosted_by: int | None = None

    def has(self, before: PartitionState | None, after: PartitionState) -> bool:
        if self.hosted_by is None or self.hosted_by in after.replicas:
            return True
        return before is not None and self.hosted_by in before.replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One moment, and who looked. `is_first`: nobody looked before, so nothing changed."""

    cluster_id: str
    prefix: str
    source: Source
    metadata_offset: int | None
    occurred_at_ms: int
    not_before_ms: int | None
    is_coalesced: bool
    is_first: bool = False
    scope: Scope = Scope()

    def event_id(self, kind: str, subject: object) -> str:
        return f"{self.prefix}:{kind}:{subject}"

    def of_cluster(self, kind: type[C], subject: object, **own: Any) -> C:
        return kind(
            event_id=self.event_id(kind.kind, subject),
            occurred_at_ms=self.occurred_at_ms,
            cluster_id=self.cluster_id,
            **own,
        )

    def of_topic(self, kind: type[T], topic_id: Uuid, topic: str, **own: Any) -> T:
        return self.of_cluster(
            kind,
            topic_id,
            topic_id=topic_id,
            topic=topic,
            source=self.source,
            metadata_offset=self.metadata_offset,
            is_coalesced=self.is_coalesced,
            not_before_ms=self.not_before_ms,
            **own,
        )

    def of_partition(
        self, kind: type[P], key: PartitionKey, topic: str, state: PartitionState, *more: object, **own: Any
    ) -> P:
        return kind(
            event_id=self.event_id(kind.kind, ":".join(map(str, (*key, *more)))),
            occurred_at_ms=self.occurred_at_ms,
            log=LogId(self.cluster_id, *key),
            topic=topic,
            leader_epoch=state.leader_epoch,
            source=self.source,
            metadata_offset=self.metadata_offset,
            is_coalesced=self.is_coalesced,
            not_before_ms=self.not_before_ms,
            **own,
        )

    def unassigned(
        self, key: PartitionKey, topic: str, state: PartitionState, broker_id: int
    ) -> ReplicaRemoved:
        """By the metadata alone, which knows a replica's broker and nothing of its lives."""
        return ReplicaRemoved(
            event_id=self.event_id(ReplicaRemoved.kind, ":".join(map(str, (*key, broker_id)))),
            occurred_at_ms=self.occurred_at_ms,
            log=LogId(self.cluster_id, *key),
            topic=topic,
            leader_epoch=state.leader_epoch,
            broker_id=broker_id,
            directory_id=None,
            replica_incarnation=None,
            ordinal=0,
            source=self.source,
            not_before_ms=self.not_before_ms,
            replica_removal=ReplicaRemoval.UNASSIGNED,
            metadata_offset=self.metadata_offset,
        )


def dated(change: Change, cluster_id: str, scope: Scope) -> Sight:
    """One record of the log: it says itself when it was written."""
    return Sight(
        cluster_id=cluster_id,
        prefix=f"kraft:{cluster_id}:{change.epoch}.{change.offset}",
        source=Source.KRAFT,
        metadata_offset=change.offset,
        occurred_at_ms=change.timestamp_ms,
        not_before_ms=None,
        is_coalesced=False,
        scope=scope,
    )


def first(image: ClusterImage, cluster_id: str, scope: Scope) -> Sight:
    """A baseline: the state at an offset, however it came about."""
    return Sight(
        cluster_id=cluster_id,
        prefix=f"kraft:{cluster_id}:to-{image.epoch}.{image.end_offset}",
        source=Source.KRAFT,
        metadata_offset=image.end_offset - 1,
        occurred_at_ms=image.timestamp_ms,
        not_before_ms=None,
        is_coalesced=True,
        is_first=True,
        scope=scope,
    )


def between(before: ClusterImage, after: ClusterImage, cluster_id: str, scope: Scope) -> Sight:
    """What lies between two images of the log: in time, between the last records of both."""
    here = f"{before.epoch}.{before.end_offset}-{after.epoch}.{after.end_offset}"
    since_ms = None if before.timestamp_ms == NO_TIMESTAMP else before.timestamp_ms
    return Sight(
        cluster_id=cluster_id,
        prefix=f"kraft:{cluster_id}:{here}",
        source=Source.KRAFT,
        metadata_offset=after.end_offset - 1,
        occurred_at_ms=max(after.timestamp_ms, since_ms or 0),
        not_before_ms=since_ms,
        is_coalesced=True,
        scope=scope,
    )
