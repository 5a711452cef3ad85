"""From the cluster's answers to what one broker goes by: each told setting, and where it was set.

Owns this step. Refuses to fill in what no answer holds: such a key is left out, and told when it is there.

Invariant: a value comes from the topic itself, or from the broker that goes by it; never from another broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from audit_engine.observers.configs.keys import BROKER_KEYS, TOPIC_KEYS, Behind
from rules.events import ConfigSource
from tiering.cluster.interface import BrokerSettings, TopicDescriber, Unknown
from tiering.cluster.settings import UNLIMITED, Setting, Source


class Value(NamedTuple):
    """A value as text, None where the key is unset, and where it was set."""

    value: str | None
    source: ConfigSource


Values: TypeAlias = Mapping[str, Value]


class ConfigsSource(TopicDescriber, Protocol):
    """Answers DescribeConfigs and says which topics there are; `tiering.cluster.kafka` does."""

    def topic_entries(self, topics: Iterable[str]) -> Mapping[str, Mapping[str, Setting] | Unknown]: ...

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown: ...


_SOURCES = {
    Source.TOPIC: ConfigSource.TOPIC,
    Source.BROKER: ConfigSource.BROKER,
    Source.ALL_BROKERS: ConfigSource.ALL_BROKERS,
    Source.STATIC: ConfigSource.STATIC,
    Source.DEFAULT: ConfigSource.DEFAULT,
    Source.OTHER: ConfigSource.OTHER,
}


def of_broker(broker: BrokerSettings) -> Values:
    return {key: _value(broker.entries[key]) for key in BROKER_KEYS if key in broker.entries}


def of_topic(entries: Mapping[str, Setting], broker: BrokerSettings) -> Values:
    """What this broker goes by for the topic with these entries, whoever answered them."""
    return {
        key: _of_key(entries[key], behind, broker) for key, behind in TOPIC_KEYS.items() if key in entries
    }


def _of_key(own: Setting, behind: Behind, broker: BrokerSettings) -> Value:
    if own.source is Source.TOPIC or not behind:
        return _value(own)
    for name, factor in behind:
        setting = broker.entries.get(name)
        if setting is not None and setting.value is not None:
            return Value(_scaled(setting.value, factor), _SOURCES[setting.source])
    return _value(own)


def _value(setting: Setting) -> Value:
    return Value(setting.value, _SOURCES[setting.source])


def _scaled(text: str, factor: int) -> str:
    """Hours and minutes in milliseconds; below zero is unlimited in any unit."""
    if factor == 1:
        return text
    number = int(text)
    return str(number * factor if number >= 0 else UNLIMITED)
