"""One contract for Kafka's client and for the member of the broker in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from seawall.local.broker import LocalCluster
from seawall.local.kafka import SILENT
from tests.cluster import produce
from tests.cluster.produce import Writer
from workers.consumer.commits import CommitAnswer, CommitPoint
from workers.consumer.kafka import KafkaSource
from workers.consumer.ports import Source, Start
from workers.consumer.records import Partition, Record
from workers.testing.broker import MemoryBroker
from workers.testing.clock import FakeClock
from workers.testing.source import MemorySource

DEADLINE_S = 120.0
VALUES = [b"value-%d" % number for number in range(6)]


@dataclass
class Heard:
    """A listener that remembers."""

    starts: dict[Partition, Start] = field(default_factory=dict)
    gone: list[Partition] = field(default_factory=list)
    answers: list[CommitAnswer] = field(default_factory=list)

    def assigned(self, starts: Mapping[Partition, Start]) -> None:
        self.starts.update(starts)

    def revoked(self, partitions: Collection[Partition]) -> None:
        self.gone += partitions

    def lost(self, partitions: Collection[Partition]) -> None:
        self.gone += partitions

    def committed(self, answers: Sequence[CommitAnswer]) -> None:
        self.answers += answers


@dataclass
class Reading:
    """A source on a log of six records, and what it brought so far."""

    source: Source
    partition: Partition
    heard: Heard = field(default_factory=Heard)
    records: list[Record] = field(default_factory=list)
    ends: list[tuple[Partition, int]] = field(default_factory=list)

    def poll_until(self, condition: Callable[[], bool], records_max: int = 100) -> None:
        last_moment = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < last_moment, f"{self.records} {self.ends} {self.heard}"
            polled = self.source.poll(records_max, 0.05)
            self.records += polled.records
            self.ends += polled.ends


class SourceContract:
    """What the loop relies on."""

    def test_records_come_in_order_and_the_end_after_them(self, reading: Reading) -> None:
        """With their values, a leader epoch, and an end that is told once they are all here."""
        reading.poll_until(lambda: bool(reading.ends))

        assert [(each.offset, each.value) for each in reading.records] == list(enumerate(VALUES))
        assert {each.partition for each in reading.records} == {reading.partition}
        assert all(each.leader_epoch >= 0 for each in reading.records)
        assert reading.ends == [(reading.partition, 6)]
        assert reading.heard.starts == {reading.partition: Start()}

    def test_no_more_come_than_there_is_room_for(self, reading: Reading) -> None:
        """One poll brings what was asked for at most; the next goes on behind it."""
        reading.poll_until(lambda: bool(reading.records), records_max=2)
        assert len(reading.records) <= 2

        reading.poll_until(lambda: len(reading.records) == 6, records_max=2)

        assert [each.offset for each in reading.records] == list(range(6))

    def test_a_commit_is_answered_and_found_by_the_next_member(
        self, reading: Reading, another: Callable[[], Reading]
    ) -> None:
        """The one that is waited for at once, the other one in a later poll; with its metadata."""
        reading.poll_until(lambda: bool(reading.ends))
        reading.source.commit({reading.partition: CommitPoint(offset=3)})
        reading.poll_until(lambda: bool(reading.heard.answers))
        point = CommitPoint(offset=4, leader_epoch=0, metadata="what I know")
        waited = reading.source.commit_and_wait({reading.partition: point}, deadline_s=DEADLINE_S)
        assert [(each.offset, each.error) for each in reading.heard.answers] == [(3, None)]
        assert [(each.offset, each.error) for each in waited] == [(4, None)]

        reading.source.close()
        following = another()
        following.poll_until(lambda: bool(following.ends))

        assert reading.heard.gone == [reading.partition]
        assert following.heard.starts == {reading.partition: Start(4, "what I know", 0)}
        assert [each.offset for each in following.records] == [4, 5]

    def test_a_paused_partition_brings_nothing_until_it_is_resumed(self, reading: Reading) -> None:
        """And loses nothing by that."""
        reading.poll_until(lambda: bool(reading.records), records_max=1)
        reading.source.pause([reading.partition])
        before = len(reading.records)
        for _ in range(5):
            assert not reading.source.poll(100, 0.05).records

        reading.source.resume([reading.partition])
        reading.poll_until(lambda: len(reading.records) == 6)

        assert len(reading.records) > before
        assert [each.offset for each in reading.records] == list(range(6))


class TestMemory(SourceContract):
    """The broker in memory."""

    @pytest.fixture
    def another(self) -> Callable[[], Reading]:
        broker, clock = MemoryBroker([Partition("t", 0)]), FakeClock()
        for value in VALUES:
            broker.produce(Partition("t", 0), b"k", value)

        def made() -> Reading:
            reading = Reading(MemorySource(broker, f"member-{len(broker.commits)}", clock), Partition("t", 0))
            reading.source.open(reading.heard)
            return reading

        return made

    @pytest.fixture
    def reading(self, another: Callable[[], Reading]) -> Reading:
        return another()


class TestKafka(SourceContract):
    """A real one."""

    @pytest.fixture
    def another(self, broker: LocalCluster) -> Iterator[Callable[[], Reading]]:
        topic = f"contract-{uuid.uuid4().hex}"
        produce.create_topic(broker, topic)
        Writer(broker, topic, "contract").send_all(VALUES, key=b"k")
        opened: list[Source] = []

        def made() -> Reading:
            client = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "session.timeout.ms": 6_000}
            reading = Reading(KafkaSource(client, [topic], logger=SILENT), Partition(topic, 0))
            reading.source.open(reading.heard)
            opened.append(reading.source)
            return reading

        yield made
        for each in opened:
            each.close()

    @pytest.fixture
    def reading(self, another: Callable[[], Reading]) -> Reading:
        return another()
