"""Fault 10 of RULES.md by the broker's own hand: KAFKA-20732, which 4.3.1 has.

A leader that begins counts a log's tier and its whole disk until its first copy task has looked what the tier
holds; where the task of retention comes before it, what lies in both counts twice, and a size limit that the
log keeps to deletes its head. Here the one thread that copies is held up by other logs' copies, so that it
does come before it.

What a real agent says of it goes the whole way: the topic of events, ingest, a run over tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec, ResourceType  # type: ignore[attr-defined]  # not re-exported
from pyspark.sql import SparkSession

from rules.events import LogStartAdvanced
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.whole_path.audited import (
    QUICK_AGENT,
    QUICK_DELETES,
    SEGMENT_BYTES,
    Audited,
    Told,
)
from tests.cluster.cases_tiered import remote_logs
from tests.cluster.produce import QUICK_HOUSEKEEPING
from tests.faults.agents import agent_beside
from tests.seawall.cli.calling import call

COUNT = 220  # some eleven segments
LIMIT_BYTES = 16 * SEGMENT_BYTES  # the log keeps to it; counted twice, it does not
BUSY = 6
RESTARTS_MAX = 10  # until the held-up thread is not the one that comes to our log first
DELETED_WITHIN_S = 20.0
COPIES_HELD_UP = {
    "remote.log.manager.copier.thread.pool.size": "1",
    # A window of an hour: what was copied in it is not forgotten while the test runs.
    "remote.log.manager.copy.quota.window.num": "60",
    "remote.log.manager.copy.quota.window.size.seconds": "60",
}
QUOTA = "remote.log.manager.copy.max.bytes.per.second"
TIERED = {"remote.storage.enable": "true", "retention.ms": "-1"}
POLICY = f"""
version = 1
[topics."*"]
declare_grace_ms = "1s"
total_retention_ms = "unlimited"
[topics.counted]
total_retention_bytes = {LIMIT_BYTES}
"""


@pytest.fixture
def audited(tmp_path: Path, spark: SparkSession) -> Iterator[Audited]:
    properties = {**QUICK_HOUSEKEEPING, **QUICK_DELETES, **COPIES_HELD_UP}
    with LocalCluster(tmp_path / "cluster", kip405=True, properties=properties) as cluster:
        settings = f'[kafka]\nbootstrap = "{cluster.bootstrap}"\n[agent]\nobserve_only = true\n{QUICK_AGENT}'
        with agent_beside(cluster, tmp_path, settings, None) as agent:
            yield Audited(cluster=cluster, agents={1: agent}, spark=spark, folder=tmp_path)


def start_of(audited: Audited, topic: str) -> int:
    """As the leader has it; -1 while a broker that has just come back cannot tell."""
    place = TopicPartition(topic, 0)
    earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    admin = kafka.admin_client(audited.cluster.bootstrap)  # lives until it has answered
    try:
        return int(admin.list_offsets({place: earliest})[place].result(60.0).offset)
    except KafkaException:
        return -1


def is_copied(audited: Audited, topic: str) -> bool:
    closed = audited.closed(topic, 1)
    return bool(closed) and len(remote_logs(audited.cluster, topic)) == len(closed)


def is_told(audited: Audited, start: int) -> bool:
    return any(isinstance(each, LogStartAdvanced) and each.new_start == start for each in audited.events())


@pytest.mark.long
@pytest.mark.timeout(1800)  # a broker that stops and comes back several times
def test_a_head_that_a_new_leader_counted_twice_is_found(audited: Audited) -> None:
    """START-02 over all that went, with the segments that left the tier as its children: RET-02, whichever of
    disk and tier was heard of first."""
    file = audited.folder / "policy.toml"
    file.write_text(POLICY)
    said = ("--principal", "alice", "--change-id", "T-1", "--confirm")
    assert call("policy", "apply", str(file), *said, "--bootstrap", audited.cluster.bootstrap).status == 0
    audited.create("counted", [1], **TIERED, **{"retention.bytes": str(LIMIT_BYTES)})
    audited.fill("counted", COUNT)
    audited.wait(lambda: is_copied(audited, "counted"), "counted", "each closed segment in the tier, too")
    segments = audited.closed("counted", 1)
    assert start_of(audited, "counted") == 0
    kafka.set_config(audited.cluster.bootstrap, "1", {QUOTA: "1"}, kind=ResourceType.BROKER)
    for number in range(BUSY):
        audited.create(f"busy-{number}", [1], **TIERED)
        audited.fill(f"busy-{number}", COUNT)
    audited.wait_until_told()

    for _ in range(RESTARTS_MAX):
        with audited.stopped(1):
            pass
        if becomes_true(lambda: start_of(audited, "counted") > 0, deadline_s=DELETED_WITHIN_S):
            break
    start = start_of(audited, "counted")
    assert start > 0, f"{RESTARTS_MAX} times the copies of our log came first"
    audited.wait(lambda: is_told(audited, start), "counted", f"its start at {start} told")
    told = audited.judge_whole(["counted"])["counted"]

    gone = [each for each in segments if each[1] <= start]
    assert gone[-1][1] == start
    assert told == {
        Told(rule_id="START-02", severity="C", ranges=((0, start),)),
        *(Told(rule_id="RET-02", severity="C", ranges=(each,)) for each in gone),
    }
    [log] = audited.logs("counted")
    found = [each for each in audited.findings() if log.topic_id in each["subject"]]
    [root] = [each for each in found if each["rule_id"] == "START-02"]
    assert {each["parent"] for each in found if each is not root} == {root["finding_id"]}
    assert root["parent"] is None
