"""What an offline restore of a log would mean, asked of the cluster while it is up.

Owns the questions, and which of the answers keep a restore from being carried out. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from backup.errors import CannotRestore, WrongCluster
from backup.logdir.outage import Outage, outage
from backup.logdir.retention import complaints
from rules.identity import LogId
from tiering.cluster.interface import (
    BrokerSettings,
    ClusterIdentity,
    DescribedTopic,
    LeaderOffsets,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.segments.records import SegmentRecord

DEFAULT_CHECK_MS = 300_000  # log.retention.check.interval.ms, where a broker does not tell
KAFKAS_OWN_TIER = (
    "Kafka's own tiered storage (KIP-405) is on for the topic: where its log begins is then a matter of the"
    " brokers' tier and of a checkpoint, and files that are put before those on the disk belong to neither;"
    " restore to target topic"
)
CHECK_INTERVAL = "log.retention.check.interval.ms"


class Cluster(Protocol):
    """The cluster, as this asks it. `KafkaCluster` is one."""

    def identity(self) -> ClusterIdentity: ...

    def topic_names(self) -> frozenset[str] | Unknown: ...

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]: ...

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]: ...

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]: ...

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """`settings` are the topic's as each replica's broker sees them."""

    outage: Outage
    log_start: int  # the leader's, now
    settings: Mapping[int, TopicSettings]
    check_interval_ms: int

    def complaints(
        self, records: Iterable[SegmentRecord], *, live_bytes: int | None, until_ms: int
    ) -> list[str]:
        """What would delete it again."""
        return list(complaints(self.settings, records, live_bytes=live_bytes, until_ms=until_ms))

    def details(self) -> dict[str, Any]:
        """What a plan says of it."""
        return {
            "brokers_to_stop": list(self.outage.stopping),
            "start_first": self.outage.brokers[0],
            "goes_offline": [f"{topic}-{partition}" for topic, partition in self.outage.offline],
        }


def look(cluster: Cluster, log: LogId, topic: str) -> Prospect:
    """Raises CannotRestore, WrongCluster, or what the cluster's adapter raises."""
    found_id = cluster.identity().cluster_id
    if found_id != log.cluster_id:
        raise WrongCluster(log=log, why="", planned=log.cluster_id, found=found_id)
    names = _known(log, cluster.topic_names())
    described = {name: _known(log, each) for name, each in cluster.describe_topics(names).items()}
    if topic not in described or described[topic].topic_id != log.topic_id:
        raise CannotRestore(log=log, why=f"topic {topic} is not there, or was made again since")
    named = TopicPartition(topic, log.partition)
    stopped = outage(described.values(), named)
    if stopped is None:
        raise CannotRestore(log=log, why="it has no leader: nobody tells whose history counts")
    seen = _known(log, cluster.topic_settings([topic])[topic])
    brokers = [_known(log, cluster.broker_settings(each)) for each in stopped.brokers]
    settings = {each.broker_id: seen.as_seen_by(each) for each in brokers}
    if any(each.remote_storage_enable.value for each in settings.values()):
        raise CannotRestore(log=log, why=KAFKAS_OWN_TIER)
    offsets = _known(log, cluster.leader_offsets([named])[named])
    return Prospect(
        outage=stopped,
        log_start=offsets.log_start,
        settings=settings,
        check_interval_ms=max(map(_check_interval_ms, brokers)),
    )


def _check_interval_ms(broker: BrokerSettings) -> int:
    found = broker.entries.get(CHECK_INTERVAL)
    return int(found.value) if found is not None and found.value else DEFAULT_CHECK_MS


def _known(log: LogId, answer: Any) -> Any:
    if isinstance(answer, Unknown):
        raise CannotRestore(log=log, why=answer.reason)
    return answer
