"""Effective configuration of a real broker, as it is changed in each of the places where it can be set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AlterConfigOpType,
    ConfigEntry,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    ConfigResource as Altered,
)

from audit_engine.observers.configs.keys import BROKER_KEYS, TOPIC_KEYS
from audit_engine.observers.configs.observer import Observer
from rules.events import ConfigEffective, ConfigResource, ConfigSource, Event
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.cluster.produce import create_topic
from tiering.cluster.kafka import KafkaCluster

DEADLINE_S = 30.0
TOPIC = "goes-by"
OF_BROKER, OF_TOPIC = "log.cleaner.min.cleanable.ratio", "min.cleanable.dirty.ratio"
DEFAULT, BROKER, OWN = ConfigSource.DEFAULT, ConfigSource.BROKER, ConfigSource.TOPIC


class Watched:
    def __init__(self, broker: LocalCluster, folder: Path) -> None:
        self.said: list[ConfigEffective] = []
        ids = count()
        self.observer = Observer(
            source=KafkaCluster({"bootstrap.servers": broker.bootstrap}, monotonic_s=time.monotonic),
            topics=lambda: [TOPIC],
            cluster_id=broker.cluster_id,
            sink=self,
            now_ms=lambda: time.time_ns() // 1_000_000,
            new_id=lambda: f"e{next(ids)}",
            folder=folder,
        )

    def emit_many(self, events: Sequence[Event]) -> None:
        self.said += [each for each in events if isinstance(each, ConfigEffective)]

    def until(
        self, expected: list[tuple[str, str | None, str | None, ConfigSource | None, ConfigSource]]
    ) -> None:
        """So each changed since the last time, in any order, and nothing else did. A step may be told in two:
        a broker that applies a setting answers for a moment with its new source and its old value."""
        before = len(self.said)

        def found() -> list[tuple[str, str | None, str | None, ConfigSource | None, ConfigSource]]:
            changes: dict[str, list[ConfigEffective]] = {}
            for each in self.said[before:]:
                changes.setdefault(each.key, []).append(each)
            return sorted(
                (key, of[0].old_value, of[-1].new_value, of[0].old_config_source, of[-1].config_source)
                for key, of in changes.items()
            )

        def told() -> bool:
            self.observer.run_once()
            return found() == sorted(expected)

        wait_until(told, name=TOPIC, wanted=str(expected), deadline_s=DEADLINE_S)


def test_a_value_is_followed_through_the_places_where_it_is_set(broker: LocalCluster, tmp_path: Path) -> None:
    """Kafka's default, the broker's own, the topic's, and back: each step on the broker and on the topic."""
    create_topic(broker, TOPIC)
    watched = Watched(broker, tmp_path)
    watched.observer.run_once()
    first = {(each.resource, each.key): each for each in watched.said}
    topic_keys = {key for resource, key in first if resource is ConfigResource.TOPIC}
    broker_keys = {key for resource, key in first if resource is ConfigResource.BROKER}
    assert (topic_keys, broker_keys) == ({*TOPIC_KEYS}, {*BROKER_KEYS}), "this Kafka has every one of them"
    assert all(each.is_first_sight for each in watched.said)
    retention = first[ConfigResource.TOPIC, "retention.ms"]
    assert (retention.new_value, retention.config_source) == ("-1", OWN)
    hours = first[ConfigResource.BROKER, "log.retention.hours"]
    assert (hours.new_value, hours.config_source) == ("168", DEFAULT)

    kafka.set_config(broker.bootstrap, "1", {OF_BROKER: "0.6"}, kind=kafka.ResourceType.BROKER)
    watched.until([(key, "0.5", "0.6", DEFAULT, BROKER) for key in (OF_BROKER, OF_TOPIC)])

    kafka.set_config(broker.bootstrap, TOPIC, {OF_TOPIC: "0.6"})
    watched.until([(OF_TOPIC, "0.6", "0.6", BROKER, OWN)])

    unset(broker, kafka.ResourceType.BROKER, "1", OF_BROKER)
    watched.until([(OF_BROKER, "0.6", "0.5", BROKER, DEFAULT)])

    unset(broker, kafka.ResourceType.TOPIC, TOPIC, OF_TOPIC)
    watched.until([(OF_TOPIC, "0.6", "0.5", OWN, DEFAULT)])
    watched.observer.close()


def unset(broker: LocalCluster, kind: kafka.ResourceType, name: str, key: str) -> None:
    entry = ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
    resource = Altered(kind, name, incremental_configs=[entry])
    admin = kafka.admin_client(broker.bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)
