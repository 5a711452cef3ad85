"""What the observer of effective configuration tells: at first sight, of changes, and when nobody answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest

from audit_engine.observers.configs.effective import of_broker, of_topic
from audit_engine.observers.configs.keys import BROKER_KEYS, TOPIC_KEYS
from audit_engine.observers.configs.memory import FILE_NAME
from audit_engine.observers.configs.observer import Observer
from audit_engine.observers.errors import SourceSilent
from rules.events import ConfigEffective, ConfigResource, ConfigSource, Event, EvidenceGap
from rules.events import Source as Where
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    DescribedPartition,
    DescribedTopic,
    Unknown,
)
from tiering.cluster.settings import Setting, Source
from tiering.log.wire import Uuid

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
ORDERS_ID, OTHER_ID = Uuid("CgkTzsXgRlOwPTRJHnL2yg"), Uuid("3cVtEW_RTm2TSqxDBnRsEA")
SILENCE = Unknown(cause=Cause.NO_ANSWER, reason="nobody answers")
GONE = Unknown(cause=Cause.NO_SUCH_TOPIC, reason="no such topic")
DAY_MS = 24 * 3_600_000


class Killed(Exception):
    """The process ends here."""


class Cluster:
    """Two brokers and the topic `orders` on both. A test sets what they answer."""

    def __init__(self) -> None:
        self.topic_ids = {"orders": ORDERS_ID}
        self.replicas = {"orders": (1, 2)}
        self.own: dict[str, dict[str, Setting]] = {
            "orders": {
                "retention.ms": Setting(value=str(7 * DAY_MS), source=Source.DEFAULT),
                "cleanup.policy": Setting(value="delete", source=Source.DEFAULT),
                "remote.storage.enable": Setting(value="false", source=Source.DEFAULT),
                "compression.type": Setting(value="producer", source=Source.DEFAULT),
            }
        }
        self.brokers: dict[int, dict[str, Setting]] = {
            broker_id: {
                "log.retention.ms": Setting(value=None, source=Source.DEFAULT),
                "log.retention.minutes": Setting(value=None, source=Source.DEFAULT),
                "log.retention.hours": Setting(value="168", source=Source.DEFAULT),
                "log.cleanup.policy": Setting(value="delete", source=Source.DEFAULT),
                "ssl.keystore.password": Setting(value=None, source=Source.STATIC),
                "sasl.jaas.config": Setting(value="password=secret", source=Source.STATIC),
            }
            for broker_id in (1, 2)
        }
        self.silent: set[str | int] = set()  # of which nothing is answered

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        return {name: self._described(name) for name in topics}

    def _described(self, name: str) -> DescribedTopic | Unknown:
        if name not in self.topic_ids:
            return GONE
        held = DescribedPartition(leader_id=1, replicas=self.replicas[name], isr=(1,))
        return DescribedTopic(topic=name, topic_id=self.topic_ids[name], partitions={0: held})

    def topic_entries(self, topics: Iterable[str]) -> Mapping[str, Mapping[str, Setting] | Unknown]:
        return {name: SILENCE if name in self.silent else dict(self.own.get(name, {})) for name in topics}

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown:
        if broker_id in self.silent:
            return SILENCE
        return BrokerSettings(broker_id=broker_id, entries=dict(self.brokers[broker_id]))


class Watched:
    def __init__(self, folder: Path) -> None:
        self.folder, self.cluster = folder, Cluster()
        self.said: list[Event] = []
        self.now_ms = 1_000
        self.dies_after: int | None = None
        self.ids = count()
        self.restart()

    def restart(self) -> None:
        self.observer = Observer(
            source=self.cluster,
            topics=lambda: self.cluster.own,
            cluster_id=CLUSTER_ID,
            sink=self,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"e{next(self.ids)}",
            folder=self.folder,
        )

    def emit_many(self, events: Sequence[Event]) -> None:
        for event in events:
            if self.dies_after is not None and len(self.said) >= self.dies_after:
                raise Killed
            self.said.append(event)

    def look(self) -> list[ConfigEffective]:
        """What one look says, an hour after the one before; gaps aside."""
        before = len(self.said)
        self.now_ms += 3_600_000
        self.observer.run_once()
        return [each for each in self.said[before:] if isinstance(each, ConfigEffective)]

    @property
    def gaps(self) -> list[str]:
        return [each.problem for each in self.said if isinstance(each, EvidenceGap)]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def _said(
    events: Iterable[ConfigEffective],
) -> set[tuple[int | None, str | None, str, str | None, ConfigSource]]:
    return {(e.broker_id, e.topic, e.key, e.new_value, e.config_source) for e in events}


def test_at_first_sight_everything_in_force_is_told_with_its_source(watched: Watched) -> None:
    """Of each broker, and of the topic as each broker goes by it: a baseline, and no change."""
    watched.cluster.brokers[2]["log.retention.hours"] = Setting(value="1", source=Source.STATIC)
    first = watched.look()

    assert _said(first) == {
        entry
        for broker_id, hours, source in ((1, 168, ConfigSource.DEFAULT), (2, 1, ConfigSource.STATIC))
        for entry in (
            (broker_id, None, "log.retention.ms", None, ConfigSource.DEFAULT),
            (broker_id, None, "log.retention.minutes", None, ConfigSource.DEFAULT),
            (broker_id, None, "log.retention.hours", str(hours), source),
            (broker_id, None, "log.cleanup.policy", "delete", ConfigSource.DEFAULT),
            (broker_id, "orders", "retention.ms", str(hours * 3_600_000), source),
            (broker_id, "orders", "cleanup.policy", "delete", ConfigSource.DEFAULT),
            (broker_id, "orders", "remote.storage.enable", "false", ConfigSource.DEFAULT),
        )
    }
    for each in first:
        assert each.is_first_sight
        assert each.source is Where.ADMIN
        assert (each.old_value, each.old_config_source, each.not_before_ms) == (None, None, None)
        assert (each.topic_id is not None) == (each.resource is ConfigResource.TOPIC)
    assert watched.look() == []


def test_a_change_is_told_with_what_was_before_and_between_which_looks(watched: Watched) -> None:
    """On each broker that goes by it, and of nothing else."""
    watched.look()
    seen_ms = watched.now_ms
    watched.cluster.own["orders"]["retention.ms"] = Setting(value="3600000", source=Source.TOPIC)
    changes = watched.look()

    assert {(each.broker_id, each.topic_id, each.key) for each in changes} == {
        (1, ORDERS_ID, "retention.ms"),
        (2, ORDERS_ID, "retention.ms"),
    }
    for each in changes:
        assert (each.old_value, each.new_value) == (str(7 * DAY_MS), "3600000")
        assert (each.old_config_source, each.config_source) == (ConfigSource.DEFAULT, ConfigSource.TOPIC)
        assert (each.not_before_ms, each.occurred_at_ms) == (seen_ms, watched.now_ms)
        assert not each.is_first_sight
    assert watched.look() == []


def test_a_brokers_own_change_reaches_the_topics_that_leave_it_to_the_broker(watched: Watched) -> None:
    """Of that broker alone; the other goes by its own, whoever answered for the topic."""
    watched.look()
    watched.cluster.brokers[2]["log.retention.ms"] = Setting(value="1000", source=Source.STATIC)

    assert _said(watched.look()) == {
        (2, None, "log.retention.ms", "1000", ConfigSource.STATIC),
        (2, "orders", "retention.ms", "1000", ConfigSource.STATIC),
    }


def test_the_same_value_from_another_place_is_told(watched: Watched) -> None:
    """What holds is the same; what a later change of the default would do is not."""
    watched.look()
    watched.cluster.own["orders"]["cleanup.policy"] = Setting(value="delete", source=Source.TOPIC)
    first, second = watched.look()

    assert (first.old_value, first.new_value) == ("delete", "delete")
    assert (first.old_config_source, first.config_source) == (ConfigSource.DEFAULT, ConfigSource.TOPIC)
    assert {first.broker_id, second.broker_id} == {1, 2}


def test_a_topic_made_anew_is_seen_for_the_first_time(watched: Watched) -> None:
    """Its settings are no change of the other topic's."""
    watched.look()
    watched.cluster.topic_ids["orders"] = OTHER_ID
    again = watched.look()

    assert {each.topic_id for each in again} == {OTHER_ID}
    assert all(each.is_first_sight for each in again)
    assert len(again) == 6


