"""A hold that a finding places, on three real brokers with their agents at work: trim and expiry stop."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from rules.events import TrimCertified
from rules.identity import LogId
from seawall.holds.of_run import place_for
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.process import stop_all
from seawall.local.waiting import wait_until
from seawall.policy.change_log.kafka import TOPIC as POLICY_TOPIC
from tests.cluster.produce import create_topic
from tests.faults.agents import STOP_GRACE_S, Agent, agents_beside
from tests.faults.clean import assert_clean
from tests.faults.scrub import tiered_to
from tests.faults.test_whole_system import direct_store, replayed
from tests.faults.test_whole_system import settings_of as agent_settings
from tests.seawall.agent.told import told
from tests.seawall.cli.calling import call
from tests.seawall.holds.cases import environ_of, finding, first_local, record_of, settings_of
from tiering.segments.records import LogRecord, SegmentState

SEGMENT_BYTES = 64 * 1024
DEADLINE_S = 90.0
WITHIN_MS = 5_000
COUNT = 1_200


@pytest.fixture
def topic(cluster3: LocalCluster) -> Iterator[str]:
    """A topic of this test alone; no policy before or after."""
    name = f"held-{uuid.uuid4().hex[:8]}"
    _forget_policy(cluster3)
    create_topic(cluster3, name, replication=3, segment_bytes=SEGMENT_BYTES)
    yield name
    _forget_policy(cluster3)


@pytest.fixture
def agents(
    cluster3: LocalCluster, bucket: LocalBucket, topic: str, tmp_path: Path
) -> Iterator[Mapping[int, Agent]]:
    """Agents that remove as often as they can."""
    settings = agent_settings(cluster3, bucket.address.endpoint_url, bucket.name, topic, topic)
    with agents_beside(cluster3, tmp_path, f"{settings}remove_every_s = 1\n", bucket.address) as made:
        yield made


@pytest.mark.long
def test_a_finding_stops_trim_and_deletes_until_it_is_released(
    cluster3: LocalCluster,
    bucket: LocalBucket,
    topic: str,
    agents: Mapping[int, Agent],
    tmp_path: Path,
) -> None:
    """Disks are trimmed and the tier expires; from the hold's record on nothing of the log is deleted, and
    within seconds nothing is trimmed, though more and more is past its retention; agents and brokers that are
    killed and come back keep to it; object versions are held; released, all goes on."""
    environ = environ_of(cluster3, bucket, topic, str(tmp_path))
    _fill(cluster3, topic)
    _declare(cluster3, topic, tmp_path)
    _wait("disk and tier to be cut", lambda: min(_starts(cluster3, topic)) > 0)
    record = record_of(cluster3, topic)
    assert record is not None

    said: list[str] = []
    with pytest.MonkeyPatch.context() as around:
        for name, value in environ.items():
            around.setenv(name, value)
        found = finding(record.log, ranges=[[0, record.log_start]])
        assert place_for(settings_of(cluster3, bucket, topic), [found], said.append), said

    held = record_of(cluster3, topic)
    assert held is not None
    [hold] = held.holds
    assert hold.finding_id == found["finding_id"]
    assert any(topic in line and "NOT Kafka's own retention" in line for line in said)
    since_offset = _record_offset(cluster3, topic)
    for filled in (2, 3):
        _fill(cluster3, topic)
        copied = partial(_is_copied, cluster3, record.log, filled * COUNT - COUNT // 2)
        _wait("more in the tier than may stay there", copied)
        _wait("the hold to be kept to", lambda: _kept(agents) > 0)
        for agent in agents.values():
            agent.kill()
        cluster3.kill(2)
        cluster3.restart(2, deadline_s=DEADLINE_S * 2)
        for agent in agents.values():
            agent.start()
        for agent in agents.values():
            agent.wait_until_ready()
    _wait("the hold to be kept to again", lambda: _kept(agents) > 0)  # counts began anew with the agents

    assert _deleted_behind(cluster3, topic, since_offset) == []
    certified = [
        each.occurred_at_ms
        for broker_id in agents
        for each in told(cluster3, since_ms=0, broker_id=broker_id).of(TrimCertified, topic)
    ]
    assert certified, "it was trimmed before"
    assert max(certified) <= hold.placed_at_ms + WITHIN_MS
    listed = call("hold", "list", topic, environ=environ)
    assert listed.status == 0, listed.stderr
    assert hold.hold_id in listed.stdout
    now = record_of(cluster3, topic)
    assert now is not None
    versions = now.holds[0].versions
    assert versions is not None
    assert versions.held > 0
    assert versions.trouble is None
    first = _versions_below(cluster3, topic, record.log_start)
    store = direct_store(bucket)
    assert first
    assert all(store.is_held(key, version_id) for key, version_id in first)

    stood = _starts(cluster3, topic)
    shown = call("hold", "release", hold.hold_id, "--reason", "restored", environ=environ)
    assert (shown.status, _starts(cluster3, topic)) == (0, stood), "without --confirm nothing is released"
    released = call("hold", "release", hold.hold_id, "--reason", "restored", "--confirm", environ=environ)
    assert released.status == 0, released.stderr
    assert not any(store.is_held(key, version_id) for key, version_id in first)
    _wait("disk and tier to be cut again", lambda: all(map(int.__gt__, _starts(cluster3, topic), stood)))
    with pytest.MonkeyPatch.context() as around:
        for name, value in environ.items():
            around.setenv(name, value)
        assert place_for(settings_of(cluster3, bucket, topic), [found], said.append)
    after = record_of(cluster3, topic)
    assert after is not None
    assert after.holds == (), "what somebody released is not placed again by the same finding"
    stop_all([agent.process for agent in agents.values()], grace_s=STOP_GRACE_S)
    assert_clean(cluster3, bucket, topic, prefix=topic)


def _fill(cluster: LocalCluster, topic: str) -> None:
    values = (f"{number:06d}".encode().ljust(1000, b".") for number in range(COUNT))
    kafka.produce(cluster.bootstrap, topic, values)


def _declare(cluster: LocalCluster, topic: str, folder: Path) -> None:
    lines = [
        "version = 1",
        f'[topics."{topic}"]',
        "tiering = true",
        "trim = true",
        "remote_deletion = true",
        f"local_retention_bytes = {4 * SEGMENT_BYTES}",
        f"total_retention_bytes = {10 * SEGMENT_BYTES}",
        "delete_grace_ms = 1",
        "blast_limit_segments_per_hour = 100000",
    ]
    file = folder / "policy.toml"
    file.write_text("\n".join([*lines, ""]))
    said = ("--principal", "alice", "--change-id", "T-1", "--confirm")
    applied = call("policy", "apply", str(file), *said, "--bootstrap", cluster.bootstrap)
    assert applied.status == 0, applied.stderr


def _forget_policy(cluster: LocalCluster) -> None:
    if kafka.leaders(cluster.bootstrap, POLICY_TOPIC):
        kafka.delete_topic(cluster.bootstrap, POLICY_TOPIC)


def _wait(wanted: str, is_so: Callable[[], bool]) -> None:
    wait_until(is_so, name="the agents", wanted=wanted, deadline_s=DEADLINE_S)


def _starts(cluster: LocalCluster, topic: str) -> tuple[int, int]:
    """Of the brokers' disks, and of the tier."""
    record = record_of(cluster, topic)
    return first_local(cluster, topic), -1 if record is None else record.log_start


