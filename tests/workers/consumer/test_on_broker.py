"""On a real broker: what only it knows of markers, metadata, groups and dead letters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from seawall.local.broker import LocalCluster
from seawall.local.kafka import SILENT
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.produce import Writer, texts, transactional
from workers.consumer import offset_map
from workers.consumer.commits import CommitSettings
from workers.consumer.executors.threads import Threads
from workers.consumer.flow import FlowLimits
from workers.consumer.kafka import KafkaDeadLetters, KafkaSource
from workers.consumer.loop import ParallelConsumer, Settings
from workers.consumer.offset_map import OffsetMap
from workers.consumer.outcomes import DeadLetter, Done, Handler, Outcome, Retry
from workers.consumer.records import Record

DEADLINE_S = 150.0
QUICK = Settings(commits=CommitSettings(every_s=0.05, maps=True, deadline_s=5))


def client(broker: LocalCluster, group: str) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap, "group.id": group, "session.timeout.ms": 6_000}


@contextmanager
def consuming(
    broker: LocalCluster,
    topic: str,
    handler: Handler,
    *,
    settings: Settings = QUICK,
    group: str | None = None,
) -> Iterator[ParallelConsumer]:
    """A consumer in a thread, with a dead letter topic beside it."""
    letters = KafkaDeadLetters({"bootstrap.servers": broker.bootstrap}, f"{topic}-dead", logger=SILENT)
    source = KafkaSource(client(broker, group or topic), [topic], logger=SILENT)
    consumer = ParallelConsumer(source, Threads(handler, threads=4), settings=settings, dead_letters=letters)
    stop = threading.Event()

    def run() -> None:
        consumer.open()
        consumer.run(stop)
        consumer.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield consumer
    stop.set()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def stored(broker: LocalCluster, group: str, topic: str, partition: int = 0) -> ClientPartition:
    asking = Consumer(client(broker, group), logger=SILENT)
    try:
        return asking.committed([ClientPartition(topic, partition)], timeout=60)[0]
    finally:
        asking.close()


def eventually(condition: Callable[[], bool], wanted: str) -> None:
    wait_until(condition, name="consumer", wanted=wanted, deadline_s=DEADLINE_S)


def test_a_log_of_transactions_is_committed_to_its_end(broker: LocalCluster) -> None:
    """Aborted records and markers are received by nobody; the last commit is the log's end all the same."""
    topic = "workers-transactions"
    produce.create_topic(broker, topic)
    writer = transactional(broker, topic, "workers-txn")
    writer.begin()
    writer.send_all(texts(5))
    writer.commit()
    writer.begin()
    writer.send_all(texts(3))
    writer.abort()
    seen: list[int] = []

    def handle(record: Record) -> Outcome:
        seen.append(record.offset)
        return Done()

    with consuming(broker, topic, handle):
        eventually(lambda: stored(broker, topic, topic).offset == 10, "a commit of 10")

    assert sorted(seen) == [0, 1, 2, 3, 4]  # 5 is a marker, 6 to 8 are aborted, 9 is a marker


def test_the_map_comes_back_from_the_broker(broker: LocalCluster) -> None:
    """With the first record unfinished, what is finished above it is remembered by the next consumer."""
    topic = "workers-map"
    produce.create_topic(broker, topic)
    Writer(broker, topic, "plain").send_all(texts(40))

    def not_the_first(record: Record) -> Outcome:
        return Retry(0.05) if record.offset == 0 else Done()

    with consuming(broker, topic, not_the_first) as consumer:
        eventually(lambda: consumer.snapshot().counts["done"] == 39, "39 finished")
        eventually(lambda: bool(stored(broker, topic, topic).metadata), "a map")
    point = stored(broker, topic, topic)
    found = offset_map.decode(point.metadata, point.offset)
    assert isinstance(found, OffsetMap)
    assert (point.offset, found.finished) == (0, frozenset(range(1, 40)))

    again: list[int] = []

    def handle(record: Record) -> Outcome:
        again.append(record.offset)
        return Done()

    with consuming(broker, topic, handle):
        eventually(lambda: stored(broker, topic, topic).offset == 40, "a commit of 40")

    assert again == [0]


def test_a_dead_letter_says_where_it_came_from_and_why(broker: LocalCluster) -> None:
    """Key, value and headers as they were, and ours behind them; the offset moves."""
    topic = "workers-letters"
    produce.create_topic(broker, topic)
    produce.create_topic(broker, f"{topic}-dead")
    Writer(broker, topic, "plain").send_all(texts(1))

    with consuming(broker, topic, lambda record: DeadLetter("poison")):
        eventually(lambda: stored(broker, topic, topic).offset == 1, "a commit of 1")

    reading = Consumer({**client(broker, "letters"), "auto.offset.reset": "earliest"}, logger=SILENT)
    reading.assign([ClientPartition(f"{topic}-dead", 0, 0)])
    letter = reading.poll(DEADLINE_S)
    reading.close()
    assert letter is not None
    headers = dict(letter.headers() or [])
    assert headers["dead-letter-topic"] == topic.encode()
    assert headers["dead-letter-offset"] == b"0"
    assert headers["dead-letter-reason"] == b"poison"
    assert headers["dead-letter-attempts"] == b"1"


def test_a_second_consumer_takes_its_share_and_nothing_is_lost(broker: LocalCluster) -> None:
    """The first goes on with what it keeps, and no record is handled twice in a calm rebalance.

    With bounds so small that partitions are paused and resumed all the time, and go while they are.
    """
    topic = "workers-share"
    produce.create_topic(broker, topic, partitions=4)
    writer = Writer(broker, topic, "plain")
    handled: list[tuple[str, int, int]] = []

    def by(name: str) -> Handler:
        def handle(record: Record) -> Outcome:
            time.sleep(0.002)
            handled.append((name, record.partition.number, record.offset))
            return Done()

        return handle

    fill(writer)
    small = replace(QUICK, flow=FlowLimits(records_max=100, partition_records_max=40, poll_records_max=10))
    with consuming(broker, topic, by("first"), settings=small) as first:
        eventually(lambda: len(handled) > 20, "a beginning")
        with consuming(broker, topic, by("second"), settings=small) as second:
            eventually(lambda: len(second.snapshot().partitions) == 2, "half of the partitions")
            assert len(first.snapshot().partitions) == 2
            fill(writer)
            eventually(lambda: len(handled) >= 800, "all of them")

    assert len(handled) == len({(partition, offset) for _, partition, offset in handled}) == 800
    assert {name for name, _, _ in handled} == {"first", "second"}


def test_one_record_a_poll_is_enough(broker: LocalCluster) -> None:
    """The smallest bounds there are: everything is handled all the same, in its order."""
    topic = "workers-one"
    produce.create_topic(broker, topic)
    Writer(broker, topic, "plain").send_all(texts(6), key=b"k")
    seen: list[int] = []

    def handle(record: Record) -> Outcome:
        seen.append(record.offset)
        return Done()

    flow = FlowLimits(records_max=2, partition_records_max=1, poll_records_max=1)
    with consuming(broker, topic, handle, settings=replace(QUICK, flow=flow)):
        eventually(lambda: stored(broker, topic, topic).offset == 6, "a commit of 6")

    assert seen == list(range(6))


def fill(writer: Writer) -> None:
    for number in range(400):
        writer.send(b"value-%d" % number, partition=number % 4)
    writer.flush()
