"""What an agent removes when the policy asks for it, and only then: on disk and in the bucket, end to end."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from seawall.policy.change_log.kafka import TOPIC as POLICY_TOPIC
from tests.cluster.produce import create_topic
from tests.faults.agents import Agent, agent_beside
from tests.faults.scrub import scrub
from tests.faults.test_whole_system import direct_store, replayed, settings_of
from tests.seawall.cli.calling import call
from tiering.segments.records import LogRecord
from tiering.store.keys import KeyLayout

COUNT = 1200
VALUE_BYTES = 1000
SEGMENT_BYTES = 64 * 1024
LOCAL_BYTES = 4 * SEGMENT_BYTES
TOTAL_BYTES = 10 * SEGMENT_BYTES
DEADLINE_S = 45.0


@pytest.fixture
def topic(broker: LocalCluster) -> Iterator[str]:
    """A topic of this test alone; no policy before or after."""
    if kafka.leaders(broker.bootstrap, POLICY_TOPIC):
        kafka.delete_topic(broker.bootstrap, POLICY_TOPIC)
    name = f"removing-{uuid.uuid4().hex[:8]}"
    create_topic(broker, name, segment_bytes=SEGMENT_BYTES)
    yield name
    if kafka.leaders(broker.bootstrap, POLICY_TOPIC):
        kafka.delete_topic(broker.bootstrap, POLICY_TOPIC)


@pytest.fixture
def agent(broker: LocalCluster, bucket: LocalBucket, topic: str, tmp_path: Path) -> Iterator[Agent]:
    """An agent that removes as often as it can."""
    settings = settings_of(broker, bucket.address.endpoint_url, bucket.name, topic, topic)
    with agent_beside(broker, tmp_path, f"{settings}remove_every_s = 1\n", bucket.address) as made:
        yield made


def _declare(broker: LocalCluster, topic: str, folder: Path, *lines: str) -> None:
    file = folder / "policy.toml"
    file.write_text("\n".join(["version = 1", f'[topics."{topic}"]', "tiering = true", *lines, ""]))
    applied = call(
        *("policy", "apply", str(file), "--principal", "alice", "--change-id", "T-1", "--confirm"),
        *("--bootstrap", broker.bootstrap),
    )
    assert applied.status == 0, applied.stderr


def _first_local(broker: LocalCluster, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        return int(low)
    finally:
        consumer.close()


def _record(broker: LocalCluster, topic: str) -> LogRecord | None:
    table = replayed(broker)
    for log in table.logs():
        view = table.view(log)
        if view is not None and view.record is not None and view.record.topic == topic:
            return view.record
    return None


def _tier_start(broker: LocalCluster, topic: str) -> int:
    record = _record(broker, topic)
    return -1 if record is None else record.log_start


def test_only_what_the_policy_lets_go_goes_and_the_rest_reads_back(
    broker: LocalCluster, bucket: LocalBucket, topic: str, agent: Agent, tmp_path: Path
) -> None:
    """Copied and kept while nothing is declared to go; then the brokers' disks are trimmed to the local
    retention and the bucket to the total one, by markers; every offset from the tier's start on reads back
    with its own value; every version ever written is still in the bucket."""
    kafka.produce(
        broker.bootstrap,
        topic,
        [f"{number:06d}".encode().ljust(VALUE_BYTES, b".") for number in range(COUNT)],
    )
    up_to_date = re.compile(rb'state="up_to_date",topic="%s",topic_id="[^"]+"} 1' % topic.encode())
    wait_until(
        lambda: up_to_date.search(agent.page("metrics")) is not None,
        name="the agent",
        wanted="it to know the topic",
        deadline_s=DEADLINE_S,
    )
    wait_until(
        lambda: _record(broker, topic) is not None and agent.is_ready,
        name="the agent",
        wanted="the log to be claimed",
        deadline_s=DEADLINE_S,
    )
    before = _first_local(broker, topic), _tier_start(broker, topic)
    _declare(
        *(broker, topic, tmp_path),
        f"local_retention_bytes = {LOCAL_BYTES}",
        f"total_retention_bytes = {TOTAL_BYTES}",
        "trim = true",
        "remote_deletion = true",
        "delete_grace_ms = 1",
    )
    wait_until(
        lambda: _first_local(broker, topic) > 0 and _tier_start(broker, topic) > 0,
        name="the agent",
        wanted="disk and bucket to be trimmed",
        deadline_s=DEADLINE_S,
    )
    first_local, tier_start = _first_local(broker, topic), _tier_start(broker, topic)

    assert before == (0, 0)
    assert tier_start < first_local < COUNT, "what is gone from disk is in the bucket"
    read = call(
        *("read", f"{topic}:0", "--json", "--bootstrap", broker.bootstrap, "--bucket", bucket.name),
        *("--endpoint-url", bucket.address.endpoint_url, "--region", "us-east-1"),
        environ={
            "AWS_ACCESS_KEY_ID": bucket.address.access_key_id,
            "AWS_SECRET_ACCESS_KEY": bucket.address.secret_access_key,
        },
    )
    assert read.status == 0, read.stderr
    records = [json.loads(line) for line in read.stdout.splitlines()]
    assert [each["offset"] for each in records] == list(
        range(records[0]["offset"], records[-1]["offset"] + 1)
    )
    assert records[0]["offset"] >= tier_start
    assert records[-1]["offset"] + 1 > first_local
    assert all(each["value"].startswith(f"{each['offset']:06d}.") for each in records)
    assert agent.process.stop(grace_s=30.0)
    versions = {
        each.key
        for each in direct_store(bucket).versions_page(topic, None).entries
        if not each.is_delete_marker
    }
    assert any(f"/{0:020d}-" in key for key in versions), "what expired is still there under its marker"
    record = _record(broker, topic)
    assert record is not None
    found = scrub(replayed(broker), direct_store(bucket), KeyLayout(topic), topic_id=record.log.topic_id)
    assert found.is_clean, found
