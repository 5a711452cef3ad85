"""Has a partition's first replica lead again."""

from __future__ import annotations

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until

DEADLINE_S = 90.0


def ask_for_preferred(cluster: LocalCluster, topic: str) -> bool:
    """Whether it was elected, or leads already; False where it cannot yet."""
    admin = kafka.admin_client(cluster.bootstrap)
    try:
        answers = admin.elect_leaders(ElectionType.PREFERRED, [ClientPartition(topic, 0)]).result(DEADLINE_S)
    except KafkaException:
        return False
    return all(error is None or error.name() == "ELECTION_NOT_NEEDED" for error in answers.values())


def elect_preferred(cluster: LocalCluster, topic: str) -> None:
    wait_until(
        lambda: ask_for_preferred(cluster, topic), name=topic, wanted="an election", deadline_s=DEADLINE_S
    )
