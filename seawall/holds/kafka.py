"""A topic's own settings, changed: the adapter of `retention.TopicConfigs`.

Owns the client. Invariant: what it is not told to change stays as it is (incremental alter, KIP-339).
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from seawall.holds.errors import HoldRefused
from tiering.cluster.quiet import QUIET

ANSWER_S = 30.0


class KafkaTopicConfigs:
    def __init__(self, librdkafka: Mapping[str, str]) -> None:
        self._settings = dict(librdkafka)

    def alter(self, topic: str, values: Mapping[str, str | None]) -> None:
        set_to, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
        changes = [
            ConfigEntry(name, value, incremental_operation=delete if value is None else set_to)
            for name, value in values.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
        admin = AdminClient({**self._settings}, logger=QUIET)
        try:
            admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)
        except KafkaException as failed:
            raise HoldRefused(topic=topic, why=failed.args[0].str()) from failed
