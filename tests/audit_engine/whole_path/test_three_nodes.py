"""Faults of RULES.md made by hand on three real brokers, each on a topic of its own, seen by real agents,
published, ingested and judged: 1, 7, 13, 14, 16 and 17, beside a topic to which only benign things happen."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rules.events import CopyStarted
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.audit_engine.whole_path.audited import (
    QUICK_AGENT,
    QUICK_DELETES,
    Audited,
    Told,
    lose_segments,
)
from tests.cluster.disks import put_start
from tests.cluster.elections import elect_preferred
from tests.cluster.produce import QUICK_HOUSEKEEPING
from tests.faults.agents import agents_beside
from tests.faults.s3_trouble import S3Trouble
from tests.faults.scrub import tiered_to
from tests.faults.test_whole_system import replayed, settings_of
from tests.seawall.cli.calling import call, environ_of

HOUR_MS = 3_600_000
WEEK_MS = str(7 * 24 * HOUR_MS)
TOPICS = {  # and the brokers of each, the first of which leads
    "trimmed": [1, 2, 3],  # fault 1: its leader comes back with another start
    "shrunk": [2, 3, 1],  # fault 7: its retention is made shorter
    "ours-early": [1],  # fault 13: what was not copied yet goes from the disk
    "ours-objects": [2, 1, 3],  # fault 14: its objects are removed by hand
    "vanished": [1],  # fault 16: a segment in its middle is lost
    "corrupt": [3, 1, 2],  # fault 17: a follower with another start is elected
    "benign": [1, 2, 3],  # brokers stop and come back, leaders move
}
CAUGHT = ("trimmed", "corrupt")  # their followers' starts are wrong, and each is elected in the end
OURS = ("ours-early", "ours-objects")
DROPPED = ("START-02", "SEG-02", "SEG-09")  # before it was in the tier
OWN = {"shrunk": {"retention.ms": WEEK_MS}}
COUNT = 120
POLICY = """
version = 1
[topics."*"]
declare_grace_ms = "1s"
total_retention_ms = "unlimited"
[topics.shrunk]
total_retention_ms = "7d"
[topics."ours-*"]
tiering = true
"""
PREFIX = "whole-path"


@pytest.fixture
def trouble(bucket: LocalBucket) -> Iterator[S3Trouble]:
    with S3Trouble(bucket.address.endpoint_url, chance=random.Random(1)) as proxy:
        yield proxy


@pytest.fixture
def audited(
    spark: SparkSession, bucket: LocalBucket, trouble: S3Trouble, tmp_path: Path
) -> Iterator[Audited]:
    properties = {**QUICK_HOUSEKEEPING, **QUICK_DELETES, "auto.leader.rebalance.enable": "false"}
    with LocalCluster(tmp_path / "cluster", nodes=3, properties=properties) as cluster:
        settings = settings_of(cluster, trouble.endpoint_url, bucket.name, PREFIX, "ours-*") + QUICK_AGENT
        with agents_beside(cluster, tmp_path, settings, bucket.address) as agents:
            yield Audited(cluster=cluster, agents=agents, spark=spark, folder=tmp_path)


def declare(audited: Audited) -> None:
    file = audited.folder / "policy.toml"
    file.write_text(POLICY)
    said = ("--principal", "alice", "--change-id", "T-1", "--confirm")
    applied = call("policy", "apply", str(file), *said, "--bootstrap", audited.cluster.bootstrap)
    assert applied.status == 0, applied.stderr


@pytest.mark.long
@pytest.mark.timeout(3600)  # three runs of the audit or more, and three brokers that stop and come back
def test_faults_made_for_real(audited: Audited, bucket: LocalBucket, trouble: S3Trouble) -> None:
    """Before the elections exactly what was done is found, and after them: a follower whose start is wrong is
    START-04, critical as it can be elected, until it leads; then what it lost is START-02."""
    declare(audited)
    for topic, brokers in TOPICS.items():
        audited.create(topic, brokers, **OWN.get(topic, {}))
    for topic in TOPICS:
        audited.fill(topic, COUNT)
    for topic in OURS:
        audited.wait(partial(is_copied, audited, topic), topic, "all of it in the tier")

    audited.restart_agents()
    shrunk = audited.closed("shrunk", 2)
    kafka.set_config(audited.cluster.bootstrap, "shrunk", {"retention.ms": "1000"})
    removed = remove_objects(audited, bucket, 2)
    with trouble.refusing():
        copied_to = audited.closed("ours-early", 1)[-1][1]
        audited.fill("ours-early", COUNT)
        begun = partial(has_begun, audited, "ours-early", copied_to)
        audited.wait(begun, "ours-early", "a copy begun, that cannot end")
        trimmed_to, vanished, corrupt_to = segment(audited, "trimmed", 1, 3)[0], *vanishing(audited)
        early = [each for each in audited.closed("ours-early", 1) if each[0] < COUNT]
        with audited.stopped(1) as log_dir:
            put_start(log_dir, "trimmed", trimmed_to)
            lose_segments(log_dir, "vanished", [vanished[0]])
            lose_segments(log_dir, "ours-early", [first for first, _ in early])
        with audited.stopped(3) as log_dir:
            put_start(log_dir, "corrupt", corrupt_to)
        for topic, brokers in TOPICS.items():
            audited.wait(partial(audited.is_in_sync, topic, brokers), topic, "all replicas in sync")
        for _ in range(2):
            scrub_tier(audited, bucket)
        before = audited.judge_whole(topic for topic in TOPICS if topic != "shrunk")
        for topic, start in (("trimmed", trimmed_to), ("corrupt", corrupt_to), ("benign", 0)):
            elect_preferred(audited.cluster, topic)
            audited.fill(topic, 1)  # a follower in a fetch session hears of a start with the next record only
            for broker in TOPICS[topic]:
                audited.wait(partial(audited.begins_at, topic, broker, start), topic, "its leader's start")
        elected = audited.judge_whole(CAUGHT)
        after = audited.judge(ahead_ms=2 * HOUR_MS)  # whoever declares anything has an hour for it

    # Of the segment that was open, nobody knows how old its newest record was.
    of_shrunk = {("RET-03", "C", ()), ("START-02", "C", ((0, shrunk[-1][1]),))}
    of_shrunk |= {("RET-01", "C", (each,)) for each in shrunk}
    found = {topic: said(before, topic) for topic in TOPICS}
    assert found.pop("shrunk") <= of_shrunk  # as much as is past its grace
    starts = {"trimmed": trimmed_to, "corrupt": corrupt_to}
    hung = {("SEG-11", "W", ((copied_to, COUNT),))}
    assert found == {
        **{topic: {("START-04", "C", ((0, start),))} for topic, start in starts.items()},
        # Of what went, as much as was ever published to be committed.
        "ours-early": {(rule, "C", ((copied_to, COUNT),)) for rule in DROPPED} | hung,
        "ours-objects": {(rule, "C", (each,)) for rule in ("OPS-03", "SEG-06") for each in removed},
        "vanished": {("SEG-02", "C", (vanished,))},
        "benign": set(),
    }
    lost = {topic: {("START-02", "C", ((0, start),))} for topic, start in starts.items()}
    assert {topic: said(elected, topic) for topic in CAUGHT} == lost
    stands = {topic: said(after, topic) for topic in TOPICS}
    stands["ours-early"] |= hung  # a copy whose files are gone is given up, sooner or later
    assert stands == found | lost | {"shrunk": of_shrunk}
    by_id = {each["finding_id"]: each for each in audited.findings()}
    parents = {
        (each["rule_id"], by_id[each["parent"]]["rule_id"]) for each in by_id.values() if each["parent"]
    }
    assert "AUD-02" not in {each["rule_id"] for each in by_id.values()}  # three agents tell of one cluster
    assert parents >= {("SEG-06", "OPS-03"), ("RET-01", "START-02"), ("START-02", "RET-03")}


def said(found: Mapping[str, set[Told]], topic: str) -> set[tuple[str, str, tuple[tuple[int, int], ...]]]:
    """What is open."""
    return {
        (each.rule_id, each.severity, each.ranges)
        for each in found.get(topic, set())
        if each.status == "open"
    }


def segment(audited: Audited, topic: str, broker: int, number: int) -> tuple[int, int]:
    return audited.closed(topic, broker)[number]


def vanishing(audited: Audited) -> tuple[tuple[int, int], int]:
    """The segment in the middle that is to be lost, and the start that a disk is to bring back."""
    return segment(audited, "vanished", 1, 2), segment(audited, "corrupt", 3, 4)[0]


def is_copied(audited: Audited, topic: str) -> bool:
    """Whether everything that the leader has closed is in the tier."""
    leader = audited.leader(topic)
    ends = [end for _, end in audited.closed(topic, leader)] if leader else []
    table = replayed(audited.cluster)
    return bool(ends) and any(tiered_to(table, log) >= ends[-1] for log in audited.logs(topic))


def has_begun(audited: Audited, topic: str, base: int) -> bool:
    """Whether the metadata topic has said that the segment from there on is being copied."""
    logs = audited.logs(topic)
    begun = (each for each in audited.events() if isinstance(each, CopyStarted))
    return any(each.log in logs and each.base_offset == base for each in begun)


def remove_objects(audited: Audited, bucket: LocalBucket, count: int) -> list[tuple[int, int]]:
    """By hand, as somebody does in a console: all objects of the third segment and the next ones."""
    [log] = audited.logs("ours-objects")
    table = replayed(audited.cluster).of(log)
    assert table is not None
    view = table.view(log)
    assert view is not None
    records = [table.segment(log, each.segment_id) for each in view.segments()]
    gone = sorted((each for each in records if each), key=lambda each: each.base_offset)[2 : 2 + count]
    for key in [ref.key for each in gone for _, ref in each.objects.present()]:
        bucket.client().delete_object(Bucket=bucket.name, Key=key)
    return [(each.base_offset, each.end_offset) for each in gone]


def scrub_tier(audited: Audited, bucket: LocalBucket) -> None:
    """A listing, past the trouble: it finds damage, and that is its exit code."""
    environ = environ_of(audited.cluster, bucket.address, PREFIX) | {"XDG_STATE_HOME": str(audited.folder)}
    scrubbed = call("tier", "scrub", "ours-objects", "--listed", environ=environ)
    assert scrubbed.status == 1, scrubbed.stderr
