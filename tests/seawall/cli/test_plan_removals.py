"""`seawall tier plan-removals` beside a real broker whose topic an agent has tiered: nothing is done."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.kafka import produce
from seawall.local.waiting import wait_until
from tests.cluster.produce import create_topic
from tests.faults.agents import agent_beside
from tests.faults.clean import assert_clean
from tests.faults.test_whole_system import replayed, settings_of
from tests.seawall.cli.calling import Called, call
from tiering.cluster.interface import TopicPartition
from tiering.cluster.kafka import KafkaCluster
from tiering.segments.coverage import Coverage, coverage

DEADLINE_S = 60.0
POLICY = """
[topics."*"]
tiering = true
trim = true
remote_deletion = true
total_retention_ms = 1
"""


def frontier(broker: LocalCluster, topic: str) -> int:
    table = replayed(broker)
    views = [view for log in table.logs() if (view := table.view(log)) is not None]
    found = [coverage(view) for view in views if view.record is not None and view.record.topic == topic]
    return max((each.frontier.offset for each in found if isinstance(each, Coverage)), default=0)


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
