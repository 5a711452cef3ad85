"""What is configured for a topic and on a broker, each value with where it comes from.

Owns the reading of DescribeConfigs' answers, which are text, into typed values. A topic's answer is given by
*some* broker: what is not set on the topic itself is that broker's static configuration or default, and may
be another on the broker whose log dirs are looked at (KAFKA_FACTS 17). `as_seen_by` puts that right, and
the source too: Kafka calls a topic's retention.ms a default where the broker's log.retention.hours made it.

Refuses to fill in a default: a name that the answer lacks, or a value that is no number, is `SettingUntold`.

Invariant: every value comes from one broker's answer, and says from which of its sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from tiering.cluster.errors import SettingUntold

T = TypeVar("T")

MS_PER_MINUTE = 60_000
MS_PER_HOUR = 60 * MS_PER_MINUTE
UNLIMITED = -1
SAME_AS_TOTAL = -2  # local.retention.*: as retention.*


class Source(str, Enum):
    """Who set a value."""

    TOPIC = "topic"
    BROKER = "broker"  # dynamically, this broker alone
    ALL_BROKERS = "all_brokers"  # dynamically, the cluster's default
    STATIC = "static"  # server.properties of the broker that answered
    DEFAULT = "default"  # Kafka's own, in the version of the broker that answered
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One entry as the broker gave it. `value` is None for what is unset, and for secrets."""

    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value, and who set it."""

    value: T
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """All entries that a broker gives of itself, by Kafka's names."""

    broker_id: int
    entries: Mapping[str, Setting]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What decides how long a topic's data stays where. A field is Kafka's name with `_` for `.`."""

    topic: str
    cleanup_policy: Sourced[frozenset[str]]
    remote_storage_enable: Sourced[bool]
    retention_ms: Sourced[int]
    retention_bytes: Sourced[int]
    local_retention_ms: Sourced[int]
    local_retention_bytes: Sourced[int]
    segment_ms: Sourced[int]
    segment_bytes: Sourced[int]
    file_delete_delay_ms: Sourced[int]
    min_insync_replicas: Sourced[int]
    max_message_bytes: Sourced[int]
    unclean_leader_election_enable: Sourced[bool]

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy.value

    @property
    def local_ms(self) -> int:
        """After so long the broker deletes from its own disk; -1: never."""
        return _local(self.remote_storage_enable.value, self.local_retention_ms, self.retention_ms)

    @property
    def local_bytes(self) -> int:
        """Above so many bytes the broker deletes from its own disk; -1: never."""
        return _local(self.remote_storage_enable.value, self.local_retention_bytes, self.retention_bytes)

    def as_seen_by(self, broker: BrokerSettings) -> TopicSettings:
        """The same topic on that broker: what the topic does not set itself is taken from the broker."""
        taken: dict[str, Any] = {}
        for name, synonyms in _BROKER_NAMES.items():
            own: Sourced[Any] = getattr(self, _field(name))
            if own.source is not Source.TOPIC:
                taken[_field(name)] = _first_set(broker, name, synonyms)
        return replace(self, **taken)


def topic_settings(topic: str, entries: Mapping[str, Setting]) -> TopicSettings:
    """The typed settings of a topic, or SettingUntold."""
    read = {
        _field(name): Sourced(_parse(f"topic {topic}", name, entries.get(name)), entries[name].source)
        for name in _PARSERS
    }
    return TopicSettings(topic=topic, **read)


def defaults_of(broker: BrokerSettings) -> TopicSettings:
    """A topic that sets nothing itself, as that broker sees it, without remote storage. Or SettingUntold."""
    unset: dict[str, Sourced[Any]] = {_field(name): Sourced(None, Source.OTHER) for name in _PARSERS}
    unset[_field("remote.storage.enable")] = Sourced(False, Source.DEFAULT)
    return TopicSettings(topic="", **unset).as_seen_by(broker)


def _local(has_remote: bool, local: Sourced[int], total: Sourced[int]) -> int:
    """local.retention.* binds only where there is another tier to hold the rest."""
    return local.value if has_remote and local.value != SAME_AS_TOTAL else total.value


def _field(name: str) -> str:
    return name.replace(".", "_")


def _policies(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text]


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "cleanup.policy": _policies,
    "remote.storage.enable": _flag,
    "retention.ms": int,
    "retention.bytes": int,
    "local.retention.ms": int,
    "local.retention.bytes": int,
    "segment.ms": int,
    "segment.bytes": int,
    "file.delete.delay.ms": int,
    "min.insync.replicas": int,
    "max.message.bytes": int,
    "unclean.leader.election.enable": _flag,
}
assert {_field(name) for name in _PARSERS} == {field.name for field in fields(TopicSettings)} - {"topic"}

# The broker's names for a topic's settings, first choice first, each with the factor to the topic's unit.
# remote.storage.enable has none: a topic has it or not.
_BROKER_NAMES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MS_PER_MINUTE),
        ("log.retention.hours", MS_PER_HOUR),
    ),
    "retention.bytes": (("log.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", MS_PER_HOUR)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}


def _parse(resource: str, name: str, found: Setting | None) -> Any:
    if found is None or found.value is None:
        raise SettingUntold(resource=resource, name=name, found=None)
    try:
        return _PARSERS[name](found.value)
    except (ValueError, KeyError):
        raise SettingUntold(resource=resource, name=name, found=found.value) from None


def _first_set(broker: BrokerSettings, name: str, synonyms: tuple[tuple[str, int], ...]) -> Sourced[Any]:
    """The first of the broker's names that has a value, in the topic's unit. Below zero means unlimited."""
    for synonym, factor in synonyms:
        found = broker.entries.get(synonym)
        if found is not None and found.value is not None:
            value = _parse(f"broker {broker.broker_id}", name, found)
            return Sourced(_scaled(value, factor), found.source)
    raise SettingUntold(resource=f"broker {broker.broker_id}", name=synonyms[0][0], found=None)


def _scaled(value: Any, factor: int) -> Any:
    if factor == 1:
        return value
    return value * factor if value >= 0 else UNLIMITED
