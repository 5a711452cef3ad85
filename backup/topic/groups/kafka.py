"""Groups by the admin API: the adapter of `Groups`."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from backup.topic.errors import GroupRefused
from backup.topic.groups import Place
from tiering.cluster.quiet import QUIET

ANSWER_S = 30.0


class KafkaGroups:
    """The groups of one cluster. `config` is librdkafka's."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._admin = AdminClient(dict(config), logger=QUIET)

    def positions(self, group: str) -> dict[Place, int]:
        try:
            [answer] = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
            rows = answer.result(ANSWER_S).topic_partitions or []
        except KafkaException as refused:
            raise GroupRefused(group=group, why=refused.args[0].str()) from refused
        return {Place(row.topic, row.partition): row.offset for row in rows if row.offset >= 0}

    def state(self, group: str) -> str:
        try:
            [answer] = self._admin.describe_consumer_groups([group]).values()
            return str(answer.result(ANSWER_S).state.name)
        except KafkaException as refused:
            if refused.args[0].name() == "GROUP_ID_NOT_FOUND":
                return "DEAD"
            raise GroupRefused(group=group, why=refused.args[0].str()) from refused

    def commit(self, group: str, positions: Mapping[Place, int]) -> None:
        rows = [TopicPartition(place.topic, place.partition, at) for place, at in positions.items()]
        asked = ConsumerGroupTopicPartitions(group, rows)
        try:
            [answer] = self._admin.alter_consumer_group_offsets([asked]).values()
            done = answer.result(ANSWER_S).topic_partitions or []
        except KafkaException as refused:
            raise GroupRefused(group=group, why=refused.args[0].str()) from refused
        for row in done:
            if row.error is not None:
                raise GroupRefused(group=group, why=f"{row.topic}-{row.partition}: {row.error.str()}")
