"""A prefix lost on a real broker, put back into its log dir while it is stopped, read again in full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from backup.catalogue.bytes import StoredPieces
from backup.logdir.apply import Restore, restore, undo
from backup.logdir.replica import Wanted
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
from tests.tiering.reader.live import Tiered, store_of, tier_partition
from tiering.log.checkpoints import LOG_START_OFFSETS

DEADLINE_S = 60.0
# What a broker says when it had to make something itself (KAFKA_FACTS 20).
MENDED = ("Could not find offset index", "Recovering unflushed segment", "Found a corrupted")


def by_retention(cluster: LocalCluster, topic: str) -> None:
    trim_by_size(cluster, topic, keep_bytes=4 * produce.SMALL_SEGMENT_BYTES)


def by_delete_records(cluster: LocalCluster, topic: str) -> None:
    delete_records(cluster, topic, 1100)


def by_a_corrupted_checkpoint(cluster: LocalCluster, topic: str) -> None:
    """The log starts at 700 by the checkpoint that the broker is started on."""
    cluster.stop(1)
    (log_dir,) = cluster.log_dirs(1)
    path = log_dir / LOG_START_OFFSETS
    lines = [line for line in path.read_text().splitlines()[2:] if not line.startswith(f"{topic} ")]
    lines.append(f"{topic} 0 700")
    path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    cluster.restart(1)
    wait_until(lambda: earliest(cluster, topic) == 700, name=topic, wanted="700", deadline_s=DEADLINE_S)


def asked_of(tiered: Tiered, topic: str, start: int = 0) -> Restore:
    wanted = Wanted(log=tiered.log, topic=topic, broker_id=1)
    return Restore(plan_id="a plan", wanted=wanted, pieces=pieces_of(tiered.segments), start=start)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "lose",
    [
        by_delete_records,
        pytest.param(by_retention, marks=pytest.mark.long),
        pytest.param(by_a_corrupted_checkpoint, marks=pytest.mark.long),
    ],
)
def test_what_was_lost_is_read_again(
    lose: Callable[[LocalCluster, str], None], broker: LocalCluster, bucket: LocalBucket
) -> None:
    """Every record as it was, in both isolation levels; no recovery at the start; kept by retention; undone
    before, to the byte."""
    topic = f"logdir-{lose.__name__}"
    produce.create_topic(broker, topic, config={"file.delete.delay.ms": "0"})
    write_all_kinds(broker, topic)
    broker.stop(1)
    broker.restart(1)  # another leader epoch
    write_all_kinds(broker, topic, rounds=1, name=f"{topic}-again")
    tiered = tier_partition(broker, bucket, topic)
    whole = {each: consumed(broker, topic, isolation=each) for each in ("read_committed", "read_uncommitted")}
    lose(broker, topic)
    assert earliest(broker, topic) > 0
    wait_until(
        lambda: not any(tiered.folder.glob("*.deleted")), name=topic, wanted="unlinked", deadline_s=DEADLINE_S
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
    assert (tiered.folder / "leader-epoch-checkpoint").read_bytes().splitlines()[2] == b"0 0"
