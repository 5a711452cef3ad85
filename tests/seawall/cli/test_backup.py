"""`seawall backup` as a user runs it: a real broker's log, tiered, expired and put back into the tier."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from seawall.backup.finding import found_of
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from seawall.settings import Settings
from seawall.tier.following import followed
from tests.backup.lost_logs import compare, consumed, delete_records, write_all_kinds
from tests.cluster.produce import create_topic
from tests.seawall.cli.calling import Called, call, environ_of
from tests.tiering.reader.live import Tiered, store_of, tier_partition
from tiering.log.batch import Record
from tiering.reader.interface import Isolation, TieredLog, tiered_log
from tiering.reader.reader import TieredReader
from tiering.retention.expire import REMOVAL_ORDER
from tiering.segments.kafka import check_topic, replay
from tiering.segments.records import LogRecord, SegmentState
from tiering.uploader.log_records import Writer, again

TOPIC = "backup-verbs"
LOG = f"{TOPIC}:0"
PREFIX = "reader-tests"  # where `tier_partition` puts its objects
DEADLINE_S = 60.0
Seawall = Callable[..., Called]


@pytest.fixture(scope="module")
def produced(broker: LocalCluster) -> dict[str, list[Record]]:
    """What a consumer was given, by isolation level, before anything was lost."""
    create_topic(broker, TOPIC)
    write_all_kinds(broker, TOPIC, rounds=2)
    return {each.value: consumed(broker, TOPIC, isolation=each.value) for each in Isolation}


@pytest.fixture(scope="module")
def tiered(broker: LocalCluster, bucket: LocalBucket, produced: dict[str, list[Record]]) -> Tiered:
    """All closed segments in the bucket, and the broker's own prefix gone: only the tier has it."""
    found = tier_partition(broker, bucket, TOPIC)
    assert len(found.segments) > 5
    delete_records(broker, TOPIC, found.end)
    return found


@pytest.fixture
def environ(broker: LocalCluster, bucket: LocalBucket, tmp_path: Path) -> dict[str, str]:
    return environ_of(broker, bucket.address, PREFIX) | {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "COLUMNS": "100",
    }


@pytest.fixture
def seawall(environ: dict[str, str]) -> Seawall:
    return lambda *arguments: call("backup", *map(str, arguments), environ=environ)


def expire(tiered: Tiered, broker: LocalCluster, bucket: LocalBucket, count: int) -> int:
    """What expiry leaves of the first `count` segments: the start moved, records, markers; the new start."""
    settings = Settings.model_validate({"kafka": {"bootstrap": broker.bootstrap}})
    store = store_of(bucket)
    start = tiered.segments[count].base_offset
    with followed(settings) as table:
        view = table.view(tiered.log)
        assert view is not None
        assert view.record is not None
        writer = Writer(
            broker_id=1,
            leader_epoch=view.record.claim_epoch,
            event_id=str(uuid.uuid4()),
            now_ms=1_700_000_000_000,
        )
        moved: LogRecord = replace(again(view, writer), log_start=start, keep_until_ms=None)
        table.metadata.publish_log(moved)
        for each in tiered.segments[:count]:
            record = table.segment(tiered.log, each.segment_id)
            assert record is not None
            if record.state is not SegmentState.COPY_FINISHED:
                continue
            deleting = replace(record, state=SegmentState.DELETE_STARTED, event_id=str(uuid.uuid4()))
            table.publish(deleting)
            for kind in REMOVAL_ORDER:
                store.mark_deleted(f"{record.key_stem}.{kind.value}")
            table.publish(replace(deleting, state=SegmentState.DELETE_FINISHED, event_id=str(uuid.uuid4())))
    return start


def tier_of(tiered: Tiered, broker: LocalCluster) -> TieredLog:
    config = {"bootstrap.servers": broker.bootstrap}
    found = tiered_log(replay(config, check_topic(config)), tiered.log)
    assert isinstance(found, TieredLog), found
    return found


def read_all(tiered: Tiered, broker: LocalCluster, bucket: LocalBucket) -> dict[str, list[Record]]:
    """All that a reader of the tier is given now, by isolation level."""
    log = tier_of(tiered, broker)
    with TieredReader(store_of(bucket)) as reader:
        return {
            each.value: list(reader.records(log, log.start, log.end, isolation=each)) for each in Isolation
        }


def members(ran: Called) -> Any:
    return json.loads(ran.stdout)


