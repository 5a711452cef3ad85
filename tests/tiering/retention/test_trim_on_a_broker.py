"""DeleteRecords on a real broker: what it moves, what it refuses, and what is read back of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rules.events import TrimCertified, TrimOutcome, TrimResult
from rules.identity import LogId, ObjectRef
from seawall.local.broker import LocalCluster
from seawall.local.ports import ReservedPort
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.produce import Writer, texts
from tests.tiering.retention.agent import Agent
from tests.tiering.retention.trim_world import LOG, TrimWorld, certified
from tests.tiering.segments.strategies import CLUSTER_ID, log_record, segment
from tiering.cluster.host import LocalPartition
from tiering.cluster.interface import LeaderOffsets, TopicPartition
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.leadership import AdminLeadership
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter
from tiering.retention.digests import Said
from tiering.retention.kafka import KafkaDeleteRecords
from tiering.retention.local_service import LocalTrim
from tiering.retention.local_trim import Answer, Pending, TrimRun, settle
from tiering.segments.records import SegmentState
from tiering.store.interface import Stored
from tiering.uploader.one_log import Cluster


def settings(cluster: LocalCluster) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap}


def trimmed(cluster: LocalCluster, topic: str, up_to: int) -> tuple[Answer, TrimRun, TrimOutcome]:
    """The request and the outcome as a trim makes them, of a certificate that says `up_to`."""
    asked = KafkaCluster(settings(cluster), monotonic_s=time.monotonic)
    partition = TopicPartition(topic, 0)
    offsets = asked.leader_offsets([partition])[partition]
    assert isinstance(offsets, LeaderOffsets)
    world = TrimWorld()
    answered = KafkaDeleteRecords(settings(cluster)).delete_records(partition, up_to)
    run = settle(
        LogId(LOG.cluster_id, offsets.topic_id, 0),
        partition,
        Pending(certificate_id="certificate", trim=certified(up_to)),
        answered,
        replace(world.ports, offsets=asked),
    )
    [outcome] = world.events
    assert isinstance(outcome, TrimOutcome)
    return answered.answer, run, outcome


def test_the_start_moves_to_the_certified_offset(broker: LocalCluster) -> None:
    """To that offset, not to a segment's end; what lies behind it stays; said again, it has moved already."""
    produce.create_topic(broker, "trimmed")
    Writer(broker, "trimmed", "plain").send_all(texts(300))

    answer, run, outcome = trimmed(broker, "trimmed", 123)

    assert (answer, run.result, run.pending) == (Answer.DONE, TrimResult.ADVANCED, None)
    assert (outcome.result, outcome.start_read_back) == (TrimResult.ADVANCED, 123)
    partition = TopicPartition("trimmed", 0)
    found = KafkaCluster(settings(broker), monotonic_s=time.monotonic).leader_offsets([partition])[partition]
    assert isinstance(found, LeaderOffsets)
    assert (found.log_start, found.high_watermark) == (123, 300)
    assert trimmed(broker, "trimmed", 100)[2].start_read_back == 123


def test_a_compacted_topic_is_told_as_refused(broker: LocalCluster) -> None:
    """The broker's POLICY_VIOLATION is an outcome of its own: nothing moved, and nothing is waited for."""
    produce.create_topic(broker, "trim-compacted", config={"cleanup.policy": "compact"})
    Writer(broker, "trim-compacted", "plain").send_all(texts(50), key=b"k")

    answer, run, outcome = trimmed(broker, "trim-compacted", 10)

    assert (answer, run.result, run.pending) == (Answer.REFUSED, TrimResult.REFUSED, None)
    assert outcome.start_read_back == 0
    assert "POLICY_VIOLATION" in outcome.detail


def test_beyond_what_is_committed_is_refused(broker: LocalCluster) -> None:
    """An offset that the log has not come to moves nothing."""
    produce.create_topic(broker, "trim-beyond")
    Writer(broker, "trim-beyond", "plain").send_all(texts(5))

    answer, _, outcome = trimmed(broker, "trim-beyond", 6)

    assert (answer, outcome.result, outcome.start_read_back) == (Answer.REFUSED, TrimResult.REFUSED, 0)


def test_nobody_there_is_a_timeout(tmp_path: Path) -> None:
    """A broker that does not answer may have done it: no refusal, and no success."""
    with ReservedPort() as port:
        requests = KafkaDeleteRecords(
            {"bootstrap.servers": f"127.0.0.1:{port.number}"}, operation_timeout_s=0.2, request_timeout_s=0.5
        )
        answered = requests.delete_records(TopicPartition("t", 0), 1)

    assert answered.answer is Answer.TIMED_OUT


