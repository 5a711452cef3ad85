"""`seawall init` as a user runs it on a real broker: what it says and writes, and that it changes nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rules.policy.values import ANYONE
from seawall.init.report import file_names
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from seawall.policy.file import read_file
from seawall.settings import load
from tests.cluster.produce import Writer, texts
from tests.seawall.cli.calling import Called, call
from tests.seawall.init.around import Asked, state

OURS = "init"  # every topic of these tests begins with it
DAY_MS = 86_400_000
DEADLINE_S = 60.0
TOPICS = {
    f"{OURS}-default": {},
    f"{OURS}-long": {"retention.ms": str(30 * DAY_MS), "segment.bytes": str(4 * 1024 * 1024)},
    f"{OURS}-small": {"retention.ms": "-1", "retention.bytes": "123456789"},
    f"{OURS}-hour": {"retention.ms": "3600000", "unclean.leader.election.enable": "true"},
    f"{OURS}-compact": {"cleanup.policy": "compact"},
    f"__{OURS}-canary": {"retention.ms": "7000000"},
}


@pytest.fixture(scope="module")
def cluster(broker: LocalCluster) -> str:
    """A bootstrap address: topics of each sort, one of them with records of two days."""
    at = broker.bootstrap
    for topic, config in TOPICS.items():
        kafka.create_topic(at, topic, partitions=2, config=config)
    now_ms = time.time_ns() // 1_000_000
    writer = Writer(broker, f"{OURS}-long", "init")
    for hour, value in enumerate(texts(48, size_bytes=1000)):
        writer.send(value, timestamp_ms=now_ms - (48 - hour) * 3_600_000 + 60_000)
        writer.flush()
    return at


def init(at: str, out: Path, *more: str) -> Called:
    return call("init", "--bootstrap-servers", at, "--out", str(out), "--observe", "0.2", *more)


def by_topic(ran: Called) -> dict[str, Any]:
    return {each["topic"]: each for each in json.loads(ran.stdout)["topics"]}


def test_it_sees_what_is_there(cluster: str, tmp_path: Path) -> None:
    """Brokers, release, topics with settings, sizes and rates, as the broker has them; and dangers."""
    ran = init(cluster, tmp_path, "--json")

    assert ran.status == 1, ran.stderr  # dangers: one broker, one copy
    found = json.loads(ran.stdout)
    [broker] = found["brokers"]
    assert broker["kafka"] == "4.3"
    assert broker["log_dirs"][0]["replica_bytes"] > 48_000
    assert found["controllers"] == [broker["broker_id"]]
    long = by_topic(ran)[f"{OURS}-long"]
    assert (long["partitions"], long["copies"]) == (2, 1)
    assert long["settings"]["retention_ms"] == {"value": 30 * DAY_MS, "source": "topic"}
    assert long["rate"]["by"] == "day"
    assert long["rate"]["records_per_day"] == pytest.approx(24, abs=1)
    assert long["rate"]["bytes_per_day"] == pytest.approx(24 * 1000, rel=0.15)
    assert long["rate"]["oldest_age_ms"] == pytest.approx(2 * DAY_MS, rel=0.01)
    dangers = {each["kind"]: each["subjects"] for each in found["dangers"]}
    assert f"{OURS}-hour" in dangers["short_retention"]
    assert f"{OURS}-hour" in dangers["unclean_election"]
    assert f"{OURS}-compact" in dangers["one_copy"]
    assert f"{OURS}-long" in {each["topic"] for each in found["estimate"]["topics"]}


def test_policy_check_finds_no_difference(cluster: str, tmp_path: Path) -> None:
    """The policy that was written, held against the same cluster: each topic as declared, none opted in."""
    init(cluster, tmp_path)

    checked = call("policy", "check", str(tmp_path / "policy.toml"), "--bootstrap", cluster, "--json")

    assert checked.status == 0, checked.stdout
    topics = {each["topic"]: each for each in json.loads(checked.stdout)["topics"]}
    assert set(TOPICS) <= set(topics)
    assert all(topics[name]["findings"] == [] for name in TOPICS)
    assert {name for name in TOPICS if not topics[name]["declares_retention"]} == set()
    effective = read_file(tmp_path / "policy.toml").effective(f"{OURS}-small")
    assert (effective.total_retention_bytes, effective.tiering, effective.authorisers) == (
        123456789,
        False,
        (ANYONE,),
    )


def test_nothing_in_the_cluster_is_changed_and_only_reading_is_asked(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Topics, replicas, every setting, offsets and groups are as before; each request sent only reads."""
    before = state(cluster)
    asked = Asked(monkeypatch)
    ran = init(cluster, tmp_path)
    monkeypatch.undo()

    assert ran.status == 1
    assert state(cluster) == before
    assert asked.names(capfd.readouterr().err) == {"ApiVersion", "Metadata", "DescribeConfigs", "ListOffsets"}
    assert asked.keys == {18, 35, 55}  # ApiVersions, DescribeLogDirs, DescribeQuorum