def test_a_prefix_comes_back_record_for_record(
    tiered: Tiered,
    broker: LocalCluster,
    bucket: LocalBucket,
    produced: dict[str, list[Record]],
    seawall: Seawall,
    environ: dict[str, str],
    tmp_path: Path,
) -> None:
    """Listed, planned, checked, applied, read; the report signed; the same again changes nothing."""
    start = expire(tiered, broker, bucket, 4)
    assert tier_of(tiered, broker).start == start
    listed = members(seawall("list", TOPIC, "--json"))
    [row] = listed["logs"]
    assert (row["start"], row["recoverable_offsets"], row["lost_offsets"]) == (start, start, 0)

    plan = tmp_path / "plan.json"
    planned = seawall("plan", LOG, "--out", plan)
    assert (planned.status, planned.stderr) == (0, "")
    assert f"restore [0, {start}) of {TOPIC}-0 to target tier" in planned.stdout
    assert tier_of(tiered, broker).start == start
    looked = seawall("apply", plan)
    assert looked.status == 0
    assert "nothing was changed: do it with --confirm" in looked.stderr
    assert tier_of(tiered, broker).start == start

    report = tmp_path / "report.json"
    done = seawall("apply", plan, "--confirm", "--report", report, "--as", "someone")

    assert (done.status, done.stderr) == (0, "")
    found = read_all(tiered, broker, bucket)
    for isolation, wanted in produced.items():
        compare(found[isolation], [each for each in wanted if each.offset < tiered.end])
    shown = call("read", LOG, "--from", "0", "--to", "5", environ=environ)
    assert shown.status == 0
    signed = seawall("report", report)
    assert (signed.status, "restored by someone" in signed.stdout) == (0, True)
    report.write_text(report.read_text().replace("someone", "nobody"))
    assert seawall("report", report).status == 64

    again_done = seawall("apply", plan, "--confirm")
    assert again_done.status == 0
    assert "nothing was changed" in again_done.stdout
    assert seawall("plan", LOG).status == 68


