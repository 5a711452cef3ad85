"""Kafka's own retention of a held topic: unlimited while a hold stands, then what it was before.

A hold of ours does not bind a broker (KAFKA_FACTS 2). Where the policy says `hold_kafka`, this does, so far
as retention deletes: the topic's retention.* (with KIP-405 local.retention.*, too) is set to -1.

    1  the change is declared: the topic's own table of the policy says unlimited, and the same record keeps
       what the table and the topic's settings said before. Durable and read back, in a topic that forgets
       nothing.
    2  only then Kafka's settings are changed
    release: 1 the table is put back, 2 the settings are; said again after a crash, it goes on where it was

What somebody else changed meanwhile, in the table or the settings, is left as they made it.

Owns these steps. Refuses where the policy in force does not say `hold_kafka`.

Invariant: while the settings are changed, a record of `__seawall_policy` tells what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rules.policy import EMPTY, Policy
from rules.policy.reading import read_policy
from rules.policy.record import HeldBy, HeldTopic, declared_change
from rules.policy.timeline import Applied, Timeline
from seawall.policy.change_log import ChangeLog, in_force
from seawall.policy.errors import ApplyOvertaken
from tiering.cluster.interface import DescribedTopic, Unknown
from tiering.cluster.settings import Setting, Source

ATTEMPTS_MAX = 5
UNLIMITED = "-1"
DECLARED = {
    "total_retention_ms": "unlimited",
    "total_retention_bytes": "unlimited",
    "local_retention_ms": "unlimited",
    "local_retention_bytes": "unlimited",
}
RETENTION = ("retention.ms", "retention.bytes")
LOCAL_RETENTION = ("local.retention.ms", "local.retention.bytes")


class Topics(Protocol):
    """The cluster, asked about topics; `KafkaCluster` answers."""

    def describe_topics(self, topics: list[str]) -> Mapping[str, DescribedTopic | Unknown]: ...

    def topic_entries(self, topics: list[str]) -> Mapping[str, Mapping[str, Setting] | Unknown]: ...


class TopicConfigs(Protocol):
    """A topic's own settings, changed."""

    def alter(self, topic: str, values: Mapping[str, str | None]) -> None:
        """Set these, remove those that are None, leave the rest alone. Raises HoldRefused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InKafka:
    """Whether Kafka's retention of the topic is held, and if not why; `left` is what was not put back."""

    is_held: bool
    why: str = ""
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRetention:
    changes: ChangeLog
    topics: Topics
    configs: TopicConfigs
    cluster_id: str
    now_ms: Callable[[], int]

    def held(self) -> dict[str, HeldTopic]:
        """Topics that are held now by the policy's word, by name."""
        return {name: each for name, each in _latest(self.changes.read()).items() if each.holds}

    def is_set(self, held: HeldTopic) -> bool:
        """Whether Kafka's settings are what the hold made them."""
        entries, topic_id = self._seen(held.topic)
        return topic_id == held.topic_id and all(
            _value(entries, name) == UNLIMITED for name in held.kafka_before
        )

    def is_allowed(self, topic: str) -> bool:
        base = in_force(self.changes.read())
        return (base.policy if base is not None else EMPTY).effective(topic).hold_kafka

    def was_released(self, topic_id: str, hold_id: str) -> bool:
        return any(
            each.change.held_topic is not None
            and each.change.held_topic.topic_id == topic_id
            and each.change.change_id == _release_id(hold_id)
            for each in self.changes.read().applied
        )

    def hold(self, topic: str, by: HeldBy) -> InKafka:
        """Place it, or find it in force."""
        for _ in range(ATTEMPTS_MAX):
            timeline = self.changes.read()
            base = in_force(timeline)
            policy = base.policy if base is not None else EMPTY
            entries, topic_id = self._seen(topic)
            before = _of(timeline, topic, topic_id)
            if before is not None and any(each.hold_id == by.hold_id for each in before.holds):
                return self._set(topic, before)
            if before is None or not before.holds:
                if not policy.effective(topic).hold_kafka:
                    return InKafka(is_held=False, why="the policy does not say hold_kafka for this topic")
                if "delete" not in str(_value(entries, "cleanup.policy")):
                    return InKafka(is_held=False, why="it is compacted, and retention does not apply")
                before = HeldTopic(
                    topic=topic,
                    topic_id=topic_id,
                    holds=(),
                    kafka_before={name: _own(entries, name) for name in _named(entries)},
                    declared_before=policy.tree()["topics"].get(topic),
                )
            held = replace(before, holds=(*before.holds, by))
            if self._declared(base, _with_hold(policy, topic), held, by.placed_by, f"hold {by.hold_id}"):
                return self._set(topic, held)
        return InKafka(is_held=False, why="others changed the policy at the same time; try again")

    def release(self, topic: str, hold_id: str, principal: str) -> InKafka:
        """Take the hold off; with the last one, put back what was there."""
        for _ in range(ATTEMPTS_MAX):
            timeline = self.changes.read()
            base = in_force(timeline)
            _, topic_id = self._seen(topic)
            before = _of(timeline, topic, topic_id)
            if before is None or base is None:
                return InKafka(is_held=False, why="it was not held")
            left = tuple(each for each in before.holds if each.hold_id != hold_id)
            if len(left) == len(before.holds):
                return InKafka(is_held=True) if left else self._put_back(topic, before)
            held = replace(before, holds=left)
            policy = base.policy if left else _without_hold(base.policy, topic, before.declared_before)
            if self._declared(base, policy, held, principal, _release_id(hold_id)):
                return InKafka(is_held=True) if left else self._put_back(topic, held)
        return InKafka(is_held=True, why="others changed the policy at the same time; try again")

    def _declared(
        self, base: Applied | None, policy: Policy, held: HeldTopic, principal: str, change_id: str
    ) -> bool:
        """Whether the change is in force; False where another came first."""
        change = declared_change(
            policy=policy,
            base=None if base is None else base.as_base,
            cluster_id=self.cluster_id,
            principal=principal,
            change_id=change_id,
            occurred_at_ms=self.now_ms(),
            held_topic=held,
        )
        try:
            self.changes.append(change)
        except ApplyOvertaken:
            return False
        return True

    def _set(self, topic: str, held: HeldTopic) -> InKafka:
        entries, _ = self._seen(topic)
        wanted = {name: UNLIMITED for name in held.kafka_before if _value(entries, name) != UNLIMITED}
        if wanted:
            self.configs.alter(topic, wanted)
        return InKafka(is_held=True)

    def _put_back(self, topic: str, held: HeldTopic) -> InKafka:
        entries, _ = self._seen(topic)
        ours = {name for name in held.kafka_before if _own(entries, name) == UNLIMITED}
        wanted = {name: value for name, value in held.kafka_before.items() if name in ours}
        changed = {name: value for name, value in wanted.items() if value != UNLIMITED}
        if changed:
            self.configs.alter(topic, changed)
        left = tuple(
            f"{name} is {_own(entries, name) or 'unset'}, and was {value or 'unset'}"
            for name, value in held.kafka_before.items()
            if name not in ours and _own(entries, name) != value
        )
        return InKafka(is_held=False, left=left)

    def _seen(self, topic: str) -> tuple[Mapping[str, Setting], str]:
        from seawall.holds.errors import HoldRefused

        described = self.topics.describe_topics([topic])[topic]
        entries = self.topics.topic_entries([topic])[topic]
        for answer in (described, entries):
            if isinstance(answer, Unknown):
                raise HoldRefused(topic=topic, why=answer.reason)
        assert isinstance(described, DescribedTopic)
        assert not isinstance(entries, Unknown)
        return entries, str(described.topic_id)


