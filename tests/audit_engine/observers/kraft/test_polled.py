"""The same kinds from the admin API: what two looks show, and what a late or missing answer does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]  # not re-exported

from audit_engine.observers.errors import SourceSilent
from audit_engine.observers.kraft.polled import FILE_NAME, MetadataSource, PolledObserver
from audit_engine.observers.kraft.sight import Scope
from rules.events import (
    Event,
    EvidenceGap,
    IsrChanged,
    LeaderChanged,
    PartitionsAdded,
    ReplicaAdded,
    ReplicaRemoved,
    Source,
    TopicCreated,
    TopicDeleted,
)
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.audit_engine.observers.kraft.world import CLUSTER, Killed, Told
from tests.tiering.cluster.histories import uuid
from tiering.cluster.interface import Cause, DescribedPartition, DescribedTopic, Unknown
from tiering.cluster.kafka import KafkaCluster

NO_SUCH = Unknown(cause=Cause.NO_SUCH_TOPIC, reason="no such topic")
SILENT = Unknown(cause=Cause.NO_ANSWER, reason="timed out")
MINUTE_MS = 60_000
DEADLINE_S = 30.0
TOPIC = "polled-day"


def partition(leader: int | None, *replicas: int, isr: tuple[int, ...] | None = None) -> DescribedPartition:
    return DescribedPartition(leader_id=leader, replicas=replicas, isr=replicas if isr is None else isr)


class Polled:
    """A cluster that answers what it is told to, and an observer that asks it."""

    def __init__(self, folder: Path) -> None:
        self.topics: dict[str, DescribedTopic | Unknown] = {}
        self.names: frozenset[str] | Unknown | None = None  # None: those of `topics`
        self.told = Told()
        self.now_ms = 1_000_000
        self.folder = folder
        self._ids = count()
        self.observer = self._observer()

    def topic_names(self) -> frozenset[str] | Unknown:
        return frozenset(self.topics) if self.names is None else self.names

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        return {name: self.topics.get(name, NO_SUCH) for name in topics}

    def put(self, name: str, number: int, *partitions: DescribedPartition) -> None:
        self.topics[name] = DescribedTopic(
            topic=name, topic_id=uuid(number), partitions=dict(enumerate(partitions))
        )

    def look(self) -> list[Event]:
        self.now_ms += MINUTE_MS
        before = len(self.told.events)
        self.observer.run_once()
        return self.told.events[before:]

    def restart(self) -> None:
        self.observer.close()
        self.observer = self._observer()

    def _observer(self) -> PolledObserver:
        return PolledObserver(
            source=self,
            sink=self.told,
            cluster_id=CLUSTER,
            broker_id=1,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"e{next(self._ids)}",
            folder=self.folder,
        )


@pytest.fixture
def polled(tmp_path: Path) -> Polled:
    return Polled(tmp_path)


def test_first_sight_is_a_baseline_and_what_follows_lies_between_two_looks(polled: Polled) -> None:
    """No earlier look at first; then each change with the look that saw it otherwise, also over a restart."""
    polled.put("orders", 1, partition(1, 1, 2))
    first = polled.look()
    seen_ms = polled.now_ms
    polled.restart()
    polled.put("orders", 1, partition(2, 1, 2, isr=(2,)), partition(1, 1, 2))

    added, moved, new = polled.look()

    assert [each.kind for each in first] == ["topic_created", "leader_changed"]
    assert all(each.not_before_ms is None for each in first)  # type: ignore[attr-defined]
    assert isinstance(added, PartitionsAdded)
    assert isinstance(moved, LeaderChanged)
    assert isinstance(new, LeaderChanged)
    assert (added.old_partition_count, added.partition_count) == (1, 2)
    assert (moved.leader_id, moved.isr, moved.leader_epoch, moved.is_unclean) == (2, (2,), -1, None)
    assert (moved.source, moved.metadata_offset, moved.is_coalesced) == (Source.ADMIN, None, False)
    assert (moved.not_before_ms, moved.occurred_at_ms) == (seen_ms, polled.now_ms)
    assert polled.look() == []


def test_replicas_and_in_sync_replicas_are_compared_as_sets(polled: Polled) -> None:
    """Another order is no change; each broker that came or went is one."""
    polled.put("orders", 1, partition(1, 1, 2, 3))
    polled.look()
    polled.put("orders", 1, partition(1, 3, 2, 1))
    assert polled.look() == []
    polled.put("orders", 1, partition(1, 1, 2, 4, isr=(1,)))

    shrunk, came, went = polled.look()

    assert isinstance(shrunk, IsrChanged)
    assert isinstance(came, ReplicaAdded)
    assert isinstance(went, ReplicaRemoved)
    assert (shrunk.isr, came.broker_id, went.broker_id) == ((1,), 4, 3)


def test_a_topic_is_deleted_when_two_looks_were_told_so(polled: Polled) -> None:
    """A broker that has just started may not know it yet; nothing follows from its word alone."""
    polled.put("orders", 1, partition(1, 1))
    polled.look()
    seen_ms = polled.now_ms
    known = polled.topics.pop("orders")
    assert polled.look() == []
    polled.topics["orders"] = known
    assert polled.look() == []
    seen_ms = polled.now_ms
    del polled.topics["orders"]
    assert polled.look() == []

    [deleted] = polled.look()

    assert isinstance(deleted, TopicDeleted)
    assert deleted.not_before_ms == seen_ms


def test_a_topic_made_anew_is_another_and_the_old_id_does_not_come_back(polled: Polled) -> None:
    """The new id is proof; a broker that still answers with the old one is late."""
    polled.put("orders", 1, partition(1, 1))
    polled.look()
    seen_ms = polled.now_ms
    polled.put("orders", 2, partition(1, 1))

    said = polled.look()
    polled.put("orders", 1, partition(1, 1))
    late = polled.look()

    assert sorted(each.kind for each in said) == ["leader_changed", "topic_created", "topic_deleted"]
    assert {each.not_before_ms for each in said} == {seen_ms}  # type: ignore[attr-defined]
    assert late == []
    polled.restart()
    assert polled.look() == []


def test_what_is_not_told_is_no_news(polled: Polled) -> None:
    """Of one topic it is compared later with what it was; of none of them, the observer says it is blind."""
    polled.put("orders", 1, partition(1, 1, 2))
    polled.put("clicks", 2, partition(1, 1, 2))
    polled.topics["late"] = SILENT
    polled.look()
    seen_ms = polled.now_ms
    polled.topics["orders"] = SILENT
    assert polled.look() == []
    polled.put("orders", 1, partition(2, 1, 2))
    polled.put("late", 3, partition(1, 1))

    said = polled.look()

    [moved] = [each for each in said if isinstance(each, LeaderChanged) and each.topic == "orders"]
    [first] = [each for each in said if isinstance(each, TopicCreated)]
    assert moved.not_before_ms == seen_ms
    assert (first.topic, first.not_before_ms) == ("late", None), "it may have been there all along"
    polled.names = SILENT
    with pytest.raises(SourceSilent, match="timed out"):
        polled.look()
    polled.names, polled.topics = None, dict.fromkeys(polled.topics, SILENT)
    with pytest.raises(SourceSilent, match="timed out"):
        polled.look()


def test_a_kill_between_keeping_and_emitting_loses_and_doubles_nothing(polled: Polled) -> None:
    """What was not out comes with the next process, with the ids and times of the look that found it."""
    polled.put("orders", 1, partition(1, 1, 2), partition(2, 2, 1))
    polled.told.die_after = 1
    with pytest.raises(Killed):
        polled.look()
    found_ms = polled.now_ms
    polled.told.die_after = None
    polled.restart()

    polled.look()

    assert [each.kind for each in polled.told.once] == ["topic_created", "leader_changed", "leader_changed"]
    assert {each.occurred_at_ms for each in polled.told.once} == {found_ms}


def test_a_damaged_memory_is_set_aside_and_said(polled: Polled) -> None:
    """A gap, then a first sight: nothing is compared with what cannot be relied on."""
    polled.put("orders", 1, partition(1, 1))
    polled.look()
    polled.observer.close()
    (polled.folder / FILE_NAME).write_bytes(b"no database" * 400)
    polled.restart()

    gap, created, leader = polled.look()

    assert isinstance(gap, EvidenceGap)
    assert (gap.problem, gap.source) == ("memory_lost", Source.ADMIN)
    assert isinstance(created, TopicCreated)
    assert isinstance(leader, LeaderChanged)
    assert created.not_before_ms is None


def test_a_real_cluster_is_told_by_its_admin_api(broker: LocalCluster, tmp_path: Path) -> None:
    """Created, grown, deleted, made anew: the states that were reached, under the broker's own ids."""
    told, ids = Told(), count()
    source: MetadataSource = KafkaCluster({"bootstrap.servers": broker.bootstrap}, monotonic_s=time.monotonic)
    observer = PolledObserver(
        source=source,
        sink=told,
        cluster_id=broker.cluster_id,
        broker_id=1,
        now_ms=lambda: time.time_ns() // 1_000_000,
        new_id=lambda: f"e{next(ids)}",
        folder=tmp_path,
        scope=Scope(takes=lambda topic: topic == TOPIC),
    )

    def until(is_told: Callable[[], bool], wanted: str) -> None:
        def looked() -> bool:
            observer.run_once()
            return is_told()

        wait_until(looked, name=TOPIC, wanted=wanted, deadline_s=DEADLINE_S)

    observer.run_once()
    kafka.create_topic(broker.bootstrap, TOPIC)
    until(lambda: len(told.of(LeaderChanged)) == 1, "the topic and its leader")
    admin = kafka.admin_client(broker.bootstrap)
    admin.create_partitions([NewPartitions(TOPIC, 2)])[TOPIC].result(DEADLINE_S)
    until(lambda: len(told.of(PartitionsAdded)) == 1, "a partition more")
    kafka.delete_topic(broker.bootstrap, TOPIC)
    until(lambda: len(told.of(TopicDeleted)) == 1, "the topic gone")
    kafka.create_topic(broker.bootstrap, TOPIC)
    until(lambda: len(told.of(TopicCreated)) == 2, "another in its place")

    first, second = told.of(TopicCreated)
    described = source.describe_topics([TOPIC])[TOPIC]
    assert isinstance(described, DescribedTopic)
    assert second.topic_id == described.topic_id != first.topic_id
    assert first.not_before_ms is not None
    observer.close()
