"""A scripted day, on a stock cluster and with Kafka's own tiered storage: what is told, and what was so.

Created, filled and rolled, retention changed, expired, records deleted, the leader killed without warning and
back, led by its first replica again, deleted and made anew: with all observers beside it. What they say of
each replica comes to the states and ranges that Kafka's own tools and its admin API know: none is missing and
none is made up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

from confluent_kafka import TopicPartition as ClientPartition

from audit_engine.observers.kip405.segments import TierEvent
from rules.events import (
    ConfigEffective,
    ConfigSource,
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    DirectoryOffline,
    EpochStarted,
    EvidenceGap,
    HighWatermark,
    IsrChanged,
    LeaderChanged,
    LogBaseline,
    LogStartAdvanced,
    ReplicaRemoved,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
    Source,
    TopicCreated,
    TopicDeleted,
    Truncated,
)
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.audit_engine.observers.scripted_day import truth
from tests.audit_engine.observers.scripted_day.truth import Replica, Segment
from tests.audit_engine.observers.scripted_day.watch import Watch
from tests.cluster import produce
from tests.cluster.cases_logs import partition_folder, segment_bases
from tests.cluster.elections import elect_preferred
from tests.cluster.oracle import Oracle
from tests.cluster.produce import Writer, texts

DEADLINE_S = 60.0
DAY_MS = 24 * 3_600_000
OLD, NEW = 200, 200  # records: of the day before yesterday, and of now


def test_a_day_of_a_stock_cluster(cluster3: LocalCluster, oracle: Oracle, tmp_path: Path) -> None:
    """Three replicas, each with its own retention: told replica by replica, and once by the metadata."""
    topic = "scripted-day"
    with Watch(cluster3, topic, tmp_path) as watch:
        watch.look()
        watch.configs.run_once()
        first = begin(watch, cluster3, replication=3)
        watch.configs.run_once()
        writer = fill(cluster3, topic)
        whole = truth.replicas(oracle, cluster3, topic)
        watch.until(lambda: is_closed(watch, first, whole), "every segment closed on every replica")

        # Retention: what is old goes on each replica, as far as its own segments allow.
        kafka.set_config(cluster3.bootstrap, topic, {"retention.ms": str(DAY_MS)})
        kept_from = {node: expired_to(each, before_ms=now_ms() - DAY_MS) for node, each in whole.items()}
        watch.until(lambda: starts(watch, first) == kept_from, "the old segments expired on every replica")
        watch.configs.run_once()

        # DeleteRecords: into a segment, so that the start is no boundary of any.
        start = delete_records(cluster3, topic, max(kept_from.values()) + 53)
        watch.until(lambda: set(starts(watch, first).values()) == {start}, "the start asked for, everywhere")

        # An unclean restart of the leader: another leads. Then the first replica leads again.
        [leader] = kafka.leaders(cluster3.bootstrap, topic).values()
        cluster3.kill(leader)
        wait_for_leader(cluster3, topic, lambda now: now != leader)
        writer.send_all(texts(30, seed=2))
        watch.configs.run_once()
        cluster3.restart(leader)
        wait_until(
            lambda: len(kafka.in_sync(cluster3.bootstrap, topic, 0)) == 3,
            name=topic,
            wanted="every replica in sync",
            deadline_s=DEADLINE_S,
        )
        elect_preferred(cluster3, topic)
        wait_for_leader(cluster3, topic, lambda now: now == leader)
        writer.send_all(texts(30, seed=3))
        left = truth.replicas(oracle, cluster3, topic)
        watch.until(lambda: is_closed(watch, first, left), "what was closed since")
        watch.until(lambda: has_epochs(watch, first, left), "each epoch on every replica")
        watch.configs.run_once()
        assert truth.earliest(cluster3, topic) == start

        second = end(watch, cluster3, replication=3)
        watch.configs.run_once()
        watch.rest()
        told = truth.metadata(oracle, cluster3, topic)

    for node_id in cluster3.nodes:
        check_replica(watch, first, node_id, [whole[node_id], left[node_id]], start)
    check_made_anew(watch, second, cluster3)
    check_metadata(watch, told, [first, second])
    check_settings(watch, [first, second], cluster3, {"retention.ms": ("-1", str(DAY_MS))})
    assert [each.problem for each in watch.of(EvidenceGap)] == ["config_untold", "made_good"], (
        "of the broker that was dead"
    )
    assert watch.of(DirectoryOffline) == []
    assert len({each.event_id for each in watch.said}) == len(watch.said)


def test_a_day_of_kafkas_own_tier(kip405_broker: LocalCluster, oracle: Oracle, tmp_path: Path) -> None:
    """One broker and its remote tier: copies, local deletions that are no loss, and remote ones that are."""
    topic = "scripted-tiered-day"
    with Watch(kip405_broker, topic, tmp_path) as watch:
        watch.look()
        first = begin(watch, kip405_broker, replication=1, config={"remote.storage.enable": "true"})
        watch.configs.run_once()
        writer = fill(kip405_broker, topic)
        [whole] = truth.replicas(oracle, kip405_broker, topic).values()
        ranges = [each[:2] for each in whole.closed]
        watch.until(lambda: copied(watch, first) == ranges, "every closed segment copied")

        # Local retention: the disk lets go of what the tier has, and the log begins where it began.
        kafka.set_config(kip405_broker.bootstrap, topic, {"local.retention.bytes": "1"})
        watch.until(lambda: deleted_here(watch, first) == ranges, "every copied segment gone from the disk")
        watch.configs.run_once()
        assert truth.earliest(kip405_broker, topic) == 0
        assert watch.of(LogStartAdvanced, first) == []

        # Retention, then DeleteRecords: the broker deletes from the tier.
        kafka.set_config(kip405_broker.bootstrap, topic, {"retention.ms": str(DAY_MS)})
        kept_from = expired_to(whole, before_ms=now_ms() - DAY_MS)
        watch.until(lambda: starts(watch, first) == {1: kept_from}, "the old segments expired in the tier")
        watch.configs.run_once()
        start = delete_records(kip405_broker, topic, whole.closed[-2].base_offset + 3)
        below = [each for each in ranges if each[1] <= start]
        watch.until(
            lambda: deleted_there(watch, first) == below, "what lies below the start gone from the tier"
        )
        watch.until(lambda: starts(watch, first) == {1: start}, "the start asked for")

        kip405_broker.kill()
        kip405_broker.restart()
        wait_for_leader(kip405_broker, topic, lambda now: now == 1)
        writer.send_all(texts(150, seed=2))
        watch.until(lambda: len(copied(watch, first)) > len(ranges), "what was closed since copied, too")
        watch.until(lambda: deleted_here(watch, first) == copied(watch, first), "and gone from the disk")
        watch.rest()
        assert truth.earliest(kip405_broker, topic) == start
        assert len(segment_bases(partition_folder(kip405_broker, topic))) == 1, "the one that is written to"
        held = {path.name for path in truth.remote_files(kip405_broker, topic)}
        assert held == {f"{base:020d}-{segment_id}.log" for base, segment_id in there(watch, first)}, (
            "the plugin's files are what was told to be there"
        )

        second = end(watch, kip405_broker, replication=1, config={"remote.storage.enable": "true"})
        watch.until(
            lambda: deleted_there(watch, first) == copied(watch, first), "the tier emptied with its topic"
        )
        watch.configs.run_once()
        watch.rest()
        told = truth.metadata(oracle, kip405_broker, topic)
        remote = truth.remote_records(oracle, kip405_broker, topic)

    check_remote(watch, remote)
    closed = [(each.base_offset, each.end_offset) for each in watch.of(SegmentClosed, first)]
    assert closed == copied(watch, first), "what the broker copies is what it has closed"
    assert [segment_of(each) for each in watch.of(SegmentClosed, first)][: len(ranges)] == [*whole.closed]
    assert watch.of(Truncated, first) == []
    check_starts(watch.of(LogStartAdvanced, first), start)
    check_made_anew(watch, second, kip405_broker)
    check_metadata(watch, told, [first, second])
    changes = {"retention.ms": ("-1", str(DAY_MS)), "local.retention.bytes": ("-2", "1")}
    check_settings(watch, [first, second], kip405_broker, changes)
    assert watch.of(EvidenceGap) == []
    assert watch.of(DirectoryOffline) == []
    assert len({each.event_id for each in watch.said}) == len(watch.said)


def begin(
    watch: Watch, cluster: LocalCluster, *, replication: int, config: dict[str, str] | None = None
) -> str:
    """A topic of that name, seen by every observer; its id."""
    known = {each.topic_id for each in watch.of(TopicCreated)}
    produce.create_topic(cluster, watch.topic, replication=replication, config=config)
    watch.until(lambda: len(watch.of(TopicCreated)) > len(known), "the topic in the metadata log")
    [created] = [each for each in watch.of(TopicCreated) if each.topic_id not in known]
    watch.until(
        lambda: len(watch.of(ReplicaStarted, created.topic_id)) == replication, "each replica seen, empty"
    )
    return created.topic_id


def end(
    watch: Watch, cluster: LocalCluster, *, replication: int, config: dict[str, str] | None = None
) -> str:
    """The topic deleted, and another made under its name; that one's id."""
    kafka.delete_topic(cluster.bootstrap, watch.topic)
    watch.until(lambda: len(watch.of(ReplicaRemoved)) == replication, "each replica gone")
    return begin(watch, cluster, replication=replication, config=config)