def _latest(timeline: Timeline) -> dict[str, HeldTopic]:
    """What the last change that a hold made says of each topic."""
    found: dict[str, HeldTopic] = {}
    for each in timeline.applied:
        if each.change.held_topic is not None:
            found[each.change.held_topic.topic] = each.change.held_topic
    return found


def _of(timeline: Timeline, topic: str, topic_id: str) -> HeldTopic | None:
    """Of this topic, not of one of the same name before it."""
    found = _latest(timeline).get(topic)
    return found if found is not None and found.topic_id == topic_id else None


def _release_id(hold_id: str) -> str:
    return f"release {hold_id}"


def _with_hold(policy: Policy, topic: str) -> Policy:
    tree = policy.tree()
    declared: dict[str, Any] = {**tree["topics"].get(topic, {}), **DECLARED}
    if policy.effective(topic).trim:
        declared["trim"] = False  # nothing is past an unlimited local retention, and the policy says so
    return read_policy({**tree, "topics": {**tree["topics"], topic: declared}})


def _without_hold(policy: Policy, topic: str, declared_before: Mapping[str, Any] | None) -> Policy:
    """The table as it was, but for what somebody changed since."""
    tree = policy.tree()
    table = dict(tree["topics"].get(topic, {}))
    before = declared_before or {}
    for name, value in {**DECLARED, "trim": False}.items():
        if name in table and table[name] == value and before.get(name) != value:
            del table[name]
            if name in before:
                table[name] = before[name]
    others = {name: each for name, each in tree["topics"].items() if name != topic}
    return read_policy({**tree, "topics": {**others, **({topic: table} if table else {})}})


def _named(entries: Mapping[str, Setting]) -> tuple[str, ...]:
    has_remote = _value(entries, "remote.storage.enable") == "true"
    return (*RETENTION, *(LOCAL_RETENTION if has_remote else ()))


def _value(entries: Mapping[str, Setting], name: str) -> str | None:
    found = entries.get(name)
    return None if found is None else found.value


def _own(entries: Mapping[str, Setting], name: str) -> str | None:
    """What the topic itself says; None where it leaves it to the brokers."""
    found = entries.get(name)
    return found.value if found is not None and found.source is Source.TOPIC else None
