"""`seawall backup` for the two targets that are not the tier, as a user runs it, on a real broker."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from backup.plan import Lost, LostBecause, PlanBody
from backup.plan.codec import plan_of
from backup.plan.file import read_plan, write_plan
from backup.topic.groups import Place
from backup.topic.groups.kafka import KafkaGroups
from backup.topic.offset_map import OffsetMap, Run
from backup.topic.parquet import write_map
from rules.events import RestoreTarget
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.backup.lost_logs import compare, consumed, delete_records, earliest, write_all_kinds
from tests.cluster.produce import create_topic, idempotent
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
    report = tmp_path / "report.json"
    told_of = ("--as", "tests", "--report", report, "--rate", "1GiB")
    done = seawall("restore-topic", plan, "--to-topic", into, "--confirm", *told_of)
    again = seawall("restore-topic", plan, "--to-topic", into, "--confirm", "--no-events")

    assert (planned.status, told.status) == (0, 0), planned.stderr + told.stderr
    assert (refused.status, itself.status) == (68, 71), itself.stderr
    assert (done.status, again.status) == (0, 0), done.stderr + again.stderr
    assert "already; nothing was sent" in again.stdout
    signed = seawall("report", report)
    assert (signed.status, f"[0, {tiered.end}) restored by tests" in signed.stdout) == (0, True)
    members = json.loads(report.read_text())["seawall_restore"]
    assert (members["to_topic"], members["was_over"]) == (into, False)
    assert members["records"] == sum(each.offset < tiered.end for each in produced["read_committed"])
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


def test_what_cannot_be_replayed_whole_is_not_begun(
    seawall: Seawall, broker: LocalCluster, tiered: Tiered, tmp_path: Path
) -> None:
    """A version gone, another checksum, a hole, another cluster, another target's plan: each its exit code
    and words, and the topic that would have been filled is not even made."""
    path, into = tmp_path / "plan.json", "backup-targets-never"
    assert (
        seawall("plan", LOG, "--offsets", f"0:{tiered.end}", "--target", "topic", "--out", path).status == 0
    )
    body = read_plan(path).body
    first, second, *others = body.pieces

    def with_second(**fields: Any) -> PlanBody:
        ref = second.log_object._replace(**fields)
        record = replace(second.record, objects=replace(second.record.objects, log=ref))
        return replace(body, pieces=(first, replace(second, record=record), *others))

    lost = Lost(start=second.start, end=second.end, because=LostBecause.NEVER_COPIED, detail="nobody did")
    moved = body.log._replace(cluster_id="another")
    of_another = tuple(replace(each, record=replace(each.record, log=moved)) for each in body.pieces)
    spoiled = {
        "gone": (with_second(version_id="no-such-version"), 69, "has it not any more"),
        "checksum": (with_second(checksum="AAAAAAAAAAA="), 69, "AAAAAAAAAAA= is on record"),
        "hole": (replace(body, pieces=(first, *others), lost=(lost,)), 68, "nobody did"),
        "cluster": (replace(body, log=moved, pieces=of_another), 68, "is of cluster another"),
        "target": (replace(body, target=RestoreTarget.LOG_DIRECTORY), 68, "restore-logdir"),
    }
    for name, (each, status, said) in spoiled.items():
        write_plan(tmp_path / name, plan_of(each))
        ran = seawall("restore-topic", tmp_path / name, "--to-topic", into, "--confirm")
        assert (name, ran.status) == (name, status), ran.stderr
        assert said in ran.stderr
    assert seawall("restore-logdir", path).status == 68

    names = kafka.admin_client(broker.bootstrap).list_topics(timeout=DEADLINE_S).topics
    assert into not in names


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
    report = tmp_path / "report.json"
    told_of = ("--as", "tests", "--report", report, "--rate", "1GiB")
    done = seawall("restore-logdir", plan, "--log-dir", log_dir, *commands, "--confirm", *told_of)
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
    assert seawall("report", report).status == 0
    [replica] = json.loads(report.read_text())["seawall_restore"]["replicas"]
    assert (replica["broker_id"], replica["log_start"]) == (1, 0)
    for isolation, records in produced.items():
        compare(consumed(broker, TOPIC, isolation=isolation), records)


def test_another_cluster_takes_a_range_behind_what_it_holds(
    seawall: Seawall,
    broker: LocalCluster,
    kip405_broker: LocalCluster,
    tiered: Tiered,
    produced: dict[str, list[Record]],
    tmp_path: Path,
) -> None:
    """By --to-settings, into a topic with records of others: they stay, the range comes behind them once, and
    a group's position is translated past them; without --to-settings another cluster is refused."""
    plan, into = tmp_path / "plan.json", "backup-targets-elsewhere"
    old = {"message.timestamp.before.max.ms": str(2**63 - 1), "segment.bytes": str(1024 * 1024)}
    create_topic(kip405_broker, into, segment_bytes=None, config=old)
    idempotent(kip405_broker, into, "theirs").send_all([b"one", b"two", b"three"])
    there = tmp_path / "there.toml"
    there.write_text(f'[kafka]\nbootstrap = "{kip405_broker.bootstrap}"\n')
    planned = seawall("plan", LOG, "--offsets", f"0:{tiered.end}", "--target", "topic", "--out", plan)
    asked = ("restore-topic", plan, "--to-topic", into, "--confirm")
    wrong = seawall(*asked, "--bootstrap", kip405_broker.bootstrap)
    done = seawall(*asked, "--to-settings", there)
    again = seawall(*asked, "--to-settings", there, "--bootstrap", "127.0.0.1:1", "--no-events")

    assert planned.status == 0, planned.stderr
    assert (wrong.status, "is of cluster" in wrong.stderr) == (68, True)
    assert (done.status, again.status) == (0, 0), done.stderr + again.stderr
    assert "already; nothing was sent" in again.stdout
    found = consumed(kip405_broker, into, isolation="read_committed")
    wanted = [each for each in produced["read_committed"] if each.offset < tiered.end]
    assert [each.value for each in found[:3]] == [b"one", b"two", b"three"]
    assert [each[1:] for each in found[3:]] == [each[1:] for each in wanted]

    group, middle = "goes-elsewhere", len(wanted) // 2
    offset_map = tmp_path / f"plan.{into}.map.parquet"
    KafkaGroups({"bootstrap.servers": broker.bootstrap}).commit(
        group, {Place(TOPIC, 0): wanted[middle].offset}
    )
    moved = seawall(
        *("offsets", "--group", group, "--map", offset_map, "--to-settings", there),
        *("--saved", tmp_path / "saved.json", "--confirm"),
    )
    assert moved.status == 0, moved.stderr
    after = KafkaGroups({"bootstrap.servers": kip405_broker.bootstrap}).positions(group)
    assert after == {Place(into, 0): found[3 + middle].offset}


