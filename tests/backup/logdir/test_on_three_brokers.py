"""A prefix lost on three replicas, by each way of losing one, put back on all of them while they are stopped:
the leader moved, each replica begins at an offset of its own, followers restarted, and a restore on one alone
is undone by Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from backup.catalogue.bytes import StoredPieces
from backup.logdir.apply import Restore, restore, undo
from backup.logdir.errors import LogDirRestoreError, ReplicaLeftOut
from backup.logdir.orchestrate import Here, check_after, log_start_of, places, restore_here
from backup.logdir.prospect import look
from backup.logdir.replica import Wanted
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.backup.lost_logs import (
    compare,
    consumed,
    delete_records,
    earliest,
    pieces_of,
    trim_by_size,
    write_all_kinds,
)
from tests.cluster import produce
from tests.cluster.cases_logs import partition_folder
from tests.cluster.disks import put_start
from tests.cluster.elections import elect_preferred
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, store_of, tier_partition
from tiering.cluster.interface import DescribedTopic, TopicPartition
from tiering.cluster.kafka import KafkaCluster

DEADLINE_S = 90.0
STARTS_S = 240.0  # a broker, on a machine that is busy with everything else


@dataclass(frozen=True)
class Nodes:
    """The Brokers of a test's cluster."""

    cluster: LocalCluster
    topic: str

    def stop(self, broker_id: int) -> None:
        self.cluster.stop(broker_id)

    def start(self, broker_id: int) -> None:
        self.cluster.restart(broker_id, deadline_s=STARTS_S)


def in_sync(cluster: LocalCluster, topic: str, count: int) -> None:
    wait_until(
        lambda: len(kafka.in_sync(cluster.bootstrap, topic, 0)) == count,
        name=topic,
        wanted=f"{count} replicas in sync",
        deadline_s=DEADLINE_S,
    )


def client(cluster: LocalCluster) -> KafkaCluster:
    return KafkaCluster({"bootstrap.servers": cluster.bootstrap}, monotonic_s=time.monotonic)


def by_retention(cluster: LocalCluster, topic: str) -> None:
    trim_by_size(cluster, topic, 4 * produce.SMALL_SEGMENT_BYTES)


def by_delete_records(cluster: LocalCluster, topic: str) -> None:
    delete_records(cluster, topic, 1100)


def by_a_corrupted_checkpoint(cluster: LocalCluster, topic: str) -> None:
    """A disk makes up a start for the preferred replica; it is elected, and the others copy its start."""
    described = client(cluster).describe_topics([topic])[topic]
    assert isinstance(described, DescribedTopic)
    corrupt = described.partitions[0].replicas[0]
    cluster.stop(corrupt)
    put_start(cluster.log_dirs(corrupt)[0], topic, 700)
    cluster.restart(corrupt, deadline_s=STARTS_S)
    in_sync(cluster, topic, 3)
    elect_preferred(cluster, topic)
    # A follower in a fetch session hears of a start with the next record only.
    produce.idempotent(cluster, topic, f"{topic}-heard").send_all([b"one more"])
    wait_until(lambda: earliest(cluster, topic) == 700, name=topic, wanted="700", deadline_s=DEADLINE_S)


