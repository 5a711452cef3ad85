"""`seawall policy` as a user runs it, against a real broker: check, plan, apply, show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rules.policy.keys import KEYS
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.policy.change_log.kafka import TOPIC
from tests.seawall.cli.calling import Called, call

OURS = "policy-verbs"  # every topic of these tests, and of no others


@pytest.fixture
def cluster(broker: LocalCluster) -> Iterator[str]:
    """A bootstrap address, with two topics and no policy applied before or after."""
    at = broker.bootstrap
    for topic, retention_ms in ((f"{OURS}-kept", 86_400_000), (f"{OURS}-short", 3_600_000)):
        if not kafka.leaders(at, topic):
            kafka.create_topic(at, topic, config={"retention.ms": str(retention_ms)})
    if kafka.leaders(at, TOPIC):
        kafka.delete_topic(at, TOPIC)
    yield at
    if kafka.leaders(at, TOPIC):
        kafka.delete_topic(at, TOPIC)


def policy_file(folder: Path, *lines: str) -> str:
    path = folder / "policy.toml"
    path.write_text("\n".join((f'[topics."{OURS}-*"]', 'authorisers = ["alice"]', *lines)) + "\n")
    return str(path)


def apply(file: str, at: str, *more: str, principal: str = "alice") -> Called:
    return call(
        "policy", "apply", file, "--bootstrap", at, "--principal", principal, "--change-id", "OPS-1", *more
    )


def in_force(at: str) -> str:
    return call("policy", "show", "--bootstrap", at).stdout


def test_check_names_the_topics_that_brokers_keep_for_less_long(cluster: str, tmp_path: Path) -> None:
    """A broker that deletes sooner than declared is a finding with both values; the other topic has none."""
    file = policy_file(tmp_path, 'total_retention_ms = "1d"')

    ran = call("policy", "check", file, "--bootstrap", cluster, "--json")

    assert ran.status == 1
    topics = {each["topic"]: each for each in json.loads(ran.stdout)["topics"]}
    assert topics[f"{OURS}-kept"]["findings"] == []
    [finding] = topics[f"{OURS}-short"]["findings"]
    assert finding["kind"] == "shorter"
    assert finding["detail"] == "retention.ms is 1h, 1d is declared"


def test_a_misspelt_key_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    """An invalid file exits 1 without any cluster, and names the nearest key there is."""
    ran = call("policy", "check", policy_file(tmp_path, "teiring = true"))

    assert ran.status == 1
    assert "did you mean `tiering`?" in ran.stdout


def test_a_plan_changes_nothing_until_it_is_confirmed(cluster: str, tmp_path: Path) -> None:
    """Without --confirm there is a plan and no policy; with it, and the plan's id, it is in force."""
    file = policy_file(tmp_path, 'total_retention_ms = "1d"')

    planned = apply(file, cluster)
    assert (planned.status, in_force(cluster)) == (0, "")
    plan_id = planned.stdout.split(":")[0].removeprefix("plan ")

    moved = apply(file, cluster, "--confirm", "--plan", "000000000000")
    assert (moved.status, in_force(cluster)) == (42, "")

    applied = apply(file, cluster, "--confirm", "--plan", plan_id)
    assert applied.status == 0
    assert 'total_retention_ms = "1d"' in in_force(cluster)
    assert "nothing to change" in apply(file, cluster, "--confirm").stdout


def test_what_is_shown_can_be_applied_again(cluster: str, tmp_path: Path) -> None:
    """The policy in force, printed, is a file that changes nothing."""
    apply(policy_file(tmp_path, 'total_retention_ms = "1d"'), cluster, "--confirm")
    again = tmp_path / "again.toml"
    again.write_text(in_force(cluster))

    assert "nothing to change" in apply(str(again), cluster).stdout


def test_only_who_is_named_may_change_it_and_what_weakens_is_loud(cluster: str, tmp_path: Path) -> None:
    """A stranger is refused with exit 42; the shorter retention is said last, in capitals."""
    apply(policy_file(tmp_path, 'total_retention_ms = "1d"'), cluster, "--confirm")
    shorter = policy_file(tmp_path, 'total_retention_ms = "1h"')

    refused = apply(shorter, cluster, "--confirm", principal="mallory")

    assert refused.status == 42
    assert "mallory may not change" in refused.stderr
    assert refused.stdout.splitlines()[-1].startswith("RETENTION SHRINKS for 2 of ")
    assert 'total_retention_ms = "1d"' in in_force(cluster)


def test_a_topics_values_name_their_tables(cluster: str, tmp_path: Path) -> None:
    """`show TOPIC` says of each value where it comes from, also for a topic that does not exist."""
    file = policy_file(tmp_path, 'total_retention_ms = "1d"', f"[topics.{OURS}-x]", "tiering = true")

    ran = call("policy", "show", f"{OURS}-x", "--file", file, "--json")

    values = json.loads(ran.stdout)["values"]
    assert values["tiering"] == {"value": True, "from": [f"{OURS}-x"]}
    assert values["total_retention_ms"] == {"value": 86_400_000, "from": [f"{OURS}-*"]}
    assert values["trim"] == {"value": False, "from": []}


def test_the_page_has_a_row_for_each_key_with_its_default() -> None:
    """docs/POLICY.md lists every key there is, in order, and no other."""
    page = (Path(__file__).parents[3] / "docs" / "POLICY.md").read_text()

    rows = [line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| `")]

    assert rows == [[f"| `{key.name}`", key.spoken(key.default)] for key in KEYS.values()]
