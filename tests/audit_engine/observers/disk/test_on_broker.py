"""A scripted day of a real broker, as the observer beside it tells it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TypeVar

from confluent_kafka import TopicPartition as ClientPartition

from audit_engine.observers.disk.observer import Observer
from rules.events import (
    Event,
    LogStartAdvanced,
    ReplicaRemoved,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
)
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.produce import Writer, texts
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter

DEADLINE_S = 30.0
TOPIC = "observed-day"

E = TypeVar("E", bound=Event)


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit_many(self, events: Sequence[Event]) -> None:
        self.events += events


def test_a_scripted_day_is_told_as_it_was(broker: LocalCluster, tmp_path: Path) -> None:
    """Rolls, DeleteRecords, retention, deletion and a topic made anew: the ranges and times of each."""
    told, ids = Told(), count()
    surveyor = Surveyor(broker.log_dirs(1), topics=TopicFilter(include=(TOPIC,)), now_ns=time.time_ns)
    observer = Observer(
        survey=surveyor.survey,
        sink=told,
        now_ms=lambda: time.time_ns() // 1_000_000,
        new_id=lambda: f"e{next(ids)}",
        folder=tmp_path,
    )

    def until(is_told: Callable[[], bool], wanted: str) -> None:
        def looked() -> bool:
            observer.run_once()
            return is_told()

        wait_until(looked, name=TOPIC, wanted=wanted, deadline_s=DEADLINE_S)

    observer.run_once()
    produce.create_topic(broker, TOPIC)
    until(lambda: len(of(told, ReplicaStarted)) == 1, "the replica seen, still empty")
    writer = Writer(broker, TOPIC, "day")
    writer.send_all(texts(400))
    until(lambda: len(of(told, SegmentClosed)) >= 3, "three segments closed")
    until(lambda: not observer.run_once(), "at rest")
    closed = of(told, SegmentClosed)
    times = {each.offset: each.timestamp_ms for each in writer.acknowledged}
    assert [each.base_offset for each in closed] == [0, *(each.end_offset for each in closed[:-1])]
    for each in closed:
        newest = max(times[offset] for offset in range(each.base_offset, each.end_offset))
        assert each.max_timestamp_ms == newest
    assert of(told, SegmentDeletedLocal) == []

    middle = closed[1].base_offset + 1
    admin = kafka.admin_client(broker.bootstrap)
    for done in admin.delete_records([ClientPartition(TOPIC, 0, middle)]).values():
        done.result()
    until(lambda: [e.new_start for e in of(told, LogStartAdvanced)][-1:] == [middle], "the start asked for")
    until(lambda: len(of(told, SegmentDeletedLocal)) == 1, "the segment below it deleted")

    kafka.set_config(broker.bootstrap, TOPIC, {"retention.ms": "1"})
    until(lambda: [e.new_start for e in of(told, LogStartAdvanced)][-1:] == [400], "all of it expired")
    gone = of(told, SegmentDeletedLocal)
    assert [each.base_offset for each in gone] == [0, *(each.end_offset for each in gone[:-1])]
    assert gone[-1].end_offset == 400
    known = {each.base_offset: each for each in of(told, SegmentClosed)}
    for deleted in gone:
        if deleted.base_offset in known:
            assert deleted.size_bytes == known[deleted.base_offset].size_bytes
            assert deleted.max_timestamp_ms == known[deleted.base_offset].max_timestamp_ms

    kafka.delete_topic(broker.bootstrap, TOPIC)
    until(lambda: len(of(told, ReplicaRemoved)) == 1, "the replica gone")
    produce.create_topic(broker, TOPIC)
    until(lambda: len(of(told, ReplicaStarted)) == 2, "another in its place")
    first, second = of(told, ReplicaStarted)
    assert first.log.topic_id != second.log.topic_id
    assert second.local_start == 0
    assert len(of(told, SegmentDeletedLocal)) == len(gone), "a topic's end is no segment's deletion"
    observer.close()


def of(told: Told, kind: type[E]) -> list[E]:
    return [each for each in told.events if isinstance(each, kind)]
