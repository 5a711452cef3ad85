"""A prefix lost on a real broker, put back into its log dir while it is stopped, read again in full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backup.catalogue.bytes import StoredPieces
from backup.errors import CannotRestore
from backup.logdir.apply import Restore, restore, undo
from backup.logdir.errors import Cleaned, DoesNotJoin
from backup.logdir.prospect import look
from backup.logdir.replica import Wanted
from backup.plan.file import write_plan
from rules.events import RestoreTarget
from rules.identity import LogId
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
    plan_for,
    trim_by_size,
    write_all_kinds,
)
from tests.cluster import produce
from tests.cluster.disks import put_start
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, Tiered, store_of, tier_partition
from tiering.cluster.interface import DescribedTopic
from tiering.cluster.kafka import KafkaCluster
from tiering.log.checkpoints import (
    CLEANER_OFFSETS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    EpochStart,
    TopicPartition,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)

DEADLINE_S = 60.0
STARTS_S = 240.0  # a broker, on a machine that is busy with everything else
SMALL = (produce.SMALL_SEGMENT_BYTES,) * 2
BEYOND = 99_999  # the end of every log here
# Before which step of its own each process is killed: while it stages, twice, then between the moves, of
# which each goes on behind those before it. 0: not at all.
KILLED_AT = (2, 6, 14, 9, 7, 5, 0)
# What a broker says when it had to make something itself (KAFKA_FACTS 20).
MENDED = ("Could not find offset index", "Recovering unflushed segment", "Found a corrupted")


def by_retention(cluster: LocalCluster, topic: str) -> None:
    trim_by_size(cluster, topic, keep_bytes=4 * produce.SMALL_SEGMENT_BYTES)


def by_delete_records(cluster: LocalCluster, topic: str) -> None:
    delete_records(cluster, topic, 1100)


def by_a_corrupted_checkpoint(cluster: LocalCluster, topic: str) -> None:
    """The log starts at 700 by the checkpoint that the broker is started on."""
    cluster.stop(1)
    put_start(cluster.log_dirs(1)[0], topic, 700)
    cluster.restart(1, deadline_s=STARTS_S)
    wait_until(lambda: earliest(cluster, topic) == 700, name=topic, wanted="700", deadline_s=DEADLINE_S)


def by_a_checkpoint_beyond_the_end(cluster: LocalCluster, topic: str) -> None:
    """The broker deletes every segment, and goes on from where the checkpoint says (KAFKA_FACTS 5)."""
    cluster.stop(1)
    put_start(cluster.log_dirs(1)[0], topic, BEYOND)
    cluster.restart(1, deadline_s=STARTS_S)
    wait_until(lambda: earliest(cluster, topic) == BEYOND, name=topic, wanted="empty", deadline_s=DEADLINE_S)


def epochs_of(tiered: Tiered) -> list[EpochStart]:
    return list(read_leader_epoch_checkpoint((tiered.folder / LEADER_EPOCHS).read_bytes()).epochs)


def asked_of(tiered: Tiered, topic: str, start: int = 0) -> Restore:
    wanted = Wanted(log=tiered.log, topic=topic, broker_id=1)
    return Restore(plan_id="a plan", wanted=wanted, pieces=pieces_of(tiered.segments), start=start)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("lose", "segment_bytes"),
    [
        (by_delete_records, SMALL),
        pytest.param(by_retention, (4 * 1024, 48 * 1024), marks=pytest.mark.long),
        pytest.param(by_a_corrupted_checkpoint, SMALL, marks=pytest.mark.long),
    ],
)
def test_what_was_lost_is_read_again(
    lose: Callable[[LocalCluster, str], None],
    segment_bytes: tuple[int, int],
    broker: LocalCluster,
    bucket: LocalBucket,
) -> None:
    """Every record as it was, in both isolation levels; no recovery at the start; kept by retention; undone
    before, to the byte. Segments of several sizes."""
    topic = f"logdir-{lose.__name__}"
    first_bytes, then_bytes = segment_bytes
    produce.create_topic(broker, topic, segment_bytes=first_bytes, config={"file.delete.delay.ms": "0"})
    write_all_kinds(broker, topic)
    if then_bytes != first_bytes:
        kafka.set_config(broker.bootstrap, topic, {produce.SEGMENT_BYTES: str(then_bytes)})
    broker.stop(1)
    broker.restart(1)  # another leader epoch
    write_all_kinds(broker, topic, rounds=1, name=f"{topic}-again")
    tiered = tier_partition(broker, bucket, topic)
    whole = {each: consumed(broker, topic, isolation=each) for each in ("read_committed", "read_uncommitted")}
    epochs = epochs_of(tiered)
    lose(broker, topic)
    assert earliest(broker, topic) > 0
    # The start moves first; the files below it go with the broker's next look.
    wait_until(
        lambda: not (tiered.folder / f"{0:020d}.log").exists() and not any(tiered.folder.glob("*.deleted")),
        name=topic,
        wanted="unlinked",
        deadline_s=DEADLINE_S,
    )
    (log_dir,) = broker.log_dirs(1)

    broker.stop(1)
    lost, starts = snapshot(tiered.folder), (log_dir / LOG_START_OFFSETS).read_bytes()
    asked, pieces = asked_of(tiered, topic), StoredPieces(store_of(bucket))
    first = restore(log_dir, asked, pieces)
    undo(log_dir, asked.wanted)
    undone, starts_undone = snapshot(tiered.folder), (log_dir / LOG_START_OFFSETS).read_bytes()
    second = restore(log_dir, asked, pieces)
    third = restore(log_dir, asked, pieces)
    bases = {path.stem for path in tiered.folder.glob("*.log")}
    snapshots = {path.name for path in tiered.folder.glob("*.snapshot") if path.stem in bases}
    started_at = (log_dir.parent / "server.log").stat().st_size
    broker.restart(1)

    assert undone == lost
    assert sorted(starts_undone.splitlines()) == sorted(starts.splitlines())
    assert (first.log_start, first.was_done) == (0, False)
    assert (second.files, third.was_done) == (first.files, True)
    assert earliest(broker, topic) == 0
    for isolation, records in whole.items():
        compare(consumed(broker, topic, isolation=isolation), records)
    said = (log_dir.parent / "server.log").read_bytes()[started_at:].decode()
    assert not [line for line in said.splitlines() if f"{topic}-0" in line and any(map(line.count, MENDED))]
    assert len(snapshots) >= first.files
    assert snapshots <= {path.name for path in tiered.folder.glob("*.snapshot")}
    assert len(epochs) > 1
    assert epochs_of(tiered)[: len(epochs)] == epochs
    assert_clean(broker, bucket, topic, prefix=PREFIX)


@pytest.mark.long
def test_a_start_that_moved_a_moment_ago_is_put_back(broker: LocalCluster, bucket: LocalBucket) -> None:
    """Stopped as soon as the start moved, whether its files stand still or not: every record, and the epochs
    as they were, though the broker has cut them already."""
    topic = "logdir-moment"
    produce.create_topic(broker, topic, config={"file.delete.delay.ms": "0"})
    write_all_kinds(broker, topic)
    broker.stop(1)
    broker.restart(1)  # another leader epoch
    write_all_kinds(broker, topic, rounds=1, name=f"{topic}-again")
    tiered = tier_partition(broker, bucket, topic)
    whole, epochs = consumed(broker, topic), epochs_of(tiered)
    (log_dir,) = broker.log_dirs(1)
    delete_records(broker, topic, tiered.end - 10)

    broker.stop(1)
    cut = epochs_of(tiered)
    restore(log_dir, asked_of(tiered, topic), StoredPieces(store_of(bucket)))
    restored = epochs_of(tiered)
    broker.restart(1)

    assert cut[0].start_offset == tiered.end - 10
    assert restored == epochs
    assert len(epochs) > 1
    assert earliest(broker, topic) == 0
    compare(consumed(broker, topic), whole)
    assert_clean(broker, bucket, topic, prefix=PREFIX)


@pytest.mark.long
def test_a_log_that_was_emptied_is_refused(broker: LocalCluster, bucket: LocalBucket) -> None:
    """It begins beyond all that was ever copied: nothing joins on, and nothing is changed."""
    topic = "logdir-emptied"
    produce.create_topic(broker, topic, config={"file.delete.delay.ms": "0"})
    write_all_kinds(broker, topic, rounds=1)
    tiered = tier_partition(broker, bucket, topic)
    by_a_checkpoint_beyond_the_end(broker, topic)
    (log_dir,) = broker.log_dirs(1)
    broker.stop(1)
    before = snapshot(tiered.folder)

    with pytest.raises(DoesNotJoin, match=f"no copy holds .{tiered.end}, {BEYOND}"):
        restore(log_dir, asked_of(tiered, topic), StoredPieces(store_of(bucket)))

    assert snapshot(tiered.folder) == before
    broker.restart(1, deadline_s=STARTS_S)
    assert_clean(broker, bucket, topic, prefix=PREFIX)


@pytest.mark.long
def test_killed_on_a_brokers_own_files_it_goes_on(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """SIGKILL at steps all over a restore, each process further on; the last comes to the end, and the broker
    starts on it and has every record."""
    topic = "logdir-killed"
    produce.create_topic(broker, topic, config={"file.delete.delay.ms": "0"})
    write_all_kinds(broker, topic)
    tiered = tier_partition(broker, bucket, topic)
    whole = consumed(broker, topic)
    delete_records(broker, topic, tiered.end - 10)
    (log_dir,) = broker.log_dirs(1)
    plan = plan_for(pieces_of(tiered.segments), RestoreTarget.LOG_DIRECTORY)
    write_plan(tmp_path / "plan", plan)
    at = bucket.address
    environ = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
    }
    place = (str(log_dir), str(tmp_path / "plan"), at.endpoint_url, at.bucket, at.region)

    broker.stop(1)
    ended = []
    for kill_at in KILLED_AT:
        command = [sys.executable, "-m", "tests.backup.logdir.restore_alone", *place, str(kill_at)]
        done = subprocess.run(command, env=environ, timeout=10 * DEADLINE_S, check=False)
        ended.append(done.returncode)
    broker.restart(1)

    assert ended == [-signal.SIGKILL] * (len(KILLED_AT) - 1) + [0]
    assert earliest(broker, topic) == 0
    compare(consumed(broker, topic), whole)
    assert_clean(broker, bucket, topic, prefix=PREFIX)


@pytest.mark.long
def test_a_replica_that_a_broker_compacted_is_refused(broker: LocalCluster, bucket: LocalBucket) -> None:
    """Tiered, then compacted for a while: the cleaner's entry stays, and nothing is put before it."""
    topic = "logdir-cleaned"
    produce.create_topic(broker, topic, config={"file.delete.delay.ms": "0"})
    writer = produce.idempotent(broker, topic, topic)
    for number, text in enumerate(produce.texts(600)):
        writer.send(text, key=b"k%d" % (number % 7))
    writer.flush()
    tiered = tier_partition(broker, bucket, topic)
    (log_dir,) = broker.log_dirs(1)
    cleaning = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
    }
    kafka.set_config(broker.bootstrap, topic, cleaning)
    entry = TopicPartition(topic, 0)

    def is_cleaned() -> bool:
        path = log_dir / CLEANER_OFFSETS
        return path.exists() and entry in read_offset_checkpoint(path.read_bytes(), CLEANER_OFFSETS).offsets

    wait_until(is_cleaned, name=topic, wanted="a cleaning", deadline_s=DEADLINE_S)
    kafka.set_config(broker.bootstrap, topic, {"cleanup.policy": "delete"})
    delete_records(broker, topic, 300)
    broker.stop(1)
    before = snapshot(tiered.folder)

    with pytest.raises(Cleaned):
        restore(log_dir, asked_of(tiered, topic), StoredPieces(store_of(bucket)))

    assert snapshot(tiered.folder) == before
    broker.restart(1)
    assert_clean(broker, bucket, topic, prefix=PREFIX)


def test_a_topic_with_kafkas_own_tier_is_refused(kip405_broker: LocalCluster) -> None:
    """Before anything is stopped: by the cluster's word, with the target that does work."""
    topic = "logdir-kip405"
    produce.create_topic(kip405_broker, topic, config={"remote.storage.enable": "true"})
    config = {"bootstrap.servers": kip405_broker.bootstrap}
    cluster = KafkaCluster(config, monotonic_s=time.monotonic)
    [described] = cluster.describe_topics([topic]).values()
    assert isinstance(described, DescribedTopic)

    with pytest.raises(CannotRestore, match=r"KIP-405.* restore to target topic"):
        look(cluster, LogId(kip405_broker.cluster_id, described.topic_id, 0), topic)
