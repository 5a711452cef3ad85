"""`seawall agent` beside a real broker and a bucket: what it refuses, and a life from start to SIGTERM."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.agent.lock import locked
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.kafka import delete_topic, produce
from seawall.local.s3 import S3Address, segment_store
from seawall.local.waiting import wait_until
from tests.cluster.produce import create_topic
from tests.cluster.versitygw import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, VersityGateway
from tests.faults.agents import Agent, agent_beside
from tests.faults.scrub import scrub, tiered_records
from tests.faults.test_whole_system import direct_store, replayed, settings_of
from tests.seawall.cli.calling import Called, call
from tiering.cluster.interface import BrokerIdentity
from tiering.segments.coverage import Coverage, coverage
from tiering.segments.table import ReferenceTable
from tiering.store.keys import KeyLayout

DEADLINE_S = 60.0
SEGMENT_BYTES = 64 * 1024


def _call(broker: LocalCluster, bucket: LocalBucket, *more: str, log_dir: Path | None = None) -> Called:
    at = bucket.address
    log_dirs = [log_dir] if log_dir is not None else list(broker.log_dirs())
    arguments = ["--bootstrap", broker.bootstrap, "--bucket", bucket.name, "--region", at.region]
    arguments += ["--endpoint-url", at.endpoint_url, "--listen", "127.0.0.1:0"]
    for each in log_dirs:
        arguments += ["--log-dir", str(each)]
    environ = {"AWS_ACCESS_KEY_ID": at.access_key_id, "AWS_SECRET_ACCESS_KEY": at.secret_access_key}
    return call("agent", *arguments, *more, environ=environ)


def test_second_agent_of_a_broker_is_refused(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """The folder of the broker's state is locked: the other agent is named, and nothing else happens."""
    with locked(tmp_path, BrokerIdentity(cluster_id=broker.cluster_id, broker_id=1)):
        refused = _call(broker, bucket, "--state-dir", str(tmp_path))

    assert refused.status == 45
    assert "another agent works in" in refused.stderr