def _kept(agents: Mapping[int, Agent]) -> int:
    """How often an agent came to keep a log since it is held."""
    found = 0
    for agent in agents.values():
        for line in agent.page("metrics").decode().splitlines():
            if line.startswith("seawall_removals_kept_total") and 'reason="held"' in line:
                found += int(float(line.rpartition(" ")[2]))
    return found


def _is_copied(cluster: LocalCluster, log: LogId, offset: int) -> bool:
    return tiered_to(replayed(cluster), log) >= offset


def _record_offset(cluster: LocalCluster, topic: str) -> int:
    record = record_of(cluster, topic)
    assert record is not None
    view = replayed(cluster).view(record.log)
    assert view is not None
    assert view.record_offset is not None
    return view.record_offset


def _deleted_behind(cluster: LocalCluster, topic: str, offset: int) -> list[str]:
    """Segments whose deletion was begun behind an offset of the metadata topic; not what an agent that was
    killed left half-copied, which never counted and is cleaned up (cause failed_copy)."""
    record = record_of(cluster, topic)
    assert isinstance(record, LogRecord)
    table = replayed(cluster)
    view, partition = table.view(record.log), table.of(record.log)
    assert view is not None
    assert partition is not None
    gone = (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED)
    behind = [each for each in view.segments() if each.state in gone and each.metadata_offset > offset]
    found = {each.segment_id: partition.segment(record.log, each.segment_id) for each in behind}
    return [name for name, each in found.items() if each is None or each.objects.log is not None]


def _versions_below(cluster: LocalCluster, topic: str, offset: int) -> list[tuple[str, str]]:
    """The recorded versions of the segments that end at or below an offset."""
    table, record = replayed(cluster), record_of(cluster, topic)
    assert record is not None
    partition = table.of(record.log)
    view = table.view(record.log)
    assert partition is not None
    assert view is not None
    records = [partition.segment(record.log, each.segment_id) for each in view.segments()]
    return [
        (ref.key, ref.version_id)
        for each in records
        if each is not None and each.end_offset <= offset
        for _, ref in each.objects.present()
        if ref.version_id is not None
    ]
