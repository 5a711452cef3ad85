"""Readers and a writer that go on while everything moves, each noting exactly what it was given, or wrote.

    Reader          confluent-kafka: assigned or in a group, by any isolation level, from any offsets
    Transactions    a producer whose transactions end now in a commit, now in an abort
    by_kcat, by_console_consumer, by_spark    a whole topic as it is now, read_committed

Owns no server. Values are VALUE_BYTES long, as they may have any bytes and some of these print them bare.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local import kafka
from seawall.local.jvm_options import short_lived
from tests.faults.ledger import VALUE_BYTES, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 1.0
END_S = 240.0
CALL_S = 20.0
CALLS_MAX = 30
TOOL_S = 300
EACH = 5  # records of a transaction
KCAT = "/usr/bin/kcat"
needs_kcat = pytest.mark.skipif(not Path(KCAT).exists(), reason="kcat is not installed")


class Reader:
    """A consumer that reads all there is, in a thread of its own."""

    def __init__(
        self, name: str, bootstrap: str, topic: str, *, starts: Mapping[int, int] | None, **settings: Any
    ) -> None:
        """`starts`: where to begin in each partition; None: in a group, from wherever it stands."""
        self.name = name
        self.records: list[tuple[Place, bytes]] = []
        self.times_ms: dict[Place, int] = {}
        self.rebalances = 0
        self.errors: list[str] = []
        self._topic = topic
        self._starts = starts
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest" if starts is None else "error",
                "enable.auto.commit": "false",
                "check.crcs": "true",
                "session.timeout.ms": 10_000,
                "topic.metadata.refresh.interval.ms": 2000,
                "reconnect.backoff.max.ms": 500,
                **settings,
            },
            logger=kafka.SILENT,
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, name=name, daemon=True)
        self._thread.start()

    def places(self) -> set[Place]:
        return {place for place, _ in list(self.records)}

    def of(self, *partitions: int) -> dict[Place, bytes]:
        return {place: value for place, value in list(self.records) if place.partition in partitions}

    def values(self) -> set[bytes]:
        return {value for _, value in list(self.records)}

    def disorder(self) -> list[str]:
        """What it was given twice, or out of order; empty if nothing was."""
        found, last = [], dict[int, int]()
        for place, _ in list(self.records):
            if place.offset <= last.get(place.partition, -1):
                found.append(f"{self.name}: {place} behind {last[place.partition]}")
            last[place.partition] = place.offset
        return found

    def end(self) -> None:
        self._ending.set()
        self._thread.join(END_S)
        assert not self._thread.is_alive()

    def _read(self) -> None:
        if self._starts is None:
            self._consumer.subscribe([self._topic], on_assign=self._on_assign)
        else:
            self._consumer.assign([TopicPartition(self._topic, *each) for each in self._starts.items()])
        while not self._ending.is_set():
            for message in self._consumer.consume(500, POLL_S):
                self._note(message)
            with suppress(KafkaException):
                self._consumer.commit(asynchronous=False)
        self._consumer.close()

    def _note(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            self.errors.append(error.str())
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        place = Place(partition, offset)
        self.times_ms[place] = message.timestamp()[1]
        self.records.append((place, message.value() or b""))

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1


@dataclass(slots=True, kw_only=True)
class Decided:
    """Values by what became of their transactions; `unsure`: an error that leaves it open which."""

    committed: set[bytes]
    aborted: set[bytes]
    unsure: set[bytes]


class Transactions:
    """Writes to one partition, in a thread of its own, while it is entered; every third is aborted."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"{topic}-{partition}",
            "transaction.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 500,
            "linger.ms": 5,
        }
        self._decided = Decided(committed=set(), aborted=set(), unsure=set())
        self._ending = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="transactions", daemon=True)

    def __enter__(self) -> Transactions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(END_S)

    @property
    def count(self) -> int:
        return len(self._decided.committed)

    def close(self) -> Decided:
        self.__exit__()
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure
        return self._decided

    def _run(self) -> None:
        try:
            producer, number = self._new(), 0
            while not self._ending.wait(0.02):
                number += 1
                values = [value_of(b"tx %08d %d " % (number, each)) for each in range(EACH)]
                became = self._one(producer, values, aborts=number % 3 == 0)
                if became is None:
                    self._decided.unsure.update(values)
                    producer = self._new()
                else:
                    became.update(values)
        except BaseException as failed:  # noqa: BLE001 told to the thread that waits
            self._failure = failed

    def _new(self) -> Producer:
        producer = Producer(self._settings, logger=kafka.SILENT)
        assert self._call(producer, lambda: producer.init_transactions(CALL_S)), "it cannot begin"
        return producer

    def _one(self, producer: Producer, values: list[bytes], *, aborts: bool) -> set[bytes] | None:
        """The set that the values belong to; None where it is not known, and the producer is done with."""
        try:
            producer.begin_transaction()
            for value in values:
                producer.produce(self._topic, value=value, partition=self._partition)
            producer.flush(CALL_S)
            if not aborts and self._call(producer, lambda: producer.commit_transaction(CALL_S)):
                return self._decided.committed
            if self._call(producer, lambda: producer.abort_transaction(CALL_S)):
                return self._decided.aborted
        except KafkaException:
            pass
        return None

    def _call(self, producer: Producer, call: Any) -> bool:
        """Whether it was done; False if the transaction has to be aborted. Raises what ends the producer."""
        for _ in range(CALLS_MAX):
            try:
                call()
                return True
            except KafkaException as failed:
                error = failed.args[0]
                if error.txn_requires_abort():
                    return False
                if not error.retriable():
                    raise
        raise AssertionError("it was tried again and again")