def fill(cluster: LocalCluster, topic: str) -> Writer:
    """Old records, then new ones."""
    writer = Writer(cluster, topic, "day")
    writer.send_all(texts(OLD), timestamp_ms=now_ms() - 2 * DAY_MS)
    writer.send_all(texts(NEW, seed=1))
    return writer


def delete_records(cluster: LocalCluster, topic: str, before: int) -> int:
    admin = kafka.admin_client(cluster.bootstrap)
    for done in admin.delete_records([ClientPartition(topic, 0, before)]).values():
        done.result(DEADLINE_S)
    return before


def expired_to(replica: Replica, *, before_ms: int) -> int:
    """How far this replica's own segments let retention go."""
    expired = 0
    for segment in replica.closed:
        if segment.max_timestamp_ms >= before_ms:
            break
        expired = segment.end_offset
    assert 0 < expired < replica.closed[-1].end_offset, "some of it, and not all"
    return expired


def wait_for_leader(cluster: LocalCluster, topic: str, is_wanted: Callable[[int], bool]) -> None:
    def leads() -> bool:
        return any(map(is_wanted, kafka.leaders(cluster.bootstrap, topic).values()))

    wait_until(leads, name=topic, wanted="the leader that is waited for", deadline_s=DEADLINE_S)


def is_closed(watch: Watch, topic_id: str, replicas: dict[int, Replica]) -> bool:
    """Whether each segment that these files have closed was told to be."""
    return all(
        {each.base_offset for each in replica.closed}
        <= {each.base_offset for each in watch.of(SegmentClosed, topic_id, node_id)}
        for node_id, replica in replicas.items()
    )


