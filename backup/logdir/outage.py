"""Which brokers must stop for a restore, in which order, and what goes offline with them (pure).

Every replica of the log is stopped at the same time: one that runs on would hand the others its own log start
(KAFKA_FACTS 1). The last leader is stopped last, so that no other is elected, and started first.

Invariant: a partition is named here if and only if none of its in-sync replicas stays up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tiering.cluster.interface import DescribedTopic
from tiering.log.checkpoints import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """`brokers` are in the order in which they start: the last leader first. They stop in the other."""

    brokers: tuple[int, ...]
    offline: tuple[TopicPartition, ...]

    @property
    def stopping(self) -> tuple[int, ...]:
        return self.brokers[::-1]


def outage(topics: Iterable[DescribedTopic], log: TopicPartition) -> Outage | None:
    """None where the log has no replica, or no leader to tell whose history counts."""
    listed = list(topics)
    own = next((each.partitions.get(log.partition) for each in listed if each.topic == log.topic), None)
    if own is None or own.leader_id is None:
        return None
    others = sorted(each for each in own.replicas if each != own.leader_id)
    stopped = frozenset(own.replicas)
    return Outage(brokers=(own.leader_id, *others), offline=tuple(sorted(_offline(listed, stopped, but=log))))


def _offline(
    topics: Iterable[DescribedTopic], stopped: frozenset[int], *, but: TopicPartition
) -> Iterator[TopicPartition]:
    for topic in topics:
        for number, each in topic.partitions.items():
            named = TopicPartition(topic.topic, number)
            if named != but and each.isr and stopped >= set(each.isr):
                yield named