def test_a_group_with_members_is_not_moved(seawall: Seawall, broker: LocalCluster, tmp_path: Path) -> None:
    """They would write over the positions: refused with 72; once they are gone it is done."""
    group, into = "busy", "backup-targets-busy"
    create_topic(broker, into)
    groups = KafkaGroups({"bootstrap.servers": broker.bootstrap})
    groups.commit(group, {Place(TOPIC, 0): 5})
    offset_map, saved = tmp_path / "map.parquet", tmp_path / "saved.json"
    found = OffsetMap(start=0, end=10, target_end=10, runs=(Run(0, 0, 10),))
    write_map(offset_map, found, source=(TOPIC, 0), target=(into, 0))
    move = ("offsets", "--group", group, "--map", offset_map, "--saved", saved, "--confirm")
    member = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": "false"},
        logger=kafka.SILENT,
    )
    member.subscribe([into])
    try:
        wait_until(
            lambda: member.poll(0.2) is None and bool(member.assignment()),
            name=group,
            wanted="a member",
            deadline_s=DEADLINE_S,
        )
        refused = seawall(*move)
        assert not saved.exists()
        assert groups.positions(group) == {Place(TOPIC, 0): 5}
    finally:
        member.close()
    wait_until(
        lambda: groups.state(group) in ("EMPTY", "DEAD"), name=group, wanted="empty", deadline_s=DEADLINE_S
    )
    moved = seawall(*move)

    assert (refused.status, "it has members" in refused.stderr) == (72, True)
    assert moved.status == 0, moved.stderr
    assert groups.positions(group)[Place(into, 0)] == 5
