"""Of a topic without a policy: what it began with, or was at first sight, is what it is held against."""

from __future__ import annotations

from typing import Any

from rules.events import ConfigEffective, ConfigResource, ConfigSource
from rules.events.base import Source
from rules.events.replicas import ReplicaAppearance
from rules.machine.verdict import Judgement
from tests.rules.machine.histories import BROKERS, DAY_MS, HOUR_MS, T0_MS, History


def made(**config: Any) -> History:
    """A topic that is made under the agents' eyes, with these settings of its own."""
    h = History(mode="none", now_ms=T0_MS)
    for key, value in config.items():
        h.config(key.replace("_", "."), str(value))
    h.leadership()
    h.after(seconds=1)
    for broker in BROKERS:
        h.started(broker, start=0, local=0, watermark=0, how=ReplicaAppearance.CREATED)
        h.baseline(broker, start=0, local=0, watermark=0, size_bytes=0, periodic=False)
    return h


def brokers_keep(h: History, hours: int) -> None:
    for broker in BROKERS:
        h.say(
            ConfigEffective,
            broker=broker,
            resource=ConfigResource.BROKER,
            topic_id=None,
            topic=None,
            broker_id=broker,
            key="log.retention.hours",
            old_value=None,
            new_value=str(hours),
            config_source=ConfigSource.DEFAULT,
            is_first_sight=True,
            source=Source.ADMIN,
            metadata_offset=None,
            is_coalesced=False,
            not_before_ms=None,
        )


def test_what_a_topic_is_made_with_is_adopted() -> None:
    """A retention that comes with the topic is no change of it; what keeps less later is."""
    h = made(retention_ms=7 * DAY_MS)
    quiet = h.after(hours=2).judged()
    h.config("retention.ms", str(HOUR_MS), str(7 * DAY_MS))
    shrunk = h.after(hours=2).judged()

    assert quiet.findings == ()
    assert not any("retention" in each for each in quiet.statement.missing)
    assert {each.rule_id for each in shrunk.findings} == {"RET-03"}


def test_a_topic_without_a_value_of_its_own_is_held_against_its_brokers() -> None:
    """Its first own value keeps less than the default that it went by."""
    h = made()
    brokers_keep(h, 168)
    quiet = h.after(hours=2).judged()
    h.config("retention.ms", str(HOUR_MS))
    shrunk = h.after(hours=2).judged()

    assert quiet.findings == ()
    assert not any("retention" in each for each in quiet.statement.missing)
    assert {each.rule_id for each in shrunk.findings} == {"RET-03"}


def kept_for_ever() -> History:
    """A policy that keeps all, and brokers whose default keeps a week, told before the topic's own value."""
    h = made()
    h.declares("CHG-1", total_retention_ms='"unlimited"')
    brokers_keep(h, 168)
    return h


def test_a_default_that_was_told_first_was_never_in_force() -> None:
    """One look tells brokers before topics; the agent's other observer may look a second later."""

    def judged(seconds: int) -> Judgement:
        h = kept_for_ever().after(seconds=seconds)
        h.config("retention.ms", "-1", first=True)
        return h.after(hours=2).judged()

    assert (judged(0).findings, judged(0).statement.suspect) == ((), ())
    assert (judged(1).findings, judged(1).statement.suspect) == ((), ())


def test_a_default_that_was_in_force_is_told_though_the_topic_got_its_own_value_since() -> None:
    """Neither a change of the topic's, nor what an agent sees first that was away while a default shrank,
    says that nothing was short in between."""
    changed = kept_for_ever().after(seconds=1)
    changed.config("retention.ms", "-1")
    away = made()
    away.declares("CHG-1", total_retention_ms='"7d"')
    brokers_keep(away, 168)
    brokers_keep(away.after(minutes=1), 24)
    away.after(minutes=1).config("retention.ms", str(7 * DAY_MS), first=True)

    for each in (changed, away):
        [flap] = each.after(hours=2).judged().findings
        assert (flap.rule_id, flap.note.endswith("reverted")) == ("RET-03", True)