def has_epochs(watch: Watch, topic_id: str, replicas: dict[int, Replica]) -> bool:
    return all(
        replica.epochs.keys() <= dict(epochs_told(watch, topic_id, node_id)).keys()
        for node_id, replica in replicas.items()
    )


def epochs_told(watch: Watch, topic_id: str, node_id: int) -> list[tuple[int, int]]:
    """At first sight, and since."""
    at_first = watch.of(LogBaseline, topic_id, node_id)[0].epochs
    since = [(each.epoch, each.start_offset) for each in watch.of(EpochStarted, topic_id, node_id)]
    return [*at_first, *since]


def starts(watch: Watch, topic_id: str) -> dict[int, int]:
    """The start that was told last of each broker's replica."""
    return {each.broker_id: each.new_start for each in watch.of(LogStartAdvanced, topic_id)}


def copied(watch: Watch, topic_id: str) -> list[tuple[int, int]]:
    return sorted((each.base_offset, each.end_offset) for each in watch.of(CopyFinished, topic_id))


def deleted_there(watch: Watch, topic_id: str) -> list[tuple[int, int]]:
    return sorted((each.base_offset, each.end_offset) for each in watch.of(DeleteFinished, topic_id))


def deleted_here(watch: Watch, topic_id: str) -> list[tuple[int, int]]:
    return sorted((each.base_offset, each.end_offset) for each in watch.of(SegmentDeletedLocal, topic_id))


