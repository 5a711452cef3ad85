"""How far the topic of events goes, by the admin API.

A leader that moves, or a broker that has just come back, leaves a partition without an answer for seconds:
it is asked again for a while, as an ingest that ended would only be started again.

Owns the question. Invariant: an answer is of one topic, by its id, and of all its partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from audit_engine.ingest.position import TopicReach
from audit_engine.tables.errors import OffsetsUnknown
from tiering.cluster.interface import (
    Cause,
    DescribedTopic,
    OffsetsSource,
    TopicDescriber,
    TopicPartition,
    Unknown,
)
from tiering.cluster.kafka import KafkaCluster

PATIENCE_S = 60.0  # an election takes seconds, the restart of a broker that leads alone most of a minute
PAUSE_S = 1.0
PASSING = {Cause.NO_ANSWER, Cause.STALE, Cause.NOT_READY}


class Cluster(TopicDescriber, OffsetsSource, Protocol):
    """What is asked."""


class KafkaReach:
    """Of one cluster. Used by one thread at a time."""

    def __init__(
        self,
        config: Mapping[str, str],
        *,
        cluster: Cluster | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster or KafkaCluster(config, monotonic_s=clock)
        self._clock, self._sleep = clock, sleep

    def reach(self, topic: str) -> TopicReach:
        """Raises OffsetsUnknown, at once where it is no matter of leaders, or a ClusterError."""
        last_moment = self._clock() + PATIENCE_S
        while isinstance(found := self._reach_now(topic), Unknown):
            if found.cause not in PASSING or self._clock() >= last_moment:
                raise OffsetsUnknown(topic=topic, why=found.reason)
            self._sleep(PAUSE_S)
        return found

    def _reach_now(self, topic: str) -> TopicReach | Unknown:
        """Unknown: what a leader could not say."""
        described = self._cluster.describe_topics([topic])[topic]
        if isinstance(described, Unknown):
            raise OffsetsUnknown(topic=topic, why=described.reason)
        starts, ends = {}, {}
        for place, answer in self._cluster.leader_offsets(_places(topic, described)).items():
            if isinstance(answer, Unknown):
                # One broker has just described it: another that knows of none is behind.
                cause = Cause.STALE if answer.cause is Cause.NO_SUCH_TOPIC else answer.cause
                return Unknown(cause=cause, reason=f"partition {place.partition}: {answer.reason}")
            if answer.topic_id != described.topic_id:
                return Unknown(cause=Cause.STALE, reason="it was made anew while it was asked")
            starts[place.partition] = answer.log_start
            ends[place.partition] = answer.last_stable_offset
        return TopicReach(topic_id=str(described.topic_id), starts=starts, ends=ends)


def _places(topic: str, described: DescribedTopic) -> set[TopicPartition]:
    return {TopicPartition(topic, partition) for partition in described.partitions}
