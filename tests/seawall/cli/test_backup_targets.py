"""`seawall backup` for the two targets that are not the tier, as a user runs it, on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backup.topic.groups import Place
from backup.topic.groups.kafka import KafkaGroups
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.backup.lost_logs import compare, consumed, delete_records, earliest, write_all_kinds
from tests.cluster.produce import create_topic
from tests.seawall.cli.calling import Called, call
from tests.tiering.reader.live import Tiered, tier_partition
from tiering.log.batch import Record

TOPIC = "backup-targets"
LOG = f"{TOPIC}:0"
DEADLINE_S = 120.0
Seawall = Callable[..., Called]


@pytest.fixture(scope="module")
def produced(broker: LocalCluster) -> dict[str, list[Record]]:
    """What a consumer was given, by isolation level, before anything was lost."""
    create_topic(broker, TOPIC, config={"file.delete.delay.ms": "0"})
    write_all_kinds(broker, TOPIC)
    levels = ("read_committed", "read_uncommitted")
    return {each: consumed(broker, TOPIC, isolation=each) for each in levels}


@pytest.fixture(scope="module")
def tiered(broker: LocalCluster, bucket: LocalBucket, produced: dict[str, list[Record]]) -> Tiered:
    """All closed segments in the bucket, and most of the broker's own prefix gone."""
    found = tier_partition(broker, bucket, TOPIC)
    delete_records(broker, TOPIC, found.end - 100)
    return found


@pytest.fixture
def seawall(broker: LocalCluster, bucket: LocalBucket, tmp_path: Path) -> Seawall:
    at = bucket.address
    environ = {
        "SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap,
        "SEAWALL_S3__BUCKET": at.bucket,
        "SEAWALL_S3__PREFIX": "reader-tests",
        "SEAWALL_S3__ENDPOINT_URL": at.endpoint_url,
        "SEAWALL_S3__REGION": at.region,
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
        "AWS_EC2_METADATA_DISABLED": "true",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "COLUMNS": "120",
    }
    return lambda *arguments: call("backup", *map(str, arguments), environ=environ)


class Operator:
    """Stops and starts the broker where a shell command asks by a file, as the broker is this process's."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.stop, self.start = folder / "stop", folder / "start"
        self._cluster = cluster
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def command(self, file: Path) -> str:
        return f"touch {file}; while [ -e {file} ]; do sleep 0.2; done"

    def __enter__(self) -> Operator:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(DEADLINE_S)

    def _serve(self) -> None:
        while not self._over.wait(0.1):
            if self.stop.exists():
                self._cluster.stop(1)
                self.stop.unlink()
            if self.start.exists():
                self._cluster.restart(1)
                self.start.unlink()


@pytest.fixture
def operator(broker: LocalCluster, tmp_path: Path) -> Iterator[Operator]:
    with Operator(broker, tmp_path) as found:
        yield found


def test_a_range_is_replayed_and_a_group_goes_on_there(
    seawall: Seawall,
    broker: LocalCluster,
    tiered: Tiered,
    produced: dict[str, list[Record]],
    tmp_path: Path,
) -> None:
    """Plan, tell, replay, replay again; the group goes on at the record that comes next, and back."""
    plan, into = tmp_path / "plan.json", "backup-targets-copy"
    planned = seawall("plan", LOG, "--offsets", f"0:{tiered.end}", "--target", "topic", "--out", plan)
    told = seawall("restore-topic", plan, "--to-topic", into)
    refused = seawall("apply", plan, "--confirm")
    itself = seawall("restore-topic", plan, "--to-topic", TOPIC, "--confirm")
    done = seawall("restore-topic", plan, "--to-topic", into, "--confirm", "--as", "tests")
    again = seawall("restore-topic", plan, "--to-topic", into, "--confirm", "--no-events")

    assert (planned.status, told.status) == (0, 0), planned.stderr + told.stderr
    assert (refused.status, itself.status) == (68, 71), itself.stderr
    assert (done.status, again.status) == (0, 0), done.stderr + again.stderr
    assert "already; nothing was sent" in again.stdout
    wanted = [each for each in produced["read_committed"] if each.offset < tiered.end]
    found = consumed(broker, into, isolation="read_committed")
    assert [each[1:] for each in found] == [each[1:] for each in wanted]

    offset_map = tmp_path / f"plan.{into}.map.parquet"
    groups, group = KafkaGroups({"bootstrap.servers": broker.bootstrap}), "moved"
    middle = len(wanted) // 2
    groups.commit(group, {Place(TOPIC, 0): wanted[middle].offset})
    saved = tmp_path / "saved.json"
    shown = seawall("offsets", "--group", group, "--map", offset_map)
    untouched = groups.positions(group)
    moved = seawall("offsets", "--group", group, "--map", offset_map, "--saved", saved, "--confirm")
    after = groups.positions(group)
    back = seawall("offsets", "--group", group, "--put-back", saved, "--confirm")

    assert (shown.status, moved.status, back.status) == (0, 0, 0), moved.stderr + back.stderr
    assert Place(into, 0) not in untouched
    assert after[Place(into, 0)] == found[middle].offset
    assert "there was none before" in back.stdout


@pytest.mark.long
def test_a_log_dir_is_restored_by_one_command(
    seawall: Seawall,
    broker: LocalCluster,
    tiered: Tiered,
    produced: dict[str, list[Record]],
    operator: Operator,
    tmp_path: Path,
) -> None:
    """Retention in the way is refused, then set; a running broker is refused; then all of it."""
    plan = tmp_path / "plan.json"
    (log_dir,) = broker.log_dirs(1)
    kafka.set_config(broker.bootstrap, TOPIC, {"retention.bytes": str(1 << 30)})
    planned = seawall("plan", LOG, "--target", "log_directory", "--out", plan)
    unchecked = seawall("restore-logdir", plan, "--log-dir", log_dir, "--confirm")
    in_the_way = seawall("restore-logdir", plan)
    prepared = seawall("restore-logdir", plan, "--set-retention")
    running = seawall("restore-logdir", plan, "--log-dir", log_dir, "--confirm")
    assert earliest(broker, TOPIC) == tiered.end - 100
    commands = ("--stop", operator.command(operator.stop), "--start", operator.command(operator.start))
    done = seawall("restore-logdir", plan, "--log-dir", log_dir, *commands, "--confirm", "--as", "tests")
    looked = seawall("restore-logdir", plan, "--log-dir", log_dir, "--check-after")
    back = seawall("restore-logdir", plan, "--put-retention-back")

    assert planned.status == 0, planned.stderr
    assert "brokers_to_stop: [1]" in planned.stdout
    assert [each.status for each in (unchecked, in_the_way, running)] == [65, 65, 65]
    assert prepared.status == 0, prepared.stderr
    assert "ssh HOST-OF-1 sudo systemctl stop kafka" in prepared.stdout
    assert done.status == 0, done.stderr
    assert (looked.status, back.status) == (0, 0), looked.stderr
    assert "look 2 of 2" in looked.stdout
    for isolation, records in produced.items():
        compare(consumed(broker, TOPIC, isolation=isolation), records)
