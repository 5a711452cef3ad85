"""`seawall tier plan-removals` beside a real broker whose topic an agent has tiered: nothing is done."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seawall.cli.exit_codes import CLEAN, INDETERMINATE
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.kafka import leaders as leaders_of
from seawall.local.kafka import produce
from seawall.local.waiting import wait_until
from tests.cluster.produce import Writer, create_topic
from tests.faults.agents import agent_beside, agents_beside
from tests.faults.clean import assert_clean
from tests.faults.test_whole_system import replayed, settings_of
from tests.seawall.cli.calling import Called, call
from tiering.cluster.interface import TopicPartition
from tiering.cluster.kafka import KafkaCluster
from tiering.segments.coverage import Coverage, coverage

DEADLINE_S = 60.0
LONG_DEADLINE_S = 180.0
PARTITIONS = 3
POLICY = """
[topics."*"]
tiering = true
trim = true
remote_deletion = true
total_retention_ms = 1
"""


def frontiers(cluster: LocalCluster, topic: str) -> dict[int, int]:
    """By partition."""
    table = replayed(cluster)
    views = [view for log in table.logs() if (view := table.view(log)) is not None]
    mine = [view for view in views if view.record is not None and view.record.topic == topic]
    found = {view.log.partition: coverage(view) for view in mine}
    return {number: each.frontier.offset for number, each in found.items() if isinstance(each, Coverage)}


def frontier(broker: LocalCluster, topic: str) -> int:
    return frontiers(broker, topic).get(0, 0)


def test_it_says_what_would_go_and_does_none_of_it(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """By a policy that nobody applied all of the tier expires, and the disks are trimmed; the plan is
    the same again, since nothing has changed; and by what is in force, nothing goes."""
    topic = f"plan-{uuid.uuid4().hex[:8]}"
    create_topic(broker, topic, segment_bytes=64 * 1024)
    produce(broker.bootstrap, topic, (b"%06d" % number * 100 for number in range(400)))
    settings = settings_of(broker, bucket.address.endpoint_url, bucket.name, topic, topic)
    with agent_beside(broker, tmp_path, settings, bucket.address) as agent:
        wait_until(
            lambda: frontier(broker, topic) > 300,
            name="the agent",
            wanted="the closed segments to be copied",
            deadline_s=DEADLINE_S,
        )
        assert agent.process.stop(grace_s=30.0)
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)

    def planned(*more: str) -> Called:
        environ = {"SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap, "COLUMNS": "200"}
        dirs = [argument for each in broker.log_dirs() for argument in ("--log-dir", str(each))]
        return call("tier", "plan-removals", topic, *dirs, *more, environ=environ)

    told = planned("--policy", str(policy), "--json")
    shown = planned("--policy", str(policy))
    again = planned("--policy", str(policy), "--json")
    in_force = planned("--json")

    end = frontier(broker, topic)
    assert [each.status for each in (told, shown, again, in_force)] == [0] * 4, told.stderr
    plans = {each["what"]: each for each in json.loads(told.stdout)["plans"]}
    assert [(plans[what]["act"], plans[what]["from"], plans[what]["to"]) for what in ("expiry", "trim")] == [
        ("move_start", 0, end),
        ("trim", 0, end),
    ]
    assert plans["expiry"]["segments"] == plans["trim"]["segments"]
    assert f"every replica's start moves from 0 to {end}" in shown.stdout
    assert again.stdout == told.stdout
    assert {each["act"] for each in json.loads(in_force.stdout)["plans"]} <= {"keep"}
    asked = KafkaCluster({"bootstrap.servers": broker.bootstrap}, monotonic_s=time.monotonic)
    [offsets] = asked.leader_offsets([TopicPartition(topic, 0)]).values()
    assert getattr(offsets, "log_start", None) == 0
    assert_clean(broker, bucket, topic, prefix=topic)


@pytest.mark.long
def test_beside_three_brokers_each_plans_for_what_it_leads_and_waits_for_the_others_word(
    cluster3: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """Three replicas, three agents: each log's trim is planned beside its leader alone, up to the frontier,
    once every replica's agent has said the same of its table; where one is silent, the plan keeps all and
    names it. Nothing is done by any of the plans."""
    topic = f"plan-{uuid.uuid4().hex[:8]}"
    create_topic(cluster3, topic, partitions=PARTITIONS, replication=3, segment_bytes=64 * 1024)
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    writer = Writer(cluster3, topic, "plan")

    def fill() -> None:
        for partition in range(PARTITIONS):
            writer.send_all((b"%06d" % number * 100 for number in range(400)), partition=partition)

    def plans(node_id: int) -> dict[int, dict[str, Any]]:
        """Of each log of the topic, what the agent beside a broker would trim."""
        environ = {"SEAWALL_KAFKA__BOOTSTRAP": cluster3.bootstrap}
        dirs = [argument for each in cluster3.log_dirs(node_id) for argument in ("--log-dir", str(each))]
        told = call(
            *("tier", "plan-removals", topic, *dirs, "--policy", str(policy), "--json"), environ=environ
        )
        assert told.status in (CLEAN, INDETERMINATE), told.stderr
        return {
            each["partition"]: each for each in json.loads(told.stdout)["plans"] if each["what"] == "trim"
        }

    def all_plans() -> dict[int, dict[int, dict[str, Any]]]:
        return {node_id: plans(node_id) for node_id in cluster3.nodes}

    def acts(found: dict[int, dict[int, dict[str, Any]]]) -> dict[int, tuple[str, int | None]]:
        return {number: (each["act"], each["to"]) for of in found.values() for number, each in of.items()}

    def wait(condition: Callable[[], bool], wanted: str) -> None:
        wait_until(condition, name="the agents", wanted=wanted, deadline_s=LONG_DEADLINE_S)

    settings = settings_of(cluster3, bucket.address.endpoint_url, bucket.name, topic, topic)
    with agents_beside(cluster3, tmp_path, settings, bucket.address) as agents:
        fill()
        wait(
            lambda: (
                len(ends := frontiers(cluster3, topic)) == PARTITIONS
                and min(ends.values()) >= 200
                and acts(all_plans()) == {number: ("trim", end) for number, end in ends.items()}
            ),
            "a plan to trim each log up to its frontier",
        )
        leaders = leaders_of(cluster3.bootstrap, topic)
        assert {node_id: set(of) for node_id, of in all_plans().items()} == {
            node_id: {number for number, leader in leaders.items() if leader == node_id}
            for node_id in cluster3.nodes
        }

        before = frontiers(cluster3, topic)
        silent = leaders[0] % len(cluster3.nodes) + 1
        agents[silent].kill()
        fill()
        led = [number for number, leader in leaders.items() if leader != silent]
        wait(
            lambda: all(frontiers(cluster3, topic)[number] > before[number] for number in led),
            "more to be copied by the others",
        )
        waiting = f"brokers [{silent}] have not said theirs"

        def kept() -> list[bool]:
            found = {number: each for of in all_plans().values() for number, each in of.items()}
            return [
                (found[number]["act"], found[number]["reason"]) == ("keep", "digest_missing")
                and waiting in found[number]["detail"]
                for number in led
            ]

        wait(lambda: all(kept()), f"plans that keep all, as {waiting}")
        assert leaders_of(cluster3.bootstrap, topic) == leaders

    asked = KafkaCluster({"bootstrap.servers": cluster3.bootstrap}, monotonic_s=time.monotonic)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    starts = [getattr(each, "log_start", None) for each in asked.leader_offsets(partitions).values()]
    assert starts == [0] * PARTITIONS
    assert_clean(cluster3, bucket, topic, prefix=topic)
