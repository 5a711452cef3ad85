"""Whether a topic has Kafka's own tiered storage on: asked as seldom as it can be, and never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seawall.agent.errors import StorageUntold
from seawall.agent.remote_storage import BROKER_EVERY_MS, PAUSE_MS, SYSTEM, TOPIC_EVERY_MS, RemoteStorage
from tests.audit_engine.observers.disk.model import Disk
from tests.tiering.uploader.brokers import DEFAULTS
from tiering.cluster.interface import BrokerSettings, Cause, TopicSettings, Unknown
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.settings import Setting, Source, topic_settings
from tiering.cluster.topics import EveryTopic

SILENT = Unknown(cause=Cause.NO_ANSWER, reason="nobody answers")
REFUSED = Unknown(cause=Cause.REFUSED, reason="not allowed")


@dataclass
class Answers:
    """A cluster that says what a test sets. `asked`: what it was asked for, in order."""

    system: str | Unknown = "false"
    remote: bool | Unknown = False
    asked: list[str] = field(default_factory=list)

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown:
        self.asked.append("broker")
        if isinstance(self.system, Unknown):
            return self.system
        entry = Setting(value=self.system, source=Source.STATIC)
        return BrokerSettings(broker_id=broker_id, entries={SYSTEM: entry})

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        self.asked += (names := sorted(topics))
        if isinstance(self.remote, Unknown):
            return dict.fromkeys(names, self.remote)
        said = DEFAULTS | {
            "remote.storage.enable": str(self.remote).lower(),
            "unclean.leader.election.enable": "false",
        }
        entries = {name: Setting(value=value, source=Source.TOPIC) for name, value in said.items()}
        return {name: topic_settings(name, entries) for name in names}


class World:
    """A log dir with one partition of one topic, and what is known of that."""

    def __init__(self, root: Path) -> None:
        self.now_ms = 1_000_000
        self.answers = Answers()
        self.disk = Disk(root)
        self.surveyor = Surveyor(self.disk.paths, topics=EveryTopic(), now_ns=lambda: 0)
        self.storage = RemoteStorage(self.answers, broker_id=1, now_ms=lambda: self.now_ms)

    def look(self, after_ms: int = 1_000) -> bool | None:
        self.now_ms += after_ms
        self.answers.asked.clear()
        self.storage.surveyed(self.surveyor.survey())
        return self.storage.of("orders")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_where_the_broker_has_none_no_topic_is_asked_for(world: World) -> None:
    """One question a minute, for any number of topics."""
    assert world.look() is False
    assert world.answers.asked == ["broker"]
    assert world.look() is False
    assert world.answers.asked == []
    world.look(BROKER_EVERY_MS)
    assert world.answers.asked == ["broker"]


def test_a_topic_is_asked_for_when_it_is_new_when_its_start_moves_and_when_it_is_due(world: World) -> None:
    """Tiered storage that was turned on since is known before a local deletion is judged."""
    world.answers.system = "true"
    world.disk.roll(5)
    assert world.look() is False
    assert world.answers.asked == ["broker", "orders"]
    world.look()
    assert world.answers.asked == []

    world.answers.remote = True
    world.disk.expire(1)
    assert world.look() is True
    assert world.answers.asked == ["orders"]
    world.look(TOPIC_EVERY_MS)
    assert "orders" in world.answers.asked


def test_before_the_first_answer_there_is_no_look(world: World) -> None:
    """A log start that was told by guess would be a loss that never was."""
    world.answers.system = SILENT
    with pytest.raises(StorageUntold, match="nobody answers"):
        world.look()
    world.answers.system = "false"
    assert world.look() is False


def test_what_was_told_holds_while_nobody_answers(world: World) -> None:
    """And the questions pause, as each of them may take its whole time."""
    world.answers.system, world.answers.remote = "true", True
    assert world.look() is True
    world.answers.system = world.answers.remote = SILENT
    assert world.look(BROKER_EVERY_MS) is True
    world.look(PAUSE_MS // 2)
    assert world.answers.asked == []
    world.answers.system = "true"
    world.answers.remote = True
    assert world.look(BROKER_EVERY_MS) is True
    assert world.answers.asked == ["broker"]
    assert world.storage.trouble == "", "it is known of all topics"


def test_who_may_not_ask_the_broker_asks_for_the_topics(world: World) -> None:
    """DescribeConfigs on topics is enough; without that either, it is not known, and said to be so."""
    world.answers.system = REFUSED
    world.answers.remote = True
    assert world.look() is True

    world.answers.remote = REFUSED
    other = RemoteStorage(world.answers, broker_id=1, now_ms=lambda: world.now_ms)
    other.surveyed(world.surveyor.survey())
    assert other.of("orders") is None
    assert "not allowed" in other.trouble
