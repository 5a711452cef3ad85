"""One log's brokers, as far as an agent asks them: who leads, how far is committed, what is configured."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.tiering.uploader.replica import Replica
from tiering.cluster.interface import (
    DescribedTopic,
    LeaderOffsets,
    Leadership,
    Recovery,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.settings import Setting, Source, topic_settings
from tiering.log.wire import Uuid

TOPIC, CLUSTER_ID = "orders", "c1"
PARTITION = TopicPartition(TOPIC, 0)
DEFAULTS = {
    "cleanup.policy": "delete",
    "remote.storage.enable": "false",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "segment.ms": "604800000",
    "segment.bytes": "1073741824",
    "file.delete.delay.ms": "60000",
    "min.insync.replicas": "1",
    "max.message.bytes": "1048588",
}


def topic_id_of(number: int) -> Uuid:
    """The id of the topic's incarnation so and so many."""
    return Uuid(base64.urlsafe_b64encode(((0xA11 << 64) + number).to_bytes(16, "big")).decode().rstrip("="))


@dataclass(slots=True)
class FakeCluster:
    """One log's brokers: who leads, who is in sync, what is committed."""

    replicas: dict[int, Replica]
    topic_id: Uuid
    leader_id: int = 1
    epoch: int = 0
    in_sync: set[int] = field(default_factory=set)
    high_watermark: int = 0
    unclean_allowed: bool = True

    @property
    def leader(self) -> Replica:
        return self.replicas[self.leader_id]

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]:
        answer = Leadership(
            topic=TOPIC,
            topic_id=self.topic_id,
            partition=0,
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            replicas=tuple(self.replicas),
            isr=tuple(sorted(self.in_sync)),
            recovery=Recovery.RECOVERED,
        )
        return dict.fromkeys(partitions, answer)

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]:
        answer = LeaderOffsets(
            topic_id=self.topic_id,
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            high_watermark=self.high_watermark,
            last_stable_offset=self.high_watermark,
            log_start=self.leader.log_start,
        )
        return dict.fromkeys(partitions, answer)

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        unclean = {"unclean.leader.election.enable": str(self.unclean_allowed).lower()}
        entries = {
            name: Setting(value=value, source=Source.DEFAULT) for name, value in (DEFAULTS | unclean).items()
        }
        return {topic: topic_settings(topic, entries) for topic in topics}

    def broker_settings(self, broker_id: int) -> Unknown:
        raise NotImplementedError(broker_id)

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        return {topic: DescribedTopic(topic=topic, topic_id=self.topic_id, partitions={}) for topic in topics}
