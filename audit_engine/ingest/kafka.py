"""How far the topic of events goes, by the admin API.

Owns the question. Invariant: an answer is of one topic, by its id, and of all its partitions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from audit_engine.ingest.position import TopicReach
from audit_engine.tables.errors import OffsetsUnknown
from tiering.cluster.interface import TopicPartition, Unknown
from tiering.cluster.kafka import KafkaCluster


class KafkaReach:
    def __init__(self, config: Mapping[str, str]) -> None:
        self._cluster = KafkaCluster(config, monotonic_s=time.monotonic)

    def reach(self, topic: str) -> TopicReach:
        """Raises OffsetsUnknown, or a ClusterError."""
        described = self._cluster.describe_topics([topic])[topic]
        if isinstance(described, Unknown):
            raise OffsetsUnknown(topic=topic, why=described.reason)
        starts, ends = {}, {}
        places = {TopicPartition(topic, partition) for partition in described.partitions}
        for place, answer in self._cluster.leader_offsets(places).items():
            if isinstance(answer, Unknown):
                raise OffsetsUnknown(topic=topic, why=f"partition {place.partition}: {answer.reason}")
            if answer.topic_id != described.topic_id:
                raise OffsetsUnknown(topic=topic, why="it was made anew while it was asked")
            starts[place.partition] = answer.log_start
            ends[place.partition] = answer.last_stable_offset
        return TopicReach(topic_id=str(described.topic_id), starts=starts, ends=ends)