def test_a_topic_that_is_gone_is_no_trouble(watched: Watched) -> None:
    """Its deletion is told by those who know of it; a broker that has not heard of it takes nothing back."""
    watched.look()
    watched.cluster.topic_ids.clear()
    assert watched.look() == []

    watched.cluster.topic_ids["orders"] = ORDERS_ID
    watched.cluster.own["orders"]["retention.ms"] = Setting(value="1", source=Source.TOPIC)
    assert {each.key for each in watched.look()} == {"retention.ms"}
    assert watched.gaps == []


def test_a_topic_that_is_not_asked_for_any_more_is_forgotten(watched: Watched) -> None:
    """When this host holds it again, all of it is told."""
    watched.look()
    own = watched.cluster.own.pop("orders")
    assert watched.look() == []

    watched.cluster.own["orders"] = own
    assert len([each for each in watched.look() if each.is_first_sight and each.topic == "orders"]) == 6


@pytest.mark.parametrize("who", [2, "orders"])
def test_what_one_look_was_not_told_is_compared_when_it_is_told_again(
    watched: Watched, who: str | int
) -> None:
    """The change lies since it was seen last; that somebody was silent is said once, until all are told."""
    watched.look()
    seen_ms = watched.now_ms
    watched.cluster.silent.add(who)
    watched.cluster.own["orders"]["retention.ms"] = Setting(value="1", source=Source.TOPIC)
    watched.look()
    watched.observer.close()
    watched.restart()
    watched.look()
    assert watched.gaps == ["config_untold"]

    watched.cluster.silent.clear()
    [of_two] = [each for each in watched.look() if each.broker_id == 2]
    assert of_two.not_before_ms == seen_ms
    assert watched.gaps == ["config_untold", "made_good"]

    watched.cluster.silent.add(who)
    watched.look()
    assert watched.gaps == ["config_untold", "made_good", "config_untold"]


