"""DeleteRecords on a real broker: what it moves, what it refuses, and what is read back of it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from rules.events import TrimOutcome, TrimResult
from rules.identity import LogId
from seawall.local.broker import LocalCluster
from seawall.local.ports import ReservedPort
from tests.cluster import produce
from tests.cluster.produce import Writer, texts
from tests.tiering.retention.trim_world import LOG, TrimWorld, certified
from tiering.cluster.interface import LeaderOffsets, TopicPartition
from tiering.cluster.kafka import KafkaCluster
from tiering.retention.kafka import KafkaDeleteRecords
from tiering.retention.local_trim import Answer, Pending, TrimRun, settle


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