@pytest.mark.long
def test_killed_in_the_middle_it_is_gone_on_with(
    tiered: Tiered,
    broker: LocalCluster,
    bucket: LocalBucket,
    produced: dict[str, list[Record]],
    seawall: Seawall,
    environ: dict[str, str],
    tmp_path: Path,
) -> None:
    """kill -9 while it waits for the byte rate, some objects put back: the same command does the rest."""
    expire(tiered, broker, bucket, 4)
    plan = tmp_path / "plan.json"
    assert seawall("plan", LOG, "--out", plan).status == 0
    store = store_of(bucket)
    stems = {each.key_stem for each in tiered.segments[:4]}

    def put_back() -> int:
        prefix = tiered.segments[0].key_stem.rpartition("/")[0]
        return sum(each.key.rpartition(".")[0] in stems for each in store.list_keys(f"{prefix}/"))

    slowly = ("--workers", "1", "--rate", str(tiered.segments[0].size_bytes // 2))
    running = subprocess.Popen(
        [sys.executable, "-m", "seawall", "backup", "apply", str(plan), "--confirm", *slowly],
        env={**os.environ, **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(
            lambda: put_back() > 0 or running.poll() is not None,
            name="apply",
            wanted="an object",
            deadline_s=DEADLINE_S,
        )
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait(DEADLINE_S)
    assert running.returncode == -signal.SIGKILL
    assert 0 < put_back() < 12
    assert tier_of(tiered, broker).start > 0

    assert seawall("apply", plan, "--confirm").status == 0

    found = read_all(tiered, broker, bucket)
    for isolation, wanted in produced.items():
        compare(found[isolation], [each for each in wanted if each.offset < tiered.end])


@pytest.mark.long
def test_what_somebody_changed_in_between_is_refused(
    tiered: Tiered, broker: LocalCluster, bucket: LocalBucket, seawall: Seawall, tmp_path: Path
) -> None:
    """A plan edited by hand, and one that expiry overtook: each its own exit code, and nothing changed."""
    expire(tiered, broker, bucket, 2)
    plan, edited = tmp_path / "plan.json", tmp_path / "edited.json"
    assert seawall("plan", LOG, "--out", plan).status == 0
    edited.write_text(plan.read_text().replace('"keep_for_ms": ', '"keep_for_ms": 1'))

    refused = seawall("apply", edited, "--confirm")
    assert refused.status == 66
    assert "is not as `seawall backup plan` wrote it" in refused.stderr
    start = expire(tiered, broker, bucket, 3)
    refused = seawall("apply", plan, "--confirm")
    assert refused.status == 67
    assert tier_of(tiered, broker).start == start

    assert seawall("plan", LOG, "--out", tmp_path / "new.json").status == 0
    assert seawall("apply", tmp_path / "new.json", "--confirm").status == 0


def test_damage_is_told_and_had_back(
    tiered: Tiered, broker: LocalCluster, bucket: LocalBucket, seawall: Seawall, tmp_path: Path
) -> None:
    """Somebody's delete marker on a live object: shown, verified wrong, planned, repaired, verified right."""
    clean = seawall("verify", TOPIC, "--deep")
    assert (clean.status, clean.stderr) == (0, "")
    assert f"{len(tiered.segments)} segments read" in clean.stdout
    store_of(bucket).mark_deleted(f"{tiered.segments[1].key_stem}.log")

    wrong = members(seawall("verify", TOPIC, "--json"))["wrong"]
    assert [(each["kind"], each["start"]) for each in wrong] == [("damaged", tiered.segments[1].base_offset)]
    shown = members(seawall("show", LOG, "--json"))
    assert [each["what"] for each in shown["ranges"]].count("recoverable") == 1
    assert shown["broker"]["start"] == tiered.end
    held = [each for each in shown["ranges"] if each["origin"] == "replica"]
    assert [each["range"] for each in held] == [[tiered.end, shown["broker"]["high_watermark"]]]
    plan = tmp_path / "plan.json"
    assert seawall("plan", LOG, "--out", plan).status == 0
    assert seawall("apply", plan, "--confirm").status == 0

    assert seawall("verify", TOPIC, "--subset", "1/2").status == 0
    partly = seawall("verify", TOPIC, "--max-bytes", str(tiered.segments[0].size_bytes + 8000))
    assert partly.status == 3
    assert "left out by --max-bytes" in partly.stdout


@pytest.mark.long
def test_the_log_as_it_was_at_a_time(
    tiered: Tiered, broker: LocalCluster, bucket: LocalBucket, seawall: Seawall, tmp_path: Path
) -> None:
    """Before the expiry the prefix was live, and after it not; a plan for that time has it back."""
    then_ms = store_of(bucket).now_ms()
    wait_until(
        lambda: store_of(bucket).now_ms() > then_ms,
        name="the store",
        wanted="a second",
        deadline_s=DEADLINE_S,
    )
    start = expire(tiered, broker, bucket, 2)

    before = members(seawall("show", LOG, "--as-of", f"@{then_ms}", "--json"))
    now = members(seawall("show", LOG, "--as-of", f"@{then_ms + 3_600_000}", "--json"))
    assert before["ranges"][0]["range"][0] == 0
    assert [each["what"] for each in before["ranges"]].count("recoverable") == 2
    assert now["ranges"][0]["range"][0] == start

    plan = tmp_path / "plan.json"
    planned = seawall("plan", LOG, "--to-time", f"@{then_ms}", "--out", plan)
    assert planned.status == 0
    assert seawall("apply", plan, "--confirm").status == 0
    assert tier_of(tiered, broker).start == 0


def test_the_bucket_is_looked_at(bucket: LocalBucket, tiered: Tiered, seawall: Seawall) -> None:
    """Versioned and locked; without a lifecycle and a public access block, each with its remedy."""
    ran = seawall("check", "--json")

    found = {(each["subject"], each["status"]): each for each in members(ran)["findings"]}
    assert ran.status == 1
    assert ("s3 versioning", "ok") in found
    assert "NoncurrentVersionExpiration" in found["s3 lifecycle", "warn"]["remedy"]
    rights = [each["detail"] for each in members(ran)["findings"] if each["subject"] == "s3 own rights"]
    assert rights == ["may list versions", "may write", "may read a version"]
    assert list(store_of(bucket).list_uploads("")) == []


def test_verify_holds_the_bucket_against_the_window(
    bucket: LocalBucket, tiered: Tiered, seawall: Seawall
) -> None:
    """A lifecycle that takes versions too soon is a failure with its remedy; one that keeps them is none."""
    at = bucket.address
    client = boto3.Session(
        aws_access_key_id=at.access_key_id, aws_secret_access_key=at.secret_access_key
    ).client("s3", endpoint_url=at.endpoint_url, region_name=at.region)

    def keep_for(days: int) -> None:
        rule = {"ID": "ours", "Status": "Enabled", "Filter": {"Prefix": f"{PREFIX}/"}}
        rules: Any = [{**rule, "NoncurrentVersionExpiration": {"NoncurrentDays": days}}]
        client.put_bucket_lifecycle_configuration(Bucket=at.bucket, LifecycleConfiguration={"Rules": rules})

    try:
        keep_for(2)
        short, words = seawall("verify", TOPIC, "--json"), seawall("verify", TOPIC)
        keep_for(30)
        right = seawall("verify", TOPIC, "--json")
    finally:
        client.delete_bucket_lifecycle(Bucket=at.bucket)

    assert (short.status, right.status) == (1, 0)
    [found] = members(short)["bucket"]
    days = members(short)["window_days"]
    assert (found["subject"], found["status"]) == ("s3 lifecycle", "fail")
    assert found["remedy"] == f"Set NoncurrentDays of rule 'ours' to {days} or more."
    assert f"the window is {days}" in words.stdout
    assert members(right)["bucket"] == []


def test_a_pin_keeps_versions_until_it_is_released(
    tiered: Tiered, broker: LocalCluster, bucket: LocalBucket, seawall: Seawall, tmp_path: Path
) -> None:
    """Legal holds on the versions of removed copies; told by expire; free again with unkeep."""
    start = expire(tiered, broker, bucket, 2)
    kept = seawall(
        "keep", LOG, "--offsets", f"0:{start}", "--reason", "an audit", "--until", "@1000", "--json"
    )
    assert kept.status == 0
    pin, held = members(kept)["pin"], tiered.segments[0].objects.log
    assert held is not None
    store = store_of(bucket)
    versions = [each for each in store.list_versions(held.key) if not each.is_delete_marker]
    assert any(store.is_held(each.key, each.version_id) for each in versions)

    told = members(seawall("expire", TOPIC, "--json"))
    assert {each["leaves"] for each in told["leaving"]} == {"held"}
    assert told["pins_over"] == [pin]
    assert seawall("expire", TOPIC, "--confirm").status == 0
    told = members(seawall("expire", TOPIC, "--json"))
    assert ({each["leaves"] for each in told["leaving"]}, told["pins_over"]) == ({"later"}, [])
    assert not any(store.is_held(each.key, each.version_id) for each in versions)
    assert seawall("unkeep", LOG, pin, "--reason", "again").status == 64

    assert seawall("plan", LOG, "--out", tmp_path / "plan.json").status == 0
    assert seawall("apply", tmp_path / "plan.json", "--confirm").status == 0


def test_a_drill_restores_a_sample_and_compares_it(tiered: Tiered, seawall: Seawall, tmp_path: Path) -> None:
    """A segment with transactions into a scratch topic and back: the same records; a signed line is kept."""
    ran = seawall("drill", TOPIC, "--seed", "a", "--state-dir", tmp_path, "--json")

    assert ran.status == 0, ran.stderr
    [drilled] = members(ran)
    assert (drilled["good"], drilled["records"] > 0, drilled["wrong"]) == (True, True, None)
    [line] = (tmp_path / "drills.jsonl").read_text().splitlines()
    assert json.loads(line)["seawall_restore"]["segment_id"] == drilled["segment_id"]
    assert json.loads(line)["signature"].startswith("v1,")


@pytest.mark.long
def test_a_finding_is_planned_for_by_its_id(
    tiered: Tiered,
    broker: LocalCluster,
    bucket: LocalBucket,
    seawall: Seawall,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log and the offsets are the finding's; its id stands in the plan. (The tables are left out.)"""
    start = expire(tiered, broker, bucket, 2)
    row = {
        "finding_id": "0123abcd",
        "rule_id": "RET-01",
        "subject": f"{tiered.log.cluster_id}/{tiered.log.topic_id}/0/log",
        "ranges": [[0, start]],
        "held_by": [],
    }
    monkeypatch.setattr("seawall.backup.finding.read_finding", lambda settings, tables, wanted: found_of(row))
    plan = tmp_path / "plan.json"

    planned = seawall("plan", "--finding", "0123", "--tables", tmp_path, "--out", plan)

    assert (planned.status, planned.stderr) == (0, "")
    assert f"asked by finding: RET-01 0123abcd [0, {start})" in planned.stdout
    assert json.loads(plan.read_text())["body"]["details"]["finding_id"] == "0123abcd"
    assert seawall("apply", plan, "--confirm").status == 0