def test_what_is_written_is_what_the_next_commands_take(cluster: str, tmp_path: Path) -> None:
    """All files are there, the settings load, and a second run refuses to write over them."""
    out = tmp_path / "out"
    first = init(cluster, out)

    assert {str(each.relative_to(out)) for each in out.rglob("*") if each.is_file()} == set(file_names())
    found = load(file=out / "seawall.toml", environ={}).settings
    assert found.agent.observe_only
    assert found.kafka.bootstrap == cluster
    for command in ("doctor", "policy check", "agent --observe-only"):
        assert command in first.stdout
    again = init(cluster, out)
    assert (again.status, again.stdout) == (60, "")
    assert "already" in again.stderr
    assert init(cluster, out, "--force").status == 1


def test_a_bucket_is_looked_at_and_left_alone(cluster: str, tmp_path: Path) -> None:
    """A bucket that cannot be reached is said to be so; the files name it all the same."""
    ran = call(
        *("init", "--bootstrap-servers", cluster, "--out", str(tmp_path), "--observe", "0", "--json"),
        *("--bucket", "tides", "--endpoint-url", "http://127.0.0.1:1"),
        environ={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"},
    )

    subjects = {each["subject"]: each["status"] for each in json.loads(ran.stdout)["bucket"]}
    assert subjects["s3 bucket"] == "fail"
    assert "arn:aws:s3:::tides" in (tmp_path / "permissions" / "iam-agent-tier.json").read_text()


def test_with_kafkas_own_tier_local_and_total_retention_are_declared(
    kip405_broker: LocalCluster, tmp_path: Path
) -> None:
    """remote.storage.enable is seen, both limits are written, and `policy check` agrees with them."""
    at = kip405_broker.bootstrap
    config = {
        "remote.storage.enable": "true",
        "retention.ms": str(5 * DAY_MS),
        "local.retention.ms": "60000000",
    }
    kafka.create_topic(at, f"{OURS}-far", config=config)

    ran = init(at, tmp_path, "--json")

    assert by_topic(ran)[f"{OURS}-far"]["settings"]["remote_storage_enable"]["value"] is True
    declared = read_file(tmp_path / "policy.toml").effective(f"{OURS}-far")
    assert (declared.total_retention_ms, declared.local_retention_ms) == (5 * DAY_MS, 60_000_000)
    checked = call("policy", "check", str(tmp_path / "policy.toml"), "--bootstrap", at, "--json")
    assert checked.status == 0, checked.stdout
    not_counted = {each["topic"]: each["why"] for each in json.loads(ran.stdout)["estimate"]["not_counted"]}
    assert not_counted[f"{OURS}-far"] == "Kafka's own tiered storage is on"


@pytest.mark.parametrize("price", ["s3=1", "s3_gb_month", "s3_gb_month=dear", "s3_gb_month=-1"])
def test_a_price_that_is_none_is_a_wrong_command_line(price: str, tmp_path: Path) -> None:
    """It is told before anything is looked at."""
    ran = call("init", "--bootstrap-servers", "127.0.0.1:1", "--out", str(tmp_path), "--price", price)

    assert ran.status == 2
    assert "s3_gb_month" in ran.stderr


def test_without_a_cluster_to_ask_it_says_what_to_set(tmp_path: Path) -> None:
    """No address at all: an error of the settings, and no files."""
    ran = call("init", "--out", str(tmp_path / "out"))

    assert ran.status == 11
    assert "kafka.bootstrap" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_of_three_brokers_each_tells_its_own_replicas(cluster3: LocalCluster, tmp_path: Path) -> None:
    """Three copies are three times one; brokers and controller are told apart; none of them is a danger."""
    at, topic = cluster3.bootstrap, f"{OURS}-thrice"
    kafka.create_topic(at, topic, partitions=3, replication=3, config={"min.insync.replicas": "2"})
    writer = Writer(cluster3, topic, "init")
    for partition in range(3):
        writer.send_all(texts(100, size_bytes=1000), partition=partition)
    wait_until(
        lambda: all(kafka.in_sync(at, topic, each) == frozenset(cluster3.nodes) for each in range(3)),
        name=topic,
        wanted="all replicas in sync",
        deadline_s=DEADLINE_S,
    )

    ran = init(at, tmp_path, "--json")

    found = json.loads(ran.stdout)
    assert [each["broker_id"] for each in found["brokers"]] == [1, 2, 3]
    assert found["controllers"] == [cluster3.controller.node_id]
    thrice = by_topic(ran)[topic]
    one_copy = thrice["rate"]["bytes_in_one_copy"]
    assert one_copy > 300_000
    assert thrice["bytes_in_all_copies"] == 3 * one_copy
    dangers = {each["kind"]: each["subjects"] for each in found["dangers"]}
    assert all(topic not in subjects for subjects in dangers.values())
    checked = call("policy", "check", str(tmp_path / "policy.toml"), "--bootstrap", at, "--json")
    [compared] = [each for each in json.loads(checked.stdout)["topics"] if each["topic"] == topic]
    assert (compared["findings"], compared["unknown"]) == ([], None)
