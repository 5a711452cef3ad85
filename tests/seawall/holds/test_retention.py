"""Kafka's retention under a hold: remembered before it is changed, and put back, wherever it was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given

from rules.policy import Policy
from rules.policy.reading import read_policy
from rules.policy.record import DeclaredChange, HeldBy, declared_change, decode, encode
from rules.policy.timeline import Applied, Timeline
from seawall.holds.errors import HoldRefused
from seawall.holds.retention import KafkaRetention
from seawall.policy.errors import ApplyOvertaken
from tests.rules.policies import policies
from tiering.cluster.interface import Cause, DescribedTopic, Unknown
from tiering.cluster.settings import Setting, Source
from tiering.log.wire import Uuid

TOPIC = "orders"
BY = HeldBy(hold_id="h", partition=0, reason="why", placed_by="alice", placed_at_ms=1, finding_id=None)
ALLOWED = {"total_retention_ms": "7d", "hold_kafka": True}


@dataclass
class Changes:
    """The log of changes in memory, through its bytes."""

    timeline: Timeline = field(default_factory=lambda: Timeline(cluster_id="c"))
    overtaken: int = 0  # so many times somebody else comes first

    def read(self) -> Timeline:
        return self.timeline

    def append(self, change: DeclaredChange) -> Applied:
        if self.overtaken:
            self.overtaken -= 1
            self.declare(self.policy, "somebody")
        self.timeline = self.timeline.follow(self.timeline.next_offset, encode(change))
        found = self.timeline.find(change.event_id)
        if not isinstance(found, Applied):
            raise ApplyOvertaken(winner="somebody")
        return found

    @property
    def policy(self) -> Policy:
        found = self.timeline.in_force()
        return read_policy({"version": 1, "topics": {}}) if found is None else found.policy

    def declare(self, policy: Policy, who: str = "bob") -> None:
        base = self.timeline.in_force()
        change = declared_change(
            policy=policy,
            base=None if base is None else base.as_base,
            cluster_id="c",
            principal=who,
            change_id=f"{who}-{self.timeline.next_offset}",
            occurred_at_ms=1,
        )
        self.timeline = self.timeline.follow(self.timeline.next_offset, encode(change))


@dataclass
class Broker:
    """One topic, with its own settings over the broker's."""

    own: dict[str, str] = field(default_factory=lambda: {"retention.ms": "3600000"})
    topic_id: str = "T" * 22
    defaults: Mapping[str, str] = field(
        default_factory=lambda: {
            "retention.ms": "604800000",
            "retention.bytes": "-1",
            "local.retention.ms": "-2",
            "local.retention.bytes": "-2",
            "cleanup.policy": "delete",
            "remote.storage.enable": "false",
        }
    )
    refuses: int = 0
    is_there: bool = True

    def describe_topics(self, topics: list[str]) -> Mapping[str, DescribedTopic | Unknown]:
        if not self.is_there:
            return {topics[0]: Unknown(cause=Cause.NO_SUCH_TOPIC, reason="no such topic")}
        return {topics[0]: DescribedTopic(topic=topics[0], topic_id=Uuid(self.topic_id), partitions={})}

    def topic_entries(self, topics: list[str]) -> Mapping[str, Mapping[str, Setting] | Unknown]:
        found = {name: Setting(value=value, source=Source.DEFAULT) for name, value in self.defaults.items()}
        found |= {name: Setting(value=value, source=Source.TOPIC) for name, value in self.own.items()}
        return {topics[0]: found}

    def alter(self, topic: str, values: Mapping[str, str | None]) -> None:
        if self.refuses:
            self.refuses -= 1
            raise HoldRefused(topic=topic, why="cut off")
        for name, value in values.items():
            if value is None:
                self.own.pop(name, None)
            else:
                self.own[name] = value


def made(changes: Changes, broker: Broker) -> KafkaRetention:
    return KafkaRetention(changes=changes, topics=broker, configs=broker, cluster_id="c", now_ms=lambda: 5)


def policy(**table: Any) -> Policy:
    return read_policy({"version": 1, "topics": {TOPIC: table}})


@pytest.fixture
def changes() -> Changes:
    found = Changes()
    found.declare(policy(**ALLOWED))
    return found


def test_refused_unless_the_policy_says_so() -> None:
    """Neither with no policy at all nor with one that is silent; nothing is written then."""
    changes, broker = Changes(), Broker()
    assert not made(changes, broker).hold(TOPIC, BY).is_held
    changes.declare(policy(total_retention_ms="7d"))
    assert "hold_kafka" in made(changes, broker).hold(TOPIC, BY).why

    assert (broker.own, len(changes.timeline.applied)) == ({"retention.ms": "3600000"}, 1)


def test_declared_then_set_then_put_back(changes: Changes) -> None:
    """While it is held Kafka does what is declared; afterwards both are what they were."""
    broker, before = Broker(), changes.policy
    kept = made(changes, broker)

    assert kept.hold(TOPIC, BY).is_held
    assert broker.own == {"retention.ms": "-1"}, "what was unlimited already is left alone"
    assert changes.policy.effective(TOPIC).spoken("total_retention_ms") == "unlimited"
    assert kept.is_set(kept.held()[TOPIC])
    assert not kept.release(TOPIC, "h", "alice").is_held

    assert broker.own == {"retention.ms": "3600000"}
    assert changes.policy == before
    assert kept.held() == {}
    assert kept.was_released(broker.topic_id, "h")
    assert not kept.was_released("U" * 22, "h")


