"""The parallel consumer against Confluent's, and against a plain loop: records of 0, 1 and 100 ms.

The peer is io.confluent.parallelconsumer:parallel-consumer-core 0.5.3.3 as its own example CoreApp sets it
up: 1,000 at once, and the rest as it comes. Ours runs 1,000 coroutines, by key and unordered. The time is
that from the first record's start to the last one's end, each run a process and a group of its own, on the
same topics, with 10,007 keys in 4 partitions. Each line is a cell, whoever wins it; `ratio` above 1 is where
ours is faster.

Beside it in each line: `threads`, the same by blocking handlers in threads, with how many, its rate and its
ratio to the peer (Python runs one at a time: many short ones are what they are bad at); and `plain`, the rate
of a loop over confluent-kafka, poll, work and store, and how many times faster ours is. Wanted: no ratio
below 1 at 1 and 100 ms.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka import Consumer, Producer

from bench.harness import compare
from bench.parallel_consumer_jars import peer_command
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from workers.consumer.executors.eventloop import EventLoop
from workers.consumer.executors.threads import Threads
from workers.consumer.kafka import KafkaSource
from workers.consumer.loop import ParallelConsumer, Settings
from workers.consumer.order import Order
from workers.consumer.outcomes import Done, Outcome
from workers.consumer.ports import Executor
from workers.consumer.records import Record

AT_ONCE = 1_000
THREADS = {0: 32, 1: 32, 100: 1_000}
RECORDS = {0: 100_000, 1: 40_000, 100: 5_000}
PLAIN_RECORDS = {0: 100_000, 1: 2_000, 100: 20}
ASIDE_RUNS = 3
KEYS = 10_007
PARTITIONS = 4
VALUE_BYTES = 100
RUN_S = 120
DONE = Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    order: str  # as the peer names it
    work_ms: int


CELLS = [Cell(order=order, work_ms=work_ms) for work_ms in (100, 1, 0) for order in ("KEY", "UNORDERED")]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
        command = peer_command(Path(name))
        with LocalCluster(Path(name) / "broker") as broker:
            for work_ms, records in RECORDS.items():
                fill(broker, topic_of(work_ms), records)
            for cell in CELLS:
                _compare(broker, command, cell)


def _compare(broker: LocalCluster, command: list[str], cell: Cell) -> None:
    theirs: list[float] = []
    ours: list[float] = []

    def peer() -> float:
        place = [broker.bootstrap, topic_of(cell.work_ms), uuid.uuid4().hex]
        how = [str(RECORDS[cell.work_ms]), cell.order, str(cell.work_ms), str(AT_ONCE)]
        theirs.append(_seconds([*command, *place, *how]))
        return theirs[-1]

    def we() -> float:
        ours.append(_ours(broker, cell, "event loop"))
        return ours[-1]

    def aside() -> dict[str, Any]:
        records, plain_records = RECORDS[cell.work_ms], PLAIN_RECORDS[cell.work_ms]
        threads_s = median(_ours(broker, cell, "threads") for _ in range(ASIDE_RUNS))
        plain_s = median(_ours(broker, cell, "plain") for _ in range(ASIDE_RUNS))
        rate, plain_rate = records / median(ours[1:]), plain_records / plain_s
        return {
            "records_per_s": round(rate),
            "their_records_per_s": round(records / median(theirs[1:])),
            "threads": {
                "at_once": THREADS[cell.work_ms],
                "records_per_s": round(records / threads_s),
                "ratio": round(median(theirs[1:]) / threads_s, 3),
            },
            "plain": {"records_per_s": round(plain_rate), "ratio": round(rate / plain_rate, 2)},
        }

    name = f"workers {cell.work_ms} ms {cell.order}"
    compare(name, "parallel-consumer-core 0.5.3.3", ours=we, theirs=peer, more=aside)


def _ours(broker: LocalCluster, cell: Cell, how: str) -> float:
    asked = {"bootstrap": broker.bootstrap, "order": cell.order, "work_ms": cell.work_ms, "how": how}
    return _seconds([sys.executable, "-m", "bench.workers", json.dumps(asked)])


def _seconds(command: list[str]) -> float:
    """The last word of what a process prints."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"bench: {command[0]} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return float(ran.stdout.split()[-1])


def topic_of(work_ms: int) -> str:
    return f"bench-workers-{work_ms}"


def fill(broker: LocalCluster, topic: str, records: int) -> None:
    kafka.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "linger.ms": 50,
        "queue.buffering.max.messages": 500_000,
    }
    producer = Producer(settings, logger=kafka.SILENT)
    for number in range(records):
        producer.produce(topic, key=b"key-%d" % (number * 7919 % KEYS), value=b"x" * VALUE_BYTES)
    assert producer.flush(RUN_S) == 0


# What a child process does.


class Clock:
    """When the first record began."""

    def __init__(self) -> None:
        self.began_s = 0.0

    def begin(self) -> None:
        if not self.began_s:
            self.began_s = time.perf_counter()

    def took_s(self) -> float:
        return time.perf_counter() - self.began_s


def child(asked: dict[str, Any]) -> float:
    work_s, clock = asked["work_ms"] / 1000, Clock()
    client = {
        "bootstrap.servers": asked["bootstrap"],
        "group.id": uuid.uuid4().hex,
        "auto.offset.reset": "earliest",
    }
    topic = topic_of(asked["work_ms"])
    if asked["how"] == "plain":
        return plain(client, topic, work_s, PLAIN_RECORDS[asked["work_ms"]])
    executor: Executor
    if asked["how"] == "threads":
        executor = Threads(blocking(work_s, clock), threads=THREADS[asked["work_ms"]])
    else:
        executor = EventLoop(waiting(work_s, clock), tasks=AT_ONCE)
    order = Order.BY_KEY if asked["order"] == "KEY" else Order.NONE
    consumer = ParallelConsumer(KafkaSource(client, [topic]), executor, settings=Settings(order=order))
    consumer.open()
    while consumer.done_records < RECORDS[asked["work_ms"]]:
        consumer.turn()
    took_s = clock.took_s()
    consumer.close()
    return took_s


def blocking(work_s: float, clock: Clock) -> Callable[[Record], Outcome]:
    def handle(_: Record) -> Outcome:
        clock.begin()
        if work_s:
            time.sleep(work_s)
        return DONE

    return handle


def waiting(work_s: float, clock: Clock) -> Any:
    async def handle(_: Record) -> Outcome:
        clock.begin()
        if work_s:
            await asyncio.sleep(work_s)
        return DONE

    return handle


def plain(client: dict[str, Any], topic: str, work_s: float, records: int) -> float:
    """What one writes first."""
    clock = Clock()
    consumer = Consumer({**client, "enable.auto.offset.store": False}, logger=kafka.SILENT)
    consumer.subscribe([topic])
    done = 0
    while done < records:
        message = consumer.poll(1.0)
        if message is None or message.error() is not None:
            continue
        clock.begin()
        if work_s:
            time.sleep(work_s)
        consumer.store_offsets(message)
        done += 1
    took_s = clock.took_s()
    consumer.close()
    return took_s


if __name__ == "__main__":
    print(child(json.loads(sys.argv[1])))  # noqa: T201 what the parent reads
