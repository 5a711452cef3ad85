"""What goes through it: a steady load to two topics, a reader that follows both, readers that come anew.

    soaked           all of it is kept, on disk and in the tier
    soaked-rolling   brokers delete what is older than a while, and the tier what is older than a longer one

The n-th record of each partition has the number n in it and the offset n: a reader knows what is next.
"""

from __future__ import annotations

import threading
from contextlib import closing
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from seawall.local import kafka

KEPT, ROLLING = "soaked", "soaked-rolling"
TOPICS = (KEPT, ROLLING)
PARTITIONS = 3
PLACES = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
VALUE_BYTES = 1_000
COLD_RECORDS = 500
COLD_ATTEMPTS = 3  # what is read first may expire in between
STOP_S = 60.0
ANSWER_S = 30.0


def value_of(number: int) -> bytes:
    return b"%012d" % number + b"." * (VALUE_BYTES - 12)


def consumer_of(bootstrap: str) -> Consumer:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "soak",
        "enable.auto.commit": "false",
        "auto.offset.reset": "error",
    }
    return Consumer(config, logger=kafka.SILENT)


class Load:
    """So many records a second, to all partitions in turn, until it is left."""

    def __init__(self, bootstrap: str, records_per_s: float) -> None:
        self.sent = 0  # to each partition
        self.failed: list[str] = []
        self._every_s = len(PLACES) / records_per_s
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 50}, logger=kafka.SILENT
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    @property
    def records(self) -> int:
        return self.sent * len(PLACES)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Returns when all that was sent is acknowledged."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(STOP_S) == 0

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            for topic, partition in PLACES:
                self._producer.produce(
                    topic, value_of(self.sent), partition=partition, on_delivery=self._heard
                )
            self.sent += 1  # the number that the next record of each partition gets
            self._producer.poll(0)

    def _heard(self, error: object, _: object) -> None:
        if error is not None:
            self.failed.append(str(error))


class Reader:
    """Follows both topics by the endpoint, from the first record on; each record must be the next one."""

    def __init__(self, bootstrap: str) -> None:
        self.read = dict.fromkeys(PLACES, 0)
        self.wrong: list[str] = []
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    @property
    def records(self) -> int:
        return sum(self.read.values())

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def has_all(self, of_each: int) -> bool:
        return all(each == of_each for each in self.read.values())

    def _run(self) -> None:
        with closing(consumer_of(self._bootstrap)) as consumer:
            consumer.assign([TopicPartition(*place, 0) for place in PLACES])
            while not self._stop.is_set():
                for message in consumer.consume(500, timeout=0.5):
                    place, offset = (message.topic(), message.partition()), message.offset()
                    if message.error() is not None or place not in self.read or offset is None:
                        self.wrong.append(str(message.error()))
                        continue
                    wanted = self.read[place]
                    if offset != wanted or message.value() != value_of(wanted):
                        self.wrong.append(f"{place}: {offset}, not {wanted}")
                    self.read[place] = offset + 1


def read_cold(bootstrap: str) -> list[str]:
    """The first records of each partition by a client that has nothing yet; what was wrong with them."""
    wrong: list[str] = []
    with closing(consumer_of(bootstrap)) as consumer:
        for topic, partition in PLACES:
            found = [_read_first(consumer, TopicPartition(topic, partition))]
            while found[-1] and topic == ROLLING and len(found) < COLD_ATTEMPTS:
                found.append(_read_first(consumer, TopicPartition(topic, partition)))
            wrong += found[-1]
    return wrong


def _read_first(consumer: Consumer, place: TopicPartition) -> list[str]:
    name = f"{place.topic}-{place.partition}, cold"
    try:
        start, end = consumer.get_watermark_offsets(place, timeout=ANSWER_S)
        if place.topic == KEPT and start:
            return [f"{name}: begins at {start}"]
        wanted = min(COLD_RECORDS, end - start)
        consumer.assign([TopicPartition(place.topic, place.partition, start)])
        found: list[tuple[int | None, bytes | None]] = []
        while len(found) < wanted and (some := consumer.consume(wanted - len(found), timeout=ANSWER_S)):
            if errors := [str(error) for each in some if (error := each.error()) is not None]:
                return [f"{name}: {errors[0]}"]
            found += [(each.offset(), each.value()) for each in some]
    except KafkaException as error:
        return [f"{name}: {error}"]
    if found != [(number, value_of(number)) for number in range(start, start + wanted)]:
        return [f"{name}: {len(found)} records were not the {wanted} from {start} on"]
    return []