def test_a_whole_trim_beside_a_broker(broker: LocalCluster) -> None:
    """Files, leader, settings, log start are its own; the start moves to the end of what is in the tier."""
    topic = "trim-whole"
    produce.create_topic(broker, topic)
    Writer(broker, topic, "plain").send_all(texts(400))
    beside = BesideABroker(broker, topic)
    closed = [each for each in beside.replica().closed_segments if each.end_offset is not None]
    assert len(closed) > 2
    for each in closed[:-1]:
        beside.copy(each.base_offset, each.end_offset or 0)
    wait_until(
        lambda: beside.replica().checkpoint_high_watermark == 400,
        name=topic,
        wanted="a checkpoint, which would lower the bound",
        deadline_s=30.0,
    )

    beside.trim.run_once()

    certified_event, outcome = beside.agent.events
    assert isinstance(certified_event, TrimCertified)
    assert isinstance(outcome, TrimOutcome)
    assert certified_event.new_start == closed[-2].end_offset
    assert (outcome.result, outcome.start_read_back) == (TrimResult.ADVANCED, closed[-2].end_offset)
    [status] = beside.trim.run_once().values()
    assert (status.state, status.reason) == ("kept", "not_in_tier")


class BesideABroker:
    """The trimming of an agent beside a real broker; the topic of metadata and the store are in memory."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self.topic, self.partition = topic, TopicPartition(topic, 0)
        asked = KafkaCluster(settings(cluster), monotonic_s=time.monotonic)
        self.survey = Surveyor(
            cluster.log_dirs(1), topics=TopicFilter(include=(topic,)), now_ns=time.time_ns
        ).survey
        self.agent = Agent(now_ms=time.time_ns() // 1_000_000)
        host, replica = self.survey(), self.replica()
        self.log = LogId(CLUSTER_ID, replica.incarnation.topic_id, 0)
        self.refs: dict[str, ObjectRef] = {}
        self.agent.put(log_record(0, log=self.log, topic=topic, epochs=((0, 0),)))
        self.trim = LocalTrim(
            survey=lambda: replace(self.survey(), broker=replace(host.broker, cluster_id=CLUSTER_ID)),
            cluster=Cluster(
                leadership=AdminLeadership(
                    asked, broker_id=1, local_epoch=lambda _: self.replica().local_epoch
                ),
                offsets=asked,
                settings=asked,
            ),
            table=self.agent.retention.table,
            digests=self,
            policy=self.agent.retention.policy,
            objects=self,
            requests=KafkaDeleteRecords(settings(cluster)),
            sink=self.agent,
            now_ms=lambda: time.time_ns() // 1_000_000,
            new_id=self.agent.retention.new_id,
        )

    def replica(self) -> LocalPartition:
        return self.survey().live[self.partition]

    def copy(self, base: int, end: int) -> None:
        """As the uploader records it; its newest record is days old."""
        number = next(self.agent.numbers)
        whole = segment(
            number, base, end, log=self.log, topic=self.topic, leader_epoch=0, max_timestamp_ms=1_000
        )
        self.agent.put(replace(whole, state=SegmentState.COPY_STARTED, objects=type(whole.objects)()))
        self.agent.put(whole)
        self.refs |= {ref.key: ref for _, ref in whole.objects.present()}

    def of(self, log: LogId) -> Mapping[int, Said]:
        return {}  # there is no other replica

    def head(self, key: str, version_id: str | None = None) -> Stored:
        ref = self.refs[key]
        return Stored(size_bytes=ref.size_bytes, checksum=ref.checksum, version_id=version_id or "")


def test_remote_storage_is_asked_of_the_broker_itself(kip405_broker: LocalCluster) -> None:
    """On a topic of Kafka's own tier nothing is asked for: DeleteRecords would delete its remote segments."""
    topic = "trim-kip405"
    produce.create_topic(
        kip405_broker, topic, config={"remote.storage.enable": "true", "local.retention.ms": "3600000"}
    )
    Writer(kip405_broker, topic, "plain").send_all(texts(200))
    beside = BesideABroker(kip405_broker, topic)
    for each in beside.replica().closed_segments:
        beside.copy(each.base_offset, each.end_offset or 0)

    [status] = beside.trim.run_once().values()

    assert (status.state, status.reason) == ("kept", "remote_storage")
    assert beside.agent.events == []