def test_cut_off_anywhere_it_goes_on(changes: Changes) -> None:
    """Declared and not set, released and not put back: the same word once more does the rest."""
    broker = Broker(refuses=1)
    kept = made(changes, broker)
    with pytest.raises(HoldRefused):
        kept.hold(TOPIC, BY)
    assert not kept.is_set(kept.held()[TOPIC])
    assert kept.hold(TOPIC, BY).is_held
    broker.refuses = 1
    with pytest.raises(HoldRefused):
        kept.release(TOPIC, "h", "alice")
    assert broker.own == {"retention.ms": "-1"}

    assert not kept.release(TOPIC, "h", "alice").is_held
    assert broker.own == {"retention.ms": "3600000"}


def test_two_holds_and_what_was_there_is_remembered_once(changes: Changes) -> None:
    """The second finds -1 in Kafka, and does not take it for what was there before."""
    broker = Broker()
    kept = made(changes, broker)
    kept.hold(TOPIC, BY)
    second = HeldBy(hold_id="h2", partition=1, reason="w", placed_by="bob", placed_at_ms=2, finding_id="f")
    kept.hold(TOPIC, second)
    kept.hold(TOPIC, second)

    assert [each.hold_id for each in kept.held()[TOPIC].holds] == ["h", "h2"]
    assert kept.release(TOPIC, "h", "alice").is_held
    assert broker.own == {"retention.ms": "-1"}
    kept.release(TOPIC, "h2", "alice")
    assert broker.own == {"retention.ms": "3600000"}


def test_what_others_changed_meanwhile_stays(changes: Changes) -> None:
    """A retention that somebody set, in Kafka or in the policy, is theirs; it is told."""
    broker = Broker()
    kept = made(changes, broker)
    kept.hold(TOPIC, BY)
    broker.own["retention.ms"] = "86400000"
    tree = changes.policy.tree()
    tree["topics"][TOPIC] |= {"total_retention_ms": 86_400_000, "local_retention_ms": 86_400_000}
    changes.declare(read_policy(tree))

    told = kept.release(TOPIC, "h", "alice")

    assert told.left == ("retention.ms is 86400000, and was 3600000",)
    assert broker.own == {"retention.ms": "86400000"}
    assert changes.policy.effective(TOPIC).spoken("total_retention_ms") == "1d"


def test_who_is_overtaken_tries_again(changes: Changes) -> None:
    """Somebody else's change came first: ours is made anew on top of it."""
    changes.overtaken = 2

    assert made(changes, Broker()).hold(TOPIC, BY).is_held


def test_another_topic_of_the_name_is_not_held(changes: Changes) -> None:
    """Deleted and made anew: the hold was of the old one, and nothing of the new one is put back."""
    broker = Broker()
    kept = made(changes, broker)
    kept.hold(TOPIC, BY)
    broker.topic_id, broker.own = "U" * 22, {}

    assert kept.release(TOPIC, "h", "alice").why == "it was not held"
    assert broker.own == {}
    broker.is_there = False
    with pytest.raises(HoldRefused):
        kept.hold(TOPIC, BY)


def test_kip405_has_local_retention_too_and_compaction_has_none(changes: Changes) -> None:
    """Both retentions of a topic with remote storage; none of a compacted one."""
    remote = Broker()
    remote.own["remote.storage.enable"] = "true"
    kept = made(changes, remote)
    kept.hold(TOPIC, BY)
    assert {name for name, value in remote.own.items() if value == "-1"} == {
        "retention.ms",
        "local.retention.ms",
        "local.retention.bytes",
    }
    kept.release(TOPIC, "h", "alice")
    assert remote.own == {"remote.storage.enable": "true", "retention.ms": "3600000"}

    compacted = Broker()
    compacted.own["cleanup.policy"] = "compact"
    assert "compacted" in made(changes, compacted).hold(TOPIC, BY).why


@given(declared=policies)
def test_any_policy_is_as_it_was(declared: Policy) -> None:
    """Whatever is declared, trim and local retention included: a hold goes on it, and comes off it."""
    changes, broker = Changes(), Broker()
    changes.declare(declared)
    kept = made(changes, broker)

    told = kept.hold(TOPIC, BY)

    assert told.is_held is declared.effective(TOPIC).hold_kafka
    kept.release(TOPIC, "h", "alice")
    assert changes.policy == declared
    assert broker.own == {"retention.ms": "3600000"}


def test_a_change_of_a_hold_keeps_all_it_says(changes: Changes) -> None:
    """Its record reads back as it was; others have no such member."""
    made(changes, Broker()).hold(TOPIC, BY)
    first, last = changes.timeline.applied[0].change, changes.timeline.applied[-1].change

    assert first.held_topic is None
    assert b"held_topic" not in encode(first)
    assert last.held_topic is not None
    assert last.held_topic.holds == (BY,)
    assert decode(encode(last)) == last
