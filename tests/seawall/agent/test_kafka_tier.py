"""Kafka's own tier and what a broker goes by, in an agent: when it is asked for, and that it is told."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as ClientPartition

from audit_engine.observers.kip405.observer import Observer
from rules.events import (
    ConfigEffective,
    ConfigSource,
    CopyFinished,
    DeleteFinished,
    Event,
    Source,
)
from seawall.agent.errors import StorageUntold
from seawall.agent.hosted import HostedTopics
from seawall.agent.kafka_tier import ASK_EVERY_MS, KafkaTier
from seawall.agent.sparing import Sparing
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.audit_engine.observers.kip405.records import CLUSTER_ID, Topic, started
from tests.cluster import produce
from tests.cluster.cases_tiered import TIERED
from tests.faults.agents import agent_beside
from tests.seawall.agent.test_remote_storage import SILENT, Answers
from tests.seawall.agent.told import holes, told

DEADLINE_S = 60.0


class World:
    """A topic with one copy, and a broker that says what a test sets."""

    def __init__(self, folder: Path) -> None:
        self.now_ms, self.answers, self.topic = 1_000_000, Answers(), Topic()
        self.topic.append(started(1, 0, 9))
        self.said: list[Event] = []
        observer = Observer(
            source=self.topic,
            cluster_id=CLUSTER_ID,
            sink=self,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"e{len(self.said)}",
            folder=folder,
        )
        self.tier = KafkaTier(observer, self.answers, broker_id=1, now_ms=lambda: self.now_ms)

    def emit_many(self, events: Sequence[Event]) -> None:
        self.said += events


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_broker_without_a_tier_is_asked_once_a_minute_and_nothing_is_read(world: World) -> None:
    """Until it says yes: then the topic is read, and it is not asked any more."""
    assert world.tier.run_once() == world.tier.run_once() == 0
    assert world.answers.asked == ["broker"]

    world.answers.system = "true"
    world.now_ms += ASK_EVERY_MS
    assert world.tier.run_once() == 2
    assert [each.kind for each in world.said] == ["copy_started", "tier_state"]
    world.answers.system = "false"
    world.now_ms += ASK_EVERY_MS
    world.topic.append(started(2, 10, 19))
    assert world.tier.run_once() == 1
    assert world.answers.asked == ["broker", "broker"]


def test_no_answer_is_no_no(world: World) -> None:
    """Before the first answer it cannot look, and says so; after it, the last one holds."""
    world.answers.system = SILENT
    with pytest.raises(StorageUntold):
        world.tier.run_once()

    world.answers.system = "false"
    assert world.tier.run_once() == 0
    world.answers.system = SILENT
    world.now_ms += ASK_EVERY_MS
    assert world.tier.run_once() == 0


def test_a_seldom_look_that_failed_is_taken_again_at_once() -> None:
    """And one that could is not, before its time; nor does a clock that was put back hold it up."""
    now_ms, looks, fails = [1_000_000], [0], [True]

    def look() -> None:
        looks[0] += 1
        if fails[0]:
            raise OSError("no answer")

    sparing = Sparing(look, every_s=60, now_ms=lambda: now_ms[0])
    for _ in range(2):
        with pytest.raises(OSError, match="no answer"):
            sparing.run_once()
    fails[0] = False
    taken = []
    for after_ms in (1, 59_999, 60_000, 60_001, -5_000):
        now_ms[0] += after_ms
        sparing.run_once()
        taken.append(looks[0])

    assert taken == [3, 3, 4, 5, 6]


def test_the_topics_of_a_host_are_those_of_its_directories(tmp_path: Path) -> None:
    """Not what goes or comes, nor the metadata log; a log dir that is not there loses nothing."""
    one, other = tmp_path / "one", tmp_path / "other"
    for name in ("orders-0", "orders-11", "a.b-c-3", "__cluster_metadata-0", "__consumer_offsets-7"):
        (one / name).mkdir(parents=True)
    (one / f"gone-0.{uuid.uuid4().hex}-delete").mkdir()
    (other / "elsewhere-0").mkdir(parents=True)
    hosted = HostedTopics([one, other])
    found = hosted.names()
    other.rename(tmp_path / "away")

    assert found == {"orders", "a.b-c", "__consumer_offsets", "elsewhere"}
    assert hosted.names() == found


def test_an_agent_tells_kafkas_own_tier_and_what_its_broker_goes_by(
    kip405_broker: LocalCluster, tmp_path: Path
) -> None:
    """What the broker copies and deletes, each once, over a kill -9 of the agent; what the topic goes by."""
    broker, topic = kip405_broker, f"agent-tier-{uuid.uuid4().hex[:8]}"
    since_ms = time.time_ns() // 1_000_000
    only = "[agent]\nobserve_only = true\nobserve_every_s = 1\n"
    settings = f'[kafka]\nbootstrap = "{broker.bootstrap}"\n{only}'

    def until(kind: type[CopyFinished] | type[DeleteFinished], end: int) -> None:
        wait_until(
            lambda: any(each.end_offset >= end for each in told(broker, since_ms=since_ms).of(kind, topic)),
            name=topic,
            wanted=f"{kind.kind} up to {end}",
            deadline_s=DEADLINE_S,
        )

    with agent_beside(broker, tmp_path, settings, None) as agent:
        produce.create_topic(broker, topic, config=TIERED)
        writer = produce.Writer(broker, topic, "day")
        writer.send_all(produce.texts(300))
        until(CopyFinished, 200)
        agent.kill()
        writer.send_all(produce.texts(300))
        admin = kafka.admin_client(broker.bootstrap)
        for done in admin.delete_records([ClientPartition(topic, 0, 150)]).values():
            done.result(DEADLINE_S)
        agent.start()
        until(CopyFinished, 500)
        until(DeleteFinished, 100)
        assert agent.process.stop(grace_s=30.0)

    found = told(broker, since_ms=since_ms)
    assert holes(found) == []
    copies = sorted((each.base_offset, each.end_offset) for each in found.of(CopyFinished, topic))
    assert copies[0][0] == 0
    assert all(one[1] == other[0] for one, other in pairwise(copies))
    gone = sorted((each.base_offset, each.end_offset) for each in found.of(DeleteFinished, topic))
    assert gone == [each for each in copies if each[1] <= 150]
    assert {each.source for each in found.of(CopyFinished, topic)} == {Source.REMOTE_LOG_METADATA}
    polled = [each for each in found.of(ConfigEffective, topic) if each.source is Source.ADMIN]
    [remote] = [each for each in polled if each.key == "remote.storage.enable"]
    assert (remote.new_value, remote.config_source, remote.broker_id) == ("true", ConfigSource.TOPIC, 1)
