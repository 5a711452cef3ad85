"""Fault 10 of RULES.md by the broker's own hand: KAFKA-20732, which 4.3.1 has.

A leader that begins counts a log's tier and its whole disk until its first copy task has looked what the tier
holds; where the task of retention comes before it, what lies in both counts twice, and a size limit that the
log keeps to deletes its head. Here the one thread that copies is held up by other logs' copies, so that it
does come before it.

What a real agent says of it is judged by the machine as it comes from Kafka; that a run over tables comes to
the same is `tests.audit_engine.run.test_run`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec, ResourceType  # type: ignore[attr-defined]  # not re-exported

from audit_engine.wire import Envelope, decode
from rules.events import Event, LogEvent, LogStartAdvanced
from rules.machine import Speaker, Told, fold, newborn
from rules.machine.fold import HANDLERS
from rules.machine.told import concerns
from rules.machine.verdict import Judgement, judge
from seawall.events.kafka import hear
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.whole_path.audited import (
    QUICK_AGENT,
    QUICK_DELETES,
    QUICK_TERMS,
    SEGMENT_BYTES,
    Audited,
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
def audited(tmp_path: Path) -> Iterator[Audited]:
    properties = {**QUICK_HOUSEKEEPING, **QUICK_DELETES, **COPIES_HELD_UP}
    with LocalCluster(tmp_path / "cluster", kip405=True, properties=properties) as cluster:
        settings = f'[kafka]\nbootstrap = "{cluster.bootstrap}"\n[agent]\nobserve_only = true\n{QUICK_AGENT}'
        with agent_beside(cluster, tmp_path, settings, None) as agent:
            yield Audited(cluster=cluster, agents={1: agent}, spark=None, folder=tmp_path)


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


def _is_judged(event: Event) -> bool:
    return isinstance(event, LogEvent) or type(event) in HANDLERS or event.kind == "evidence_gap"


def _told(envelope: Envelope) -> Told:
    event = envelope.event
    return Told(
        event=event if isinstance(event, Event) else None,
        speaker=Speaker(*envelope.emitter),
        seq=envelope.emitter_seq,
        log_seq=envelope.log_seq,
        observed_at_ms=envelope.observed_at_ms,
        kind=event.kind,
    )


def judged(audited: Audited, topic: str) -> Judgement:
    """Of a topic's only log, by all that the topic of events has, as of the last word of anybody."""
    [log] = audited.logs(topic)
    values = hear({"bootstrap.servers": audited.cluster.bootstrap}, since_ms=0)
    heard = [_told(decode(each.value)) for each in values]
    as_of_ms = max(each.observed_at_ms for each in heard)
    said = [
        each for each in heard if each.event and _is_judged(each.event) and concerns(each.event, log, topic)
    ]
    state = fold(newborn(log, topic), said, QUICK_TERMS, as_of_ms=as_of_ms)
    return judge(state, QUICK_TERMS, from_ms=0)


def is_whole(judgement: Judgement) -> bool:
    return not judgement.statement.missing and not judgement.statement.suspect


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
    audited.wait_until_told()
    audited.wait(lambda: is_whole(judged(audited, "counted")), "counted", "judged on whole evidence")
    found = judged(audited, "counted").findings

    gone = [each for each in segments if each[1] <= start]
    assert gone[-1][1] == start
    roots = [each for each in found if each.rule_id == "START-02"]
    children = [each for each in found if each not in roots]
    assert [(each.severity, each.ranges) for each in roots] == [("C", ((0, start),))]
    assert sorted(each.ranges for each in children) == [(each,) for each in gone]
    assert {each.rule_id for each in children} == {"RET-02"}
    assert {(each.severity, each.parent) for each in children} == {("C", roots[0].finding_id)}