def there(watch: Watch, topic_id: str) -> list[tuple[int, str]]:
    """The copies that were told to be finished and not to be going."""
    going = {each.segment_id for each in watch.of(DeleteStarted, topic_id)}
    finished = watch.of(CopyFinished, topic_id)
    return sorted((each.base_offset, each.segment_id) for each in finished if each.segment_id not in going)


def segment_of(event: SegmentClosed | SegmentDeletedLocal) -> Segment:
    assert event.max_timestamp_ms is not None
    return Segment(event.base_offset, event.end_offset, event.size_bytes, event.max_timestamp_ms)


def check_replica(watch: Watch, topic_id: str, node_id: int, files: list[Replica], start: int) -> None:
    """All that was told of one life of one replica, against all that its files ever held."""
    closed = sorted({segment for each in files for segment in each.closed})
    assert [segment_of(each) for each in watch.of(SegmentClosed, topic_id, node_id)] == closed
    gone = [each for each in closed if each.end_offset <= start]
    assert [segment_of(each) for each in watch.of(SegmentDeletedLocal, topic_id, node_id)] == gone
    check_starts(watch.of(LogStartAdvanced, topic_id, node_id), start)
    epochs = {epoch: first for each in reversed(files) for epoch, first in each.epochs.items()}
    assert sorted(epochs_told(watch, topic_id, node_id)) == sorted(epochs.items())
    assert len(epochs) == 3, "created, after the kill, back again"
    assert [each.local_start for each in watch.of(ReplicaStarted, topic_id, node_id)] == [0]
    assert len(watch.of(ReplicaRemoved, topic_id, node_id)) == 1
    assert watch.of(Truncated, topic_id, node_id) == []
    marks = watch.of(HighWatermark, topic_id, node_id)
    assert all(each.high_watermark <= files[-1].end_offset for each in marks)


def check_starts(moves: list[LogStartAdvanced], start: int) -> None:
    """One behind the other, from the beginning to where it is; each below what was known to be committed."""
    assert [each.old_start for each in moves] == [0, *(each.new_start for each in moves[:-1])]
    assert all(one.new_start < other.new_start for one, other in pairwise(moves))
    assert moves[-1].new_start == start


def check_made_anew(watch: Watch, topic_id: str, cluster: LocalCluster) -> None:
    """Nothing happened to the topic that was made at the end of the day."""
    begun = watch.of(ReplicaStarted, topic_id)
    assert sorted(each.broker_id for each in begun) == sorted(cluster.nodes)
    assert all(each.local_start == 0 for each in begun)
    for kind in (SegmentClosed, SegmentDeletedLocal, LogStartAdvanced, Truncated, ReplicaRemoved):
        assert watch.of(kind, topic_id) == []


