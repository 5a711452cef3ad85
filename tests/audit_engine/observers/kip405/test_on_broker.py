"""The observer's topic over a real broker, filled as brokers fill it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from confluent_kafka import TopicPartition as ClientPartition

from audit_engine.observers.kip405.kafka import KafkaMetadataSource, is_written_by
from audit_engine.observers.kip405.observer import Observer
from rules.events import CopyFinished, CopyStarted, DeleteStarted, Event, EvidenceGap
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.audit_engine.observers.kip405.records import deleting, finished, segment_id, started
from tests.cluster.produce import Writer, create_topic
from tiering.cluster.interface import Unknown
from tiering.cluster.kafka import KafkaCluster

NAME = "like-remote-log-metadata"
DEADLINE_S = 30.0


class Watched:
    def __init__(self, broker: LocalCluster, folder: Path) -> None:
        self.said: list[Event] = []
        ids = count()
        config = {"bootstrap.servers": broker.bootstrap}
        self.cluster = KafkaCluster(config, monotonic_s=time.monotonic)
        self.observer = Observer(
            source=KafkaMetadataSource(config, self.cluster, name=NAME),
            cluster_id=broker.cluster_id,
            sink=self,
            now_ms=lambda: time.time_ns() // 1_000_000,
            new_id=lambda: f"e{next(ids)}",
            folder=folder,
        )

    def emit_many(self, events: Sequence[Event]) -> None:
        self.said += events

    def until(self, kinds: list[str]) -> None:
        def looked() -> bool:
            self.observer.run_once()
            told = [each.kind for each in self.said if each.kind != "tier_state"]
            return sorted(told) == sorted(kinds)  # of two partitions, in any order

        wait_until(looked, name=NAME, wanted=str(kinds), deadline_s=DEADLINE_S)


def test_a_broker_is_read_on_from_where_it_was_and_its_retention_is_a_gap(
    broker: LocalCluster, tmp_path: Path
) -> None:
    """No topic; what is there; what comes; a restart; records that went unread; the topic made anew."""
    watched = Watched(broker, tmp_path)
    assert watched.observer.run_once() == 0

    create_topic(broker, NAME, partitions=2)
    writer = Writer(broker, NAME, "a broker")
    writer.send_all([started(1, 0, 9), finished(1)])
    writer.send_all([started(7, 0, 9)], partition=1)
    watched.until(["copy_started", "copy_finished", "copy_started"])

    writer.send_all([started(2, 10, 19)])
    kinds = ["copy_started", "copy_finished", "copy_started", "copy_started"]
    watched.until(kinds)
    told = [each for each in watched.said if isinstance(each, CopyStarted | CopyFinished)]
    assert {(each.segment_id, each.metadata_offset) for each in told} == {
        (segment_id(1), 0),
        (segment_id(1), 1),
        (segment_id(7), 0),
        (segment_id(2), 2),
    }
    watched.observer.close()

    watched = Watched(broker, tmp_path)
    writer.send_all([finished(2), deleting(1), deleting(2)])
    admin = kafka.admin_client(broker.bootstrap)
    for done in admin.delete_records([ClientPartition(NAME, 0, 5)]).values():
        done.result()
    watched.until(["evidence_gap", "delete_started"])
    gap, going = (each for each in watched.said if isinstance(each, EvidenceGap | DeleteStarted))
    assert isinstance(gap, EvidenceGap)
    assert (gap.problem, gap.gap_start, gap.gap_end) == ("topic_overtook", 3, 5)
    assert isinstance(going, DeleteStarted)
    assert (going.segment_id, going.base_offset, going.end_offset) == (segment_id(2), 10, 20)

    kafka.delete_topic(broker.bootstrap, NAME)
    create_topic(broker, NAME)
    writer.send_all([started(3, 0, 9)])
    watched.until(["evidence_gap", "delete_started", "evidence_gap", "copy_started"])
    watched.observer.close()


def test_whether_a_broker_writes_such_a_topic_is_asked_of_it(broker: LocalCluster) -> None:
    """A stock broker has remote log storage off, by its own words."""
    config = {"bootstrap.servers": broker.bootstrap}
    settings = KafkaCluster(config, monotonic_s=time.monotonic).broker_settings(1)

    assert not isinstance(settings, Unknown)
    assert not is_written_by(settings)
