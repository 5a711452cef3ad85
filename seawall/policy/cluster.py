"""What brokers really do with each topic: how long they keep it, and whether by themselves.

Owns the gathering. A topic's own settings are the same everywhere; what it leaves to the brokers may differ
from one to the next, static settings above all, and each broker deletes by its own (KAFKA_FACTS 3 and 17). So
a topic is looked at as each broker that holds a replica of it sees it.

Invariant: a topic of which anything could not be learnt is `Unknown`, with the reason; it is never left out.
One that was deleted meanwhile is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tiering.cluster.errors import SettingUntold
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    DescribedTopic,
    SettingsSource,
    TopicDescriber,
    TopicSettings,
    Unknown,
)


class ClusterSource(SettingsSource, TopicDescriber, Protocol):
    """What is asked of the cluster; `tiering.cluster.kafka` answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTopic:
    """One topic, as each broker sees it that holds a replica."""

    topic: str
    by_broker: Mapping[int, TopicSettings]

    @property
    def settings(self) -> TopicSettings:
        """As one of the brokers sees it: for what a topic has of its own."""
        return next(iter(self.by_broker.values()))


def look(source: ClusterSource, topics: Iterable[str]) -> dict[str, SeenTopic | Unknown]:
    """Each of the topics that exists, in order."""
    names = sorted(set(topics))
    described = source.describe_topics(names)
    settings = source.topic_settings(names)
    brokers: dict[int, BrokerSettings | Unknown] = {}
    seen: dict[str, SeenTopic | Unknown] = {}
    for name in names:
        found = _seen(described[name], settings[name], brokers, source)
        if not (isinstance(found, Unknown) and found.cause is Cause.NO_SUCH_TOPIC):
            seen[name] = found
    return seen


def _seen(
    described: DescribedTopic | Unknown,
    settings: TopicSettings | Unknown,
    brokers: dict[int, BrokerSettings | Unknown],
    source: ClusterSource,
) -> SeenTopic | Unknown:
    if isinstance(described, Unknown):
        return described
    if isinstance(settings, Unknown):
        return settings
    by_broker: dict[int, TopicSettings] = {}
    for broker_id in sorted({each for held in described.partitions.values() for each in held.replicas}):
        if broker_id not in brokers:
            brokers[broker_id] = source.broker_settings(broker_id)
        broker = brokers[broker_id]
        if isinstance(broker, Unknown):
            return Unknown(cause=broker.cause, reason=f"broker {broker_id}: {broker.reason}")
        try:
            by_broker[broker_id] = settings.as_seen_by(broker)
        except SettingUntold as untold:
            return Unknown(cause=Cause.PARTIAL, reason=str(untold))
    if not by_broker:
        return Unknown(cause=Cause.PARTIAL, reason="no broker is said to hold it")
    return SeenTopic(topic=described.topic, by_broker=by_broker)
