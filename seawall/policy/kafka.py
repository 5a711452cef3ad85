"""Opens what the verbs need of a cluster, from the settings: its topics' names, and the log of changes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from seawall.connections import kafka_config
from seawall.policy.change_log.kafka import KafkaChangeLog
from seawall.settings import KafkaSettings, Settings
from tiering.cluster.errors import ClusterUnreachable
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.quiet import QUIET
from tiering.cluster.topics import is_internal

ANSWER_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    cluster_id: str
    source: KafkaCluster
    changes: KafkaChangeLog
    settings: KafkaSettings

    def topic_names(self) -> list[str]:
        """Every topic but those in which Kafka, or Seawall, keeps its own state."""
        client = AdminClient({**self.settings.librdkafka()}, logger=QUIET)
        try:
            # Without a topic's name: with one, brokers may create it.
            found = client.list_topics(timeout=ANSWER_TIMEOUT_S).topics
        except KafkaException as failure:
            raise ClusterUnreachable(
                bootstrap=self.settings.bootstrap or "", why=failure.args[0].str()
            ) from failure
        return sorted(name for name in found if not is_internal(name))


def open_cluster(settings: Settings) -> Opened:
    """NotSet if none is set, ClusterUnreachable if it does not answer."""
    librdkafka = kafka_config(settings, client_id="seawall-policy")
    source = KafkaCluster(librdkafka, monotonic_s=time.monotonic, answer_timeout_s=ANSWER_TIMEOUT_S)
    identity = source.identity()
    changes = KafkaChangeLog(
        librdkafka,
        cluster=source,
        cluster_id=identity.cluster_id,
        broker_count=len(identity.broker_ids),
    )
    return Opened(cluster_id=identity.cluster_id, source=source, changes=changes, settings=settings.kafka)