def test_log_dirs_of_another_cluster_are_refused(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """Offsets of one cluster mean nothing in another: a wrong bootstrap address copies nothing."""
    foreign = tmp_path / "logs"
    foreign.mkdir()
    (foreign / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=1\n")

    refused = _call(broker, bucket, "--state-dir", str(tmp_path / "state"), log_dir=foreign)

    assert refused.status == 45
    assert "belong to cluster another" in refused.stderr


def test_bucket_without_versions_is_refused(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """Where a delete is for good there is no promise to make."""
    name = f"plain-{uuid.uuid4().hex[:8]}"
    bucket.client().create_bucket(Bucket=name)

    refused = _call(broker, bucket, "--state-dir", str(tmp_path), "--bucket", name)

    assert refused.status == 45
    assert f"the bucket {name} keeps no versions" in refused.stderr


def test_without_log_dirs_it_says_what_to_set(broker: LocalCluster) -> None:
    """No log dir is guessed."""
    refused = call("agent", "--bootstrap", broker.bootstrap, "--bucket", "any")

    assert refused.status == 45
    assert "agent.log_dirs" in refused.stderr


@pytest.fixture
def topic(broker: LocalCluster) -> str:
    """A topic of this test alone, in small segments."""
    name = f"agent-{uuid.uuid4().hex[:8]}"
    create_topic(broker, name, partitions=1, segment_bytes=SEGMENT_BYTES)
    return name


@pytest.fixture
def agent(broker: LocalCluster, bucket: LocalBucket, topic: str, tmp_path: Path) -> Iterator[Agent]:
    """An agent beside the broker that copies the topic."""
    settings = settings_of(broker, bucket.address.endpoint_url, bucket.name, topic, topic)
    settings += "watch_every_s = 1\n"
    with agent_beside(broker, tmp_path, settings, bucket.address) as made:
        yield made


def test_it_works_over_another_s3_server(
    broker: LocalCluster, versitygw: VersityGateway, topic: str, tmp_path: Path
) -> None:
    """The same over versitygw: copied, clean, and every record reads back with its value, once."""
    at = S3Address(
        endpoint_url=versitygw.endpoint_url,
        bucket=versitygw.new_bucket(),
        region=REGION,
        access_key_id=ACCESS_KEY_ID,
        secret_access_key=SECRET_ACCESS_KEY,
    )
    settings = settings_of(broker, at.endpoint_url, at.bucket, topic, topic)
    _fill(broker, topic, 400)
    with agent_beside(broker, tmp_path, settings, at) as agent:
        wait_until(
            lambda: any(offset > 300 for offset in _covered(replayed(broker), topic).values()),
            name="the agent",
            wanted="the closed segments to be copied",
            deadline_s=DEADLINE_S,
        )
        assert agent.process.stop(grace_s=30.0)

    table, store = replayed(broker), segment_store(at)
    [log] = [log for log in table.logs() if log.topic_id in _covered(table, topic)]
    values = [record.value for record in tiered_records(table, store, log)]
    assert values == [_value(number) for number in range(len(values))]
    assert len(values) > 300
    found = scrub(table, store, KeyLayout(topic), topic_id=log.topic_id)
    assert found.is_clean, found


def _value(number: int) -> bytes:
    return f"{number:06d}".encode() * 100


def _fill(broker: LocalCluster, topic: str, count: int) -> None:
    produce(broker.bootstrap, topic, map(_value, range(count)))


def _covered(table: ReferenceTable, topic: str) -> dict[str, int]:
    """The frontier of each log that ever had this name, by topic id."""
    found: dict[str, int] = {}
    for log in table.logs():
        view = table.view(log)
        if view is not None and view.record is not None and view.record.topic == topic:
            seen = coverage(view)
            assert isinstance(seen, Coverage), seen
            found[log.topic_id] = seen.frontier.offset
    return found


def test_agents_life(broker: LocalCluster, bucket: LocalBucket, topic: str, agent: Agent) -> None:
    """It copies what closes, outlasts an outage of the bucket, ends on SIGTERM with 0, goes on where it was;
    a topic made anew under the old name is another log; and the bucket holds exactly that."""
    _fill(broker, topic, 400)
    wait_until(
        lambda: any(offset > 300 for offset in _covered(replayed(broker), topic).values()),
        name="the agent",
        wanted="the closed segments to be copied",
        deadline_s=DEADLINE_S,
    )
    before = _covered(replayed(broker), topic)
    wait_until(
        lambda: f'reaches_frontier_seconds{{partition="0",topic="{topic}"'.encode() in agent.page("metrics"),
        name="the agent",
        wanted="a word on how near local retention is",
        deadline_s=DEADLINE_S,
    )
    with bucket.outage():
        _fill(broker, topic, 400)
        wait_until(
            lambda: b"store_retries_total{error" in agent.page("metrics"),
            name="the agent",
            wanted="a retry of a request to the store",
            deadline_s=DEADLINE_S,
        )
        assert agent.is_ready, "an outage of the bucket is no reason to restart the agent"
    assert agent.process.stop(grace_s=30.0), "it ended by itself"
    assert agent.process.wait_until_ended(deadline_s=1.0) == 0
    delete_topic(broker.bootstrap, topic)
    create_topic(broker, topic, partitions=1, segment_bytes=SEGMENT_BYTES)
    _fill(broker, topic, 400)
    agent.start()
    agent.wait_until_ready()
    wait_until(
        lambda: (
            len(_covered(replayed(broker), topic)) == 2
            and all(offset > 300 for offset in _covered(replayed(broker), topic).values())
        ),
        name="the agent",
        wanted="the new topic's closed segments to be copied",
        deadline_s=DEADLINE_S,
    )
    assert agent.process.stop(grace_s=30.0)

    table = replayed(broker)
    after = _covered(table, topic)
    assert set(before) < set(after)
    for topic_id in after:
        found = scrub(table, direct_store(bucket), KeyLayout(topic), topic_id=topic_id)
        assert found.is_clean, found
