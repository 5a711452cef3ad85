"""Turns the entries of a DescribeConfigs answer into settings, each with where it comes from.

Owns the translation. A topic whose entries lack what must be there is Unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import ConfigEntry, ConfigSource  # type: ignore[attr-defined]  # not re-exported

from tiering.cluster.errors import SettingUntold
from tiering.cluster.interface import Cause, TopicSettings, Unknown
from tiering.cluster.settings import Setting, Source, topic_settings

_SOURCES = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: Source.TOPIC,
    ConfigSource.DYNAMIC_BROKER_CONFIG: Source.BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: Source.ALL_BROKERS,
    ConfigSource.STATIC_BROKER_CONFIG: Source.STATIC,
    ConfigSource.DEFAULT_CONFIG: Source.DEFAULT,
}


def entries_of(found: Mapping[str, ConfigEntry]) -> dict[str, Setting]:
    return {
        name: Setting(
            value=None if entry.is_sensitive else entry.value,
            source=_SOURCES.get(ConfigSource(entry.source), Source.OTHER),
        )
        for name, entry in found.items()
    }


def typed(topic: str, entries: Mapping[str, Setting]) -> TopicSettings | Unknown:
    try:
        return topic_settings(topic, entries)
    except SettingUntold as untold:
        return Unknown(cause=Cause.PARTIAL, reason=str(untold))
