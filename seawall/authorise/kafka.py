"""Which topic has a name now."""

from __future__ import annotations

from seawall.authorise.errors import NoSuchLog
from tiering.cluster.interface import DescribedTopic
from tiering.cluster.kafka import KafkaCluster


def topic_id_of(cluster: KafkaCluster, topic: str, partition: int | None) -> str:
    """Its id. Raises NoSuchLog where there is no such topic, or no such partition of it."""
    described = cluster.describe_topics([topic])[topic]
    if not isinstance(described, DescribedTopic):
        raise NoSuchLog(what=f"topic {topic}: {described.reason}")
    if partition is not None and partition not in described.partitions:
        raise NoSuchLog(what=f"partition {partition} of topic {topic}")
    return str(described.topic_id)