def value_of(text: bytes) -> bytes:
    """Of the length that all have here."""
    return text + b"." * (VALUE_BYTES - len(text))


def by_kcat(bootstrap: str, topic: str) -> dict[Place, bytes]:
    """Debian's kcat, from the beginning of every partition to its end."""
    command = [KCAT, "-b", bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q"]
    command += ["-X", "check.crcs=true", "-f", "%p %o %S %s\n"]
    told = subprocess.run(command, capture_output=True, timeout=TOOL_S, check=True).stdout
    found: dict[Place, bytes] = {}
    at = 0
    while at < len(told):
        head = re.compile(rb"(\d+) (\d+) (\d+) ").match(told, at)
        assert head is not None, told[at : at + 40]
        partition, offset, size = map(int, head.groups())
        place = Place(partition, offset)
        assert place not in found, f"{place} came twice"
        found[place] = told[head.end() : head.end() + size]
        at = head.end() + size + 1
    return found


def by_console_consumer(bootstrap: str, topic: str, count: int) -> dict[Place, bytes]:
    """Kafka's own Java consumer, in a group, read_committed, until so many came."""
    ran = run_kafka_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(count), "--timeout-ms", "120000"),
        *("--command-property", "isolation.level=read_committed"),
        *("--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true"),
    )
    found: dict[Place, bytes] = {}
    at, head = 0, re.compile(rb"Partition:(\d+)\tOffset:(\d+)\t")
    while at < len(ran.stdout):
        told = head.match(ran.stdout, at)
        assert told is not None, ran.stdout[at : at + 60]
        place = Place(*map(int, told.groups()))
        assert place not in found, f"{place} came twice"
        found[place] = ran.stdout[told.end() : told.end() + VALUE_BYTES]
        at = told.end() + VALUE_BYTES + 1
    return found


def by_spark(spark: SparkSession, bootstrap: str, topic: str, tasks: int) -> dict[Place, bytes]:
    """Spark's Kafka source, with more tasks than partitions, read_committed."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.isolation.level": "read_committed",
        "subscribe": topic,
        "startingOffsets": "earliest",
        "minPartitions": str(tasks),
    }
    rows = spark.read.format("kafka").options(**options).load().select("partition", "offset", "value")
    found = [(Place(row.partition, row.offset), bytes(row.value)) for row in rows.collect()]
    assert len({place for place, _ in found}) == len(found), "an offset came twice"
    return dict(found)


def run_kafka_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    java = [str(find_java().path), *short_lived(heap_mib=256), "-cp", classpath("broker"), name]
    return subprocess.run([*java, *arguments], capture_output=True, timeout=TOOL_S, check=True)


def from_time(bootstrap: str, topic: str, partitions: Sequence[int], time_ms: int) -> dict[int, int]:
    """Where each partition's first record of that time or later is, by the endpoint's own word."""
    asking = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"}, logger=kafka.SILENT)
    wanted = [TopicPartition(topic, each, time_ms) for each in partitions]
    found = asking.offsets_for_times(wanted, timeout=CALL_S)
    asking.close()
    assert all(each.error is None and each.offset >= 0 for each in found), found
    return {each.partition: each.offset for each in found}
