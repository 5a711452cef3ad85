"""The cluster for `seawall init`: the admin API, and each broker's own word.

Requests that this makes, all of which only read: Metadata, DescribeConfigs, ListOffsets, DescribeLogDirs,
DescribeQuorum, ApiVersions.

Owns the clients. Refuses to name a topic in a Metadata request, as brokers may create it then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AdminClient,
    OffsetSpec,
)

from seawall.connections import kafka_config
from seawall.init.seen import BrokerAddress, FirstSince, Listing
from seawall.settings import Settings
from tiering.cluster.admin_client.kafka import FUTURE_GRACE_S, PARTITIONS_PER_REQUEST
from tiering.cluster.errors import ClientRefused, ClusterUnreachable
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    DescribedPartition,
    DescribedTopic,
    LeaderOffsets,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.log_sizes.client import BrokerClient
from tiering.cluster.quiet import QUIET

ANSWER_TIMEOUT_S = 10.0  # it may be a large cluster, and a slow one
CLIENT_ID = "seawall-init"


class KafkaEyes:
    """A `seen.Cluster`. Made, it has asked nothing yet."""

    def __init__(self, settings: Settings, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._librdkafka = kafka_config(settings, client_id=CLIENT_ID)
        self._timeout_s = answer_timeout_s
        self._told = ""
        self._cluster = KafkaCluster(
            self._librdkafka, monotonic_s=time.monotonic, answer_timeout_s=answer_timeout_s
        )
        try:
            noted: dict[str, Any] = {**self._librdkafka, "error_cb": self._note}
            self._client = AdminClient(noted, logger=QUIET)
        except KafkaException as refused:
            raise ClientRefused(why=refused.args[0].str()) from refused

    def listing(self) -> Listing:
        """Raises ClusterUnreachable."""
        try:
            found = self._client.list_topics(timeout=self._timeout_s)
        except KafkaException as failure:
            self._client.poll(0)  # runs `_note`, which was told why; the failure itself is only late
            why = self._told or failure.args[0].str()
            raise ClusterUnreachable(bootstrap=self._librdkafka["bootstrap.servers"], why=why) from failure
        return Listing(
            cluster_id=found.cluster_id,
            brokers=tuple(
                BrokerAddress(broker_id=each.id, host=str(each.host), port=each.port)
                for _, each in sorted(found.brokers.items())
            ),
            topics={name: _partitions(topic) for name, topic in sorted(found.topics.items())},
        )

    def _note(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # which only follows from the others
            self._told = error.str()

    def word_of(self, broker: BrokerAddress) -> BrokerClient:
        return BrokerClient(broker.host, broker.port, self._librdkafka)

    def first_since(
        self, partitions: Iterable[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, FirstSince | Unknown | None]:
        asked = list(partitions)
        spec = OffsetSpec.for_timestamp(at_ms)
        answers: dict[TopicPartition, FirstSince | Unknown | None] = {}
        for start in range(0, len(asked), PARTITIONS_PER_REQUEST):
            answers |= self._first_since(asked[start : start + PARTITIONS_PER_REQUEST], spec)
        return answers

    def _first_since(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, FirstSince | Unknown | None]:
        futures: Mapping[ClientPartition, Future[Any]] = self._client.list_offsets(
            {ClientPartition(each.topic, each.partition): spec for each in partitions},
            request_timeout=self._timeout_s,
        )
        return {
            TopicPartition(each.topic, each.partition): self._found(future)
            for each, future in futures.items()
        }

    def _found(self, future: Future[Any]) -> FirstSince | Unknown | None:
        try:
            found = future.result(self._timeout_s + FUTURE_GRACE_S)
        except KafkaException as failed:
            return Unknown(cause=Cause.ERROR, reason=failed.args[0].str())
        except NotInTime:
            return Unknown(cause=Cause.NO_ANSWER, reason="the client did not answer")
        if found.offset < 0 or found.timestamp < 0:
            return None
        return FirstSince(offset=found.offset, timestamp_ms=found.timestamp)

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        return self._cluster.describe_topics(topics)

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]:
        return self._cluster.leader_offsets(partitions)

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        return self._cluster.topic_settings(topics)

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown:
        return self._cluster.broker_settings(broker_id)


def _partitions(topic: Any) -> dict[int, DescribedPartition]:
    return {
        number: DescribedPartition(
            leader_id=each.leader if each.leader >= 0 else None,
            replicas=tuple(each.replicas),
            isr=tuple(each.isrs),
        )
        for number, each in sorted(topic.partitions.items())
    }
