"""A scripted day of a real cluster, as observers beside two of its brokers tell it, held against Kafka."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import NewPartitions, NewTopic  # type: ignore[attr-defined]  # not re-exported

from audit_engine.observers.kraft.observer import KraftObserver
from audit_engine.observers.kraft.sight import Scope
from rules.events import ConfigEffective, EvidenceGap, IsrChanged, LeaderChanged, TopicCreated, TopicDeleted
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.audit_engine.observers.kraft.dumped import story
from tests.audit_engine.observers.kraft.world import Told, dated
from tests.cluster import produce
from tests.cluster.corpus import METADATA_IN_SMALL_PIECES
from tests.cluster.oracle import Oracle
from tiering.cluster.interface import DescribedTopic
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.metadata_files import list_metadata_directory
from tiering.cluster.quorum.client import QuorumClient
from tiering.log.directory import KRAFT_METADATA_TOPIC

DEADLINE_S = 60.0
SNAPSHOT_CHANGES = 24
LONG_VALUE = ",".join(f"0:{n}" for n in range(200))  # a setting that takes a list: a few make a log
TOPIC = "metadata-day"


class Beside:
    """An observer beside one broker."""

    def __init__(self, cluster: LocalCluster, node_id: int, folder: Path) -> None:
        self.told = Told()
        self.directory = metadata_of(cluster, node_id)
        ids = count()
        self.folder = folder
        folder.mkdir()
        self.quorum = QuorumClient({"bootstrap.servers": cluster.bootstrap})

        def observer() -> KraftObserver:
            return KraftObserver(
                directory=self.directory,
                quorum=self.quorum,
                sink=self.told,
                cluster_id=cluster.cluster_id,
                now_ms=lambda: time.time_ns() // 1_000_000,
                new_id=lambda: f"e{next(ids)}",
                folder=folder,
                scope=Scope(takes=lambda topic: topic == TOPIC),
            )

        self._make = observer
        self.observer = observer()

    def until(self, is_told: Callable[[], bool], wanted: str) -> None:
        def looked() -> bool:
            self.observer.run_once()
            assert self.observer.trouble == "" or "nobody says" in self.observer.trouble
            return is_told()

        wait_until(looked, name=TOPIC, wanted=wanted, deadline_s=DEADLINE_S)

    def restart(self) -> None:
        self.observer.close()
        self.observer = self._make()

    def close(self) -> None:
        self.observer.close()
        self.quorum.close()


def test_a_scripted_day_is_told_as_kafka_itself_prints_it(
    cluster3: LocalCluster, oracle: Oracle, tmp_path: Path
) -> None:
    """Create, grow, configure, lose a replica, move leaders, delete, make anew: each, and nothing else."""
    one, other = Beside(cluster3, 1, tmp_path / "1"), Beside(cluster3, 3, tmp_path / "3")
    bootstrap, told = cluster3.bootstrap, one.told
    for each in (one, other):
        each.until(lambda each=each: each.observer.metadata_offset is not None, "a baseline")  # type: ignore[misc]
    starts = {each: each.observer.metadata_offset for each in (one, other)}
    assert all(each.is_first_sight for each in told.events if isinstance(each, ConfigEffective))
    told.events.clear()
    other.told.events.clear()

    admin = kafka.admin_client(bootstrap)
    assigned = NewTopic(TOPIC, 2, replica_assignment=[[2, 1, 3], [1, 3, 2]], config={"retention.ms": "-1"})
    admin.create_topics([assigned])[TOPIC].result(DEADLINE_S)
    admin.create_partitions([NewPartitions(TOPIC, 3)])[TOPIC].result(DEADLINE_S)
    kafka.set_config(bootstrap, TOPIC, {"retention.ms": "7000000"})
    one.until(lambda: _values(told)[-1:] == [("-1", "7000000")], "the new retention")
    one.restart()
    cluster3.stop(2)
    one.until(lambda: _leads(told)[0] in (1, 3), "another leader")
    cluster3.restart(2)
    one.until(lambda: _last_in_sync(told) == {1, 2, 3}, "all in sync again")
    one.until(lambda: _elected(cluster3) and _leads(told)[0] == 2, "the leader moved back")
    kafka.delete_topic(bootstrap, TOPIC)
    produce.create_topic(cluster3, TOPIC, replication=2, config={"retention.ms": "1"})
    one.until(lambda: len(told.of(TopicCreated)) == 2, "the topic made anew")
    one.until(lambda: not one.observer.run_once(), "at rest")
    end = one.observer.metadata_offset
    assert end is not None
    other.until(lambda: (other.observer.metadata_offset or 0) >= end, "the other as far")

    truth = story(oracle, one.directory)
    asked = KafkaCluster({"bootstrap.servers": bootstrap}, monotonic_s=time.monotonic)
    now = asked.describe_topics([TOPIC])[TOPIC]

    first, second = told.of(TopicCreated)
    [deleted] = told.of(TopicDeleted)
    assert (first.partition_count, deleted.topic_id) == (2, first.topic_id)
    assert first.topic_id != second.topic_id
    ours = {first.topic_id, second.topic_id, TOPIC}
    for each in (one, other):
        start = starts[each]
        assert start is not None
        wanted = {
            offset: {said for said in all_said if ours & set(said)}
            for offset, (_, all_said) in truth.items()
            if start < offset <= end
        }
        said = {offset: what for offset, what in dated(each.told.once).items() if offset <= end}
        assert said == {offset: what for offset, what in wanted.items() if what}
    for event in told.once:
        assert event.occurred_at_ms == truth[event.metadata_offset][0]  # type: ignore[attr-defined]
    shared = {e.event_id: e for e in other.told.once}
    assert all(shared[each.event_id] == each for each in told.once), "one id is one event"
    assert isinstance(now, DescribedTopic)
    assert now.topic_id == second.topic_id
    last = told.of(LeaderChanged)[-1]
    only = now.partitions[0]
    assert (only.leader_id, set(only.replicas)) == (last.leader_id, set(last.replicas))
    for each in (one, other):
        each.close()


@pytest.mark.jvm
def test_a_log_that_is_cut_into_snapshots_is_followed_and_one_that_was_overtaken_is_a_gap(
    tmp_path: Path, servers_folder: Path
) -> None:
    """Who looks on misses nothing; who finds a snapshot in place of the log tells its outcome and the gap."""
    with LocalCluster(servers_folder / "snapshots", properties=METADATA_IN_SMALL_PIECES) as cluster:
        awake, asleep = Beside(cluster, 1, tmp_path / "awake"), Beside(cluster, 1, tmp_path / "asleep")
        produce.create_topic(cluster, TOPIC)
        for each in (awake, asleep):
            each.until(lambda each=each: bool(each.told.of(TopicCreated)), "a baseline")  # type: ignore[misc]
        asleep_at = asleep.observer.metadata_offset
        values = [str(1_000_000 + n) for n in range(SNAPSHOT_CHANGES)]
        for value in values:
            long = {"leader.replication.throttled.replicas": f"{LONG_VALUE},0:{value}"}
            kafka.set_config(cluster.bootstrap, TOPIC, {"retention.ms": value, **long})
            awake.observer.run_once()
        awake.until(lambda: _values(awake.told)[-1][1] == values[-1], "the last value")
        awake.until(lambda: len(list_metadata_directory(awake.directory).segments) > 1, "a roll")

        overtaken = tmp_path / "copy" / awake.directory.name
        shutil.copytree(awake.directory, overtaken)
        left_at = cut_to_newest_snapshot(overtaken)
        asleep.directory = overtaken
        asleep.restart()
        asleep.until(lambda: bool(asleep.told.of(EvidenceGap)), "a gap")

    told = awake.told
    assert told.of(EvidenceGap) == []
    changes = [each for each in told.of(ConfigEffective) if each.key == "retention.ms"]
    assert [each.new_value for each in changes if not each.is_first_sight] == values
    [gap] = asleep.told.of(EvidenceGap)
    assert (gap.gap_start, gap.gap_end) == ((asleep_at or 0) + 1, left_at)
    after = asleep.told.events[asleep.told.events.index(gap) + 1 :]
    coalesced, *dated_ones = [e for e in after if isinstance(e, ConfigEffective) and e.key == "retention.ms"]
    swallowed = [e for e in changes if (e.metadata_offset or 0) < left_at]
    assert coalesced.is_coalesced
    assert (coalesced.old_value, coalesced.new_value) == ("-1", swallowed[-1].new_value)
    assert dated_ones == changes[len(swallowed) :]
    for each in (awake, asleep):
        each.close()


def cut_to_newest_snapshot(directory: Path) -> int:
    """What a broker leaves that has cleaned up behind its newest snapshot; where that ends."""
    listing = list_metadata_directory(directory)
    end = listing.snapshots[-1].end_offset
    for snapshot in listing.snapshots[:-1]:
        snapshot.path.unlink()
    for segment in listing.segments:
        if segment.end_offset is not None and segment.end_offset <= end:
            segment.path.unlink()
    return end


def metadata_of(cluster: LocalCluster, node_id: int) -> Path:
    return cluster.log_dirs(node_id)[0] / f"{KRAFT_METADATA_TOPIC}-0"


def _values(told: Told) -> list[tuple[str | None, str | None]]:
    return [(e.old_value, e.new_value) for e in told.of(ConfigEffective) if e.key == "retention.ms"]


def _leads(told: Told) -> dict[int, int]:
    return {each.log.partition: each.leader_id for each in told.of(LeaderChanged)}


def _last_in_sync(told: Told) -> set[int]:
    last = {
        each.log.partition: set(each.isr)
        for each in told.events
        if isinstance(each, LeaderChanged | IsrChanged)
    }
    return set.intersection(*last.values())


def _elected(cluster: LocalCluster) -> bool:
    """Preferred leaders lead, or led already."""
    admin = kafka.admin_client(cluster.bootstrap)
    partitions = [ClientPartition(TOPIC, number) for number in range(3)]
    try:
        admin.elect_leaders(ElectionType.PREFERRED, partitions).result(DEADLINE_S)
    except KafkaException:
        return False
    return True
