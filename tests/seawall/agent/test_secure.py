"""An agent whose cluster is reached by TLS and SCRAM-SHA-512 or OAUTHBEARER, its certificate checked."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rules.events import CopyFinished
from rules.identity import LogId
from seawall.local.bucket import LocalBucket
from seawall.local.kafka import produce
from seawall.local.waiting import wait_until
from tests.cluster.produce import METADATA_PARTITIONS, create_topic
from tests.cluster.secure import USER, SecureBroker, as_settings
from tests.faults.agents import Agent, agent_beside
from tests.faults.scrub import scrub, tiered_to
from tests.faults.test_whole_system import direct_store, replayed
from tests.seawall.agent.told import told
from tiering.cluster.errors import ClusterUnreachable
from tiering.segments.table import ReferenceTable
from tiering.store.keys import KeyLayout

DEADLINE_S = 60.0
SEGMENT_BYTES = 64 * 1024
WRONG = "low-water-secret"


def settings_of(kafka: str, bucket: LocalBucket, topic: str) -> str:
    at = bucket.address
    return f"""
{kafka}

[s3]
bucket = "{bucket.name}"
prefix = "{topic}"
endpoint_url = "{at.endpoint_url}"
region = "{at.region}"

[agent]
topics = ["{topic}"]
rescan_s = 1
metadata_partitions = {METADATA_PARTITIONS}
"""


@pytest.fixture(scope="module")
def refused(
    secure_broker: SecureBroker, bucket: LocalBucket, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Agent]]:
    """Agents with something wrong, by its name; begun early, as they do not give up at once."""
    wrong = {
        "certificate": secure_broker.kafka_settings(ca=secure_broker.stranger),
        "password": secure_broker.kafka_settings(replace(USER, password="ebb")),
        "token": as_settings(secure_broker.by_token(secret=WRONG)),
    }
    folder = tmp_path_factory.mktemp("refused")
    agents = {
        name: Agent(folder / name, secure_broker, 1, settings_of(kafka, bucket, "refused"), bucket.address)
        for name, kafka in wrong.items()
    }
    for agent in agents.values():
        agent.start()
    yield agents
    for agent in agents.values():
        agent.kill()
        agent.release()


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("sign_in", ["scram", "token"])
def test_it_copies_and_tells_over_tls(
    sign_in: str, secure_broker: SecureBroker, bucket: LocalBucket, tmp_path: Path
) -> None:
    """By the safe listener alone, the certificate verified, signed in by SCRAM or OAUTHBEARER: segments are
    copied, the bucket is clean, and the acts are in the topic of events."""
    topic = f"secure-{uuid.uuid4().hex[:8]}"
    create_topic(secure_broker, topic, partitions=1, segment_bytes=SEGMENT_BYTES)
    produce(secure_broker.bootstrap, topic, (b"%06d" % number * 100 for number in range(400)))
    began_ms = time.time_ns() // 1_000_000
    client = secure_broker.client() if sign_in == "scram" else secure_broker.by_token()
    settings = settings_of(as_settings(client), bucket, topic)

    with agent_beside(secure_broker, tmp_path, settings, bucket.address) as agent:
        wait_until(
            lambda: frontier(secure_broker, topic) > 300,
            name="the agent",
            wanted="the closed segments to be copied",
            deadline_s=DEADLINE_S,
        )
        assert agent.process.stop(grace_s=30.0), "it ended by itself"

    table = replayed(secure_broker)
    [topic_id] = {log.topic_id for log in logs_of(table, topic)}
    found = scrub(table, direct_store(bucket), KeyLayout(topic), topic_id=topic_id)
    assert found.is_clean, found
    assert told(secure_broker, since_ms=began_ms).of(CopyFinished, topic)


def frontier(cluster: SecureBroker, topic: str) -> int:
    table = replayed(cluster)
    return max((tiered_to(table, log) for log in logs_of(table, topic)), default=0)


def logs_of(table: ReferenceTable, topic: str) -> list[LogId]:
    views = {log: table.view(log) for log in table.logs()}
    return [log for log, view in views.items() if view and view.record and view.record.topic == topic]


def test_who_cannot_come_in_says_why_and_ends(refused: Mapping[str, Agent]) -> None:
    """A broker that another authority vouches for is not believed; a wrong password, and a client's secret
    that gets no token, are told as such."""
    ended = {name: agent.process.wait_until_ended(deadline_s=DEADLINE_S) for name, agent in refused.items()}

    said = {name: agent.process.log.read_text() for name, agent in refused.items()}
    assert ended == dict.fromkeys(refused, ClusterUnreachable.exit_code)
    assert "certificate verify failed" in said["certificate"]
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in said["password"]
    assert "HTTP 401" in said["token"] or "invalid_client" in said["token"]
    assert not any(WRONG in each for each in said.values())
    assert not any("Traceback" in each for each in said.values())
