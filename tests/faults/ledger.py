"""A producer that never stops, and the ledger of what it was told: each acknowledged record, by its place.

Every value is written once and names its partition and number, so that a record that comes back twice, or
from elsewhere, shows. The producer is idempotent with acks=all and tries for as long as the test may last:
what the ledger holds was promised.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition

from seawall.local.kafka import SILENT
from seawall.local.waiting import becomes_true

RECORDS_EACH = 4  # per partition and round
ROUND_S = 0.05
GIVE_UP_S = 600.0
VALUE_BYTES = 200
QUEUE_MAX = 20_000
READ_DEADLINE_S = 60.0


class Place(NamedTuple):
    """Where the broker said that a record is."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """What was acknowledged. `unplaced` without its offset: the first answer was lost with its broker, and
    the second said only that the record was there already."""

    by_place: dict[Place, bytes]
    unplaced: frozenset[bytes]

    def __len__(self) -> int:
        return len(self.by_place) + len(self.unplaced)

    def differences(self, read: dict[Place, bytes]) -> list[str]:
        """What of it is not there once, or is there and was never promised; empty if all is well."""
        lost = [f"{at} is lost" for at in sorted(self.by_place.keys() - read.keys())]
        other = [f"{at} is another" for at, value in self.by_place.items() if read.get(at, value) != value]
        rest = Counter(value for at, value in read.items() if at not in self.by_place)
        lost += [f"{value[:12]!r} is lost" for value in self.unplaced - rest.keys()]
        other += [f"{value[:12]!r} is there {n} times" for value, n in rest.items() if n > 1]
        other += [f"{value[:12]!r} was never promised" for value in rest.keys() - self.unplaced]
        return lost + other


class Ledger:
    """Writes in a thread of its own for as long as it is entered."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": "true",
                "delivery.timeout.ms": int(GIVE_UP_S * 1000),
                "retry.backoff.max.ms": 200,
                "linger.ms": 20,
                "batch.size": 16 * 1024,  # less than a segment
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 1000,
                "client.id": "ledger",
            },
            logger=SILENT,
        )
        self._lock = threading.Lock()
        self._acknowledged: dict[Place, bytes] = {}
        self._unplaced: list[bytes] = []
        self._repeated: list[Place] = []
        self._failures: list[KafkaError] = []
        self._written: Counter[int] = Counter()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write, name="ledger", daemon=True)

    def __enter__(self) -> Ledger:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()

    @property
    def count(self) -> int:
        """How many are acknowledged so far."""
        with self._lock:
            return len(self._acknowledged) + len(self._unplaced)

    def grows_by(self, records: int, *, deadline_s: float) -> bool:
        """Whether so many more are acknowledged in time: how a fault is given something to spoil."""
        wanted = self.count + records
        return becomes_true(lambda: self.count >= wanted, deadline_s=deadline_s)

    def close(self) -> Promised:
        """Stop writing, wait for every acknowledgement, and give them."""
        self._ending.set()
        self._thread.join()
        left = self._producer.flush(READ_DEADLINE_S)
        assert left == 0, f"{left} records were never acknowledged"
        assert not self._failures, f"not acknowledged: {self._failures[0]}"
        assert not self._repeated, f"two records were acknowledged at {self._repeated[0]}"
        assert sum(self._written.values()) == self.count
        return Promised(by_place=dict(self._acknowledged), unplaced=frozenset(self._unplaced))

    def _write(self) -> None:
        while not self._ending.wait(ROUND_S):
            self._producer.poll(0)
            if len(self._producer) > QUEUE_MAX:
                continue  # nobody leads; what is queued is enough
            for partition in range(self._partitions):
                for _ in range(RECORDS_EACH):
                    self._send(partition)

    def _send(self, partition: int) -> None:
        number = self._written[partition]
        self._written[partition] += 1
        value = b"%d:%08d " % (partition, number)
        value += bytes((number * 31 + at * 7) % 251 for at in range(VALUE_BYTES - len(value)))
        self._producer.produce(self.topic, value=value, partition=partition, on_delivery=self._note(value))

    def _note(self, value: bytes) -> Any:
        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failures.append(error)
                return
            partition, offset = message.partition(), message.offset()
            with self._lock:
                if partition is None or offset is None or offset < 0:
                    self._unplaced.append(value)
                    return
                place = Place(partition, offset)
                if place in self._acknowledged:
                    self._repeated.append(place)
                self._acknowledged[place] = value

        return note


def read_from_broker(bootstrap: str, topic: str, starts: dict[int, int]) -> dict[Place, bytes]:
    """Every record from these offsets to the end of each partition, each offset once."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",  # librdkafka wants one; nothing is committed
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed",
        },
        logger=SILENT,
    )
    found: dict[Place, bytes] = {}
    at_end: set[int] = set()

    def all_read() -> bool:
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                at_end.add(partition)
                continue
            assert offset is not None
            place = Place(partition, offset)
            assert place not in found, f"the broker gave {place} twice"
            found[place] = message.value() or b""
        return at_end >= set(starts)

    try:
        consumer.assign([ClientPartition(topic, each, start) for each, start in starts.items()])
        assert becomes_true(all_read, deadline_s=READ_DEADLINE_S), f"{topic} was not read to its end"
    finally:
        consumer.close()
    return found