def check_metadata(watch: Watch, told: truth.Told, topic_ids: list[str]) -> None:
    """Record by record: topics, leaders, replicas in sync, settings, each at its offset."""
    assert told.created == [(each.metadata_offset, each.topic_id) for each in watch.of(TopicCreated)]
    assert [topic_id for _, topic_id in told.created] == topic_ids
    assert told.deleted == [(each.metadata_offset, each.topic_id) for each in watch.of(TopicDeleted)]
    assert told.leaders == [
        (each.metadata_offset, each.log.topic_id, each.leader_id, each.leader_epoch)
        for each in watch.of(LeaderChanged)
    ]
    assert told.in_sync == [
        (each.metadata_offset, each.log.topic_id, each.isr) for each in watch.of(IsrChanged)
    ]
    settings = [each for each in watch.of(ConfigEffective) if each.topic == watch.topic]
    dated = [each for each in settings if each.source is Source.KRAFT]
    assert told.settings == [(each.metadata_offset, each.key, each.new_value) for each in dated]


def check_settings(
    watch: Watch, topic_ids: list[str], cluster: LocalCluster, changes: dict[str, tuple[str, str]]
) -> None:
    """As each broker goes by it: everything once at first sight, then what was changed, and nothing else."""
    polled = [each for each in watch.of(ConfigEffective) if each.source is Source.ADMIN]
    seen = [(each.topic_id, each.broker_id, each.key) for each in polled if each.is_first_sight]
    assert len(seen) == len(set(seen))
    for resource in (None, *topic_ids):
        keys = {node_id: set[str]() for node_id in cluster.nodes}
        for topic_id, broker_id, key in seen:
            if topic_id == resource and broker_id is not None:
                keys[broker_id].add(key)
        assert len({frozenset(each) for each in keys.values()}) == 1
        assert "retention.ms" in keys[1] or "log.retention.hours" in keys[1]
    assert {
        (each.new_value, each.config_source)
        for each in polled
        if (each.topic_id, each.key) == (None, "log.retention.check.interval.ms")
    } == {("500", ConfigSource.STATIC)}
    later = [each for each in polled if not each.is_first_sight]
    assert sorted(
        (each.broker_id or 0, each.key, each.old_value, each.new_value) for each in later
    ) == sorted((node_id, key, *values) for node_id in cluster.nodes for key, values in changes.items())
    assert {(each.topic_id, each.config_source) for each in later} == {(topic_ids[0], ConfigSource.TOPIC)}
    assert all(each.not_before_ms is not None for each in later)


def check_remote(watch: Watch, records: Iterable[truth.RemoteRecord]) -> None:
    """Each record of the topic of remote metadata is one event, with all that it says; and no event more."""
    kinds: dict[str, type[TierEvent]] = {
        "COPY_SEGMENT_STARTED": CopyStarted,
        "COPY_SEGMENT_FINISHED": CopyFinished,
        "DELETE_SEGMENT_STARTED": DeleteStarted,
        "DELETE_SEGMENT_FINISHED": DeleteFinished,
    }
    told: dict[int, TierEvent] = {
        each.metadata_offset: each
        for kind in kinds.values()
        for each in watch.of(kind)
        if each.topic == watch.topic
    }
    expected = {each.offset: each for each in records}
    assert told.keys() == expected.keys()
    for offset, record in expected.items():
        event = told[offset]
        assert type(event) is kinds[record.state]
        assert event.source is Source.REMOTE_LOG_METADATA
        assert event.log.topic_id == record.topic_id
        assert (event.segment_id, event.broker_id) == (record.segment_id, record.broker_id)
        assert (event.base_offset, event.end_offset) == (record.base_offset, record.end_offset)
        assert event.occurred_at_ms == record.at_ms
        if isinstance(event, CopyStarted | CopyFinished):
            assert (event.size_bytes, event.max_timestamp_ms) == (record.size_bytes, record.max_timestamp_ms)
            assert event.epochs == record.epochs
    states = [each.state for each in expected.values()]
    assert states.count("COPY_SEGMENT_FINISHED") == states.count("DELETE_SEGMENT_FINISHED") > 0


def now_ms() -> int:
    return time.time_ns() // 1_000_000