def test_when_nobody_answers_nothing_is_concluded(watched: Watched) -> None:
    """It raises; afterwards what changed meanwhile lies since the last look that was told."""
    watched.look()
    seen_ms = watched.now_ms
    watched.cluster.silent = {1, 2, "orders"}
    with pytest.raises(SourceSilent, match="nobody answers"):
        watched.look()

    watched.cluster.silent.clear()
    watched.cluster.brokers[1]["log.cleanup.policy"] = Setting(value="compact", source=Source.STATIC)
    changes = watched.look()
    assert {each.not_before_ms for each in changes} == {seen_ms}
    assert {each.new_value for each in changes} == {"compact"}


def test_a_change_while_nobody_looked_is_told_after_a_restart(watched: Watched) -> None:
    """And nothing else: what was told is remembered."""
    watched.look()
    watched.observer.close()
    watched.cluster.brokers[1]["log.cleanup.policy"] = Setting(value="compact", source=Source.STATIC)
    watched.restart()

    assert _said(watched.look()) == {
        (1, None, "log.cleanup.policy", "compact", ConfigSource.STATIC),
        (1, "orders", "cleanup.policy", "compact", ConfigSource.STATIC),
    }


@pytest.mark.parametrize("dies_after", [0, 1, 7, 13])
def test_what_a_killed_process_had_not_emitted_is_emitted_unchanged(
    watched: Watched, dies_after: int
) -> None:
    """Each event of the look, with the id and the time that it had."""
    watched.dies_after = dies_after
    with pytest.raises(Killed):
        watched.look()
    watched.dies_after = None
    found_ms = watched.now_ms
    watched.restart()
    watched.look()

    by_id: dict[str, Event] = {}
    for event in watched.said:
        assert by_id.setdefault(event.event_id, event) == event
        assert event.occurred_at_ms == found_ms
    assert len(by_id) == 14


def test_a_damaged_memory_is_said_and_everything_is_told_anew(watched: Watched) -> None:
    """An evidence gap, then a baseline."""
    watched.look()
    watched.observer.close()
    path = watched.folder / FILE_NAME
    path.write_bytes(b"?" * path.stat().st_size)
    watched.restart()

    assert len(watched.look()) == 14
    assert watched.gaps == ["memory_lost"]


def test_no_secret_is_in_any_event_or_on_disk(watched: Watched) -> None:
    """What Kafka hides is not asked after, and what it does not hide is told only if it bears on a log."""
    watched.look()
    watched.cluster.brokers[1]["sasl.jaas.config"] = Setting(value="password=other", source=Source.STATIC)
    watched.look()
    watched.observer.close()

    assert not any("secret" in repr(each) or "other" in repr(each) for each in watched.said)
    kept = b"".join(each.read_bytes() for each in watched.folder.iterdir())
    assert b"secret" not in kept
    names = {*TOPIC_KEYS, *BROKER_KEYS}
    assert not [name for name in names if "password" in name or "jaas" in name or "ssl." in name]


@pytest.mark.parametrize(
    ("entries", "value"),
    [
        ({"log.retention.hours": "2"}, "7200000"),
        ({"log.retention.hours": "-1"}, "-1"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "180000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, "4"),
    ],
)
def test_the_first_of_a_brokers_names_that_is_set_counts(entries: dict[str, str], value: str) -> None:
    """In the topic's unit, as Kafka itself reads them."""
    own = {"retention.ms": Setting(value="5", source=Source.DEFAULT)}
    broker = BrokerSettings(
        broker_id=1,
        entries={name: Setting(value=text, source=Source.STATIC) for name, text in entries.items()},
    )

    assert of_topic(own, broker)["retention.ms"] == (value, ConfigSource.STATIC)
    assert set(of_broker(broker)) == set(entries)
