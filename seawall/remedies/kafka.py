"""The steps that the verb does itself, on the cluster: another order of replicas, an election, a setting.

Owns the acts. Each is read back: an answer is no proof that a thing is so.

Invariant: a step that is told to be done was seen to be so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from seawall.holds.errors import RemedyRefused
from tiering.cluster.interface import DescribedPartition, DescribedTopic
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.quiet import QUIET
from tiering.cluster.reassign.client import ReplicaOrder

ANSWER_S = 30.0
SEEN_S = 30.0
LOOK_S = 0.2


class KafkaRemedies:
    def __init__(self, librdkafka: Mapping[str, str], cluster: KafkaCluster) -> None:
        self._settings = dict(librdkafka)
        self._cluster = cluster

    def put_order(self, topic: str, partition: int, order: Sequence[int]) -> None:
        """The same replicas in another order. Raises RemedyRefused."""
        what = f"putting the replicas of {topic}-{partition} in the order {', '.join(map(str, order))}"
        now = self._partition(topic, partition)
        if now is None or sorted(now.replicas) != sorted(order):
            raise RemedyRefused(what=what, why="they are others by now; look again")
        refused = ReplicaOrder(self._settings).put(topic, partition, order)
        if refused is not None:
            raise RemedyRefused(what=what, why=refused.reason)
        self._wait(topic, partition, lambda found: found.replicas == tuple(order), what)

    def elect_preferred(self, topic: str, partition: int, leader: int) -> None:
        """The first of the replicas leads. Raises RemedyRefused."""
        what = f"electing broker {leader} for {topic}-{partition}"
        admin = AdminClient({**self._settings}, logger=QUIET)
        try:
            asked = [TopicPartition(topic, partition)]
            answers = admin.elect_leaders(ElectionType.PREFERRED, asked).result(ANSWER_S)
        except KafkaException as failed:
            raise RemedyRefused(what=what, why=failed.args[0].str()) from failed
        for error in answers.values():
            if error is not None and error.name() != "ELECTION_NOT_NEEDED":
                raise RemedyRefused(what=what, why=error.str())
        self._wait(topic, partition, lambda found: found.leader_id == leader, what)

    def _wait(
        self, topic: str, partition: int, is_so: Callable[[DescribedPartition], bool], what: str
    ) -> None:
        last_moment = time.monotonic() + SEEN_S
        while True:
            found = self._partition(topic, partition)
            if found is not None and is_so(found):
                return
            if time.monotonic() >= last_moment:
                raise RemedyRefused(what=what, why=f"it was asked for, and is not seen within {SEEN_S:g} s")
            time.sleep(LOOK_S)

    def _partition(self, topic: str, partition: int) -> DescribedPartition | None:
        described = self._cluster.describe_topics([topic])[topic]
        return described.partitions.get(partition) if isinstance(described, DescribedTopic) else None