@pytest.mark.long
@pytest.mark.parametrize("lose", [by_retention, by_delete_records, by_a_corrupted_checkpoint])
def test_all_replicas_are_restored_and_stay_so(
    lose: Callable[[LocalCluster, str], None], cluster3: LocalCluster, bucket: LocalBucket
) -> None:
    """Restored on one alone it is undone; on all, every record is read again, from whichever leads."""
    topic = f"three-{lose.__name__}"
    produce.create_topic(cluster3, topic, replication=3, config={"file.delete.delay.ms": "0"})
    write_all_kinds(cluster3, topic)
    first_leader = kafka.leaders(cluster3.bootstrap, topic)[0]
    cluster3.stop(first_leader)
    write_all_kinds(cluster3, topic, rounds=1, name=f"{topic}-again")
    cluster3.restart(first_leader, deadline_s=STARTS_S)
    in_sync(cluster3, topic, 3)
    leader = kafka.leaders(cluster3.bootstrap, topic)[0]
    assert leader != first_leader
    tiered = tier_partition(cluster3, bucket, topic, node_id=leader)
    whole = {
        each: consumed(cluster3, topic, isolation=each) for each in ("read_committed", "read_uncommitted")
    }
    end = whole["read_uncommitted"][-1].offset + 1
    lose(cluster3, topic)
    lost_to = earliest(cluster3, topic)
    assert lost_to > 0
    wanted = Wanted(log=tiered.log, topic=topic)
    log_dirs = places([cluster3.log_dirs(node)[0] for node in (1, 2, 3)], wanted)
    first_files = [each / wanted.directory_name / f"{0:020d}.log" for each in log_dirs.values()]
    # The start moves first; the files below it go with each broker's next look.
    wait_until(
        lambda: (
            all(log_start_of(each, wanted) >= lost_to for each in log_dirs.values())
            and not any(each.exists() for each in first_files)
        ),
        name=topic,
        wanted="every replica trimmed",
        deadline_s=DEADLINE_S,
    )
    cluster = client(cluster3)
    prospect = look(cluster, tiered.log, topic)
    asked = Restore(plan_id="p", wanted=wanted, pieces=pieces_of(tiered.segments), start=0)
    pieces = StoredPieces(store_of(bucket))

    leader, follower, _ = prospect.outage.brokers
    cluster3.stop(follower)
    restore(log_dirs[follower], replace(asked, wanted=replace(wanted, broker_id=follower)), pieces)
    assert log_start_of(log_dirs[follower], wanted) == 0
    cluster3.restart(follower, deadline_s=STARTS_S)
    in_sync(cluster3, topic, 3)
    wait_until(
        lambda: log_start_of(log_dirs[follower], wanted) >= lost_to,
        name=topic,
        wanted="a restore on one replica to be undone by Kafka",
        deadline_s=DEADLINE_S,
    )
    cluster3.stop(follower)
    undo(log_dirs[follower], wanted)
    cluster3.restart(follower, deadline_s=STARTS_S)
    in_sync(cluster3, topic, 3)

    prospect = look(cluster, tiered.log, topic)
    here = Here(asked=asked, outage=prospect.outage, log_dirs=log_dirs, brokers=Nodes(cluster3, topic))
    with pytest.raises(ReplicaLeftOut):
        restore_here(replace(here, log_dirs={leader: log_dirs[leader]}), pieces)
    with pytest.raises(LogDirRestoreError):
        restore_here(replace(here, asked=replace(asked, pieces=asked.pieces[1:])), pieces)
    in_sync(cluster3, topic, 3)
    assert earliest(cluster3, topic) == lost_to

    done = restore_here(here, pieces)
    in_sync(cluster3, topic, 3)

    def leader_start() -> int | None:
        answer = cluster.leader_offsets([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
        return getattr(answer, "log_start", None)

    assert {each.broker_id for each in done} == {1, 2, 3}
    check_after(log_dirs, wanted, 0, leader_start=leader_start, interval_s=2.0, pause=time.sleep)
    for isolation, records in whole.items():
        compare(consumed(cluster3, topic, isolation=isolation, end=end), records)
    for node in (leader, follower):
        cluster3.stop(node)
        compare(consumed(cluster3, topic, end=end), whole["read_uncommitted"])
        cluster3.restart(node, deadline_s=STARTS_S)
        in_sync(cluster3, topic, 3)
    assert partition_folder(cluster3, topic, 0, follower).is_dir()
    assert [earliest(cluster3, topic)] == [0]
    assert_clean(cluster3, bucket, topic, prefix=PREFIX)
