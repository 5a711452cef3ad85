"""The shared log as a topic of one partition: its order is the order of all.

Owns a producer and a consumer. The topic is made by whoever starts the scaler; it keeps links for some hours,
and nothing else is in it. Refuses what it cannot read: a link of a newer layout, or bytes of somebody else's,
is counted and passed over.

| field of a record | what |
|---|---|
| key | the object's key: namespace/name/fingerprint of its options |
| value | the Link as JSON (`codec`); `v` in the header `seawall-scaler` is the layout, 1 |
| timestamp | when it was made, or appended: how old it is when it is read later |
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Event
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from workers.scaler.chain import Link
from workers.scaler.codec import NotReadable, dumps, loads
from workers.scaler.ports import Unwritten, Written

TOPIC = "__seawall_scaler"
LAYOUT = b"1"
HEADER = "seawall-scaler"
KEPT_MS = 6 * 3_600_000  # longer than any window is by default
SEGMENT_MS = 3_600_000
# What is deleted is what is in a segment that is closed: without a small one, nothing would ever go.
TOPIC_SETTINGS: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": str(KEPT_MS),
    "segment.ms": str(SEGMENT_MS),
    "message.timestamp.type": "LogAppendTime",  # one clock for all links
}
APPEND_S = 5.0
END_S = 5.0
READ_AT_ONCE = 500

_log = logging.getLogger(__name__)


class KafkaLog:
    """One reader and writer. Reads from the beginning of what is kept. `read` is one thread's alone."""

    def __init__(
        self,
        librdkafka: Mapping[str, str],
        *,
        topic: str = TOPIC,
        wall_s: Callable[[], float] = time.time,
        append_s: float = APPEND_S,
    ) -> None:
        self._topic = topic
        self._wall_s = wall_s
        self._append_s = append_s
        self.unreadable = 0
        base: dict[str, Any] = {"client.id": "seawall-scaler", **librdkafka}
        self._producer = Producer(
            {
                **base,
                "acks": "all",
                "enable.idempotence": "true",
                "linger.ms": "0",
                "delivery.timeout.ms": str(int(append_s * 1000)),
                "compression.type": "zstd",
            },
            logger=_log,
        )
        self._consumer = Consumer(
            {
                **base,
                "group.id": "seawall-scaler",  # it joins none, and commits nothing
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            },
            logger=_log,
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self._end: int | None = None  # of the log, when it was first asked for
        self._caught_up = False

    def append(self, link: Link) -> None:
        done = Event()
        said: list[KafkaError | None] = []

        def on_delivery(error: KafkaError | None, _: object) -> None:
            said.append(error)
            done.set()

        try:
            self._producer.produce(
                self._topic,
                partition=0,
                key=link.object_key.encode(),
                value=dumps(link),
                headers=[(HEADER, LAYOUT)],
                on_delivery=on_delivery,
            )
        except (BufferError, KafkaException) as refused:
            raise Unwritten(str(refused)) from refused
        self._producer.flush(self._append_s + 1.0)
        if not done.is_set():
            raise Unwritten(f"no acknowledgement within {self._append_s + 1.0:g} s")
        if said[0] is not None:
            raise Unwritten(said[0].str())

    def read(self, timeout_s: float) -> Iterator[Written]:
        self._look_for_end()
        for message in self._consumer.consume(READ_AT_ONCE, timeout_s):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    self._caught_up = True
                else:
                    _log.warning("reading %s: %s", self._topic, error.str())
                continue
            was_caught_up = self._caught_up
            self._passed(message.offset())
            try:
                if dict(message.headers() or []).get(HEADER) != LAYOUT:
                    raise NotReadable("another layout, or none")
                link = loads(Link, message.value() or b"")
            except NotReadable as refused:
                self.unreadable += 1
                _log.warning("%s at %s is no link: %s", self._topic, message.offset(), refused)
                continue
            _, written_ms = message.timestamp()
            # What is read as it is written is new: two machines' clocks are not compared for that.
            age_s = 0.0 if was_caught_up else max(0.0, self._wall_s() - written_ms / 1000)
            yield Written(link=link, age_s=age_s)

    def _look_for_end(self) -> None:
        """A log that is written all the time has an end, though a client is told of none: it says so of an
        answer that is empty only."""
        if self._end is not None or self._caught_up:
            return
        try:
            found = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, 0), timeout=END_S, cached=False
            )
        except KafkaException as unknown:
            _log.warning("the end of %s: %s", self._topic, unknown.args[0].str())
            return
        if found is not None:
            self._end = found[1]

    def _passed(self, offset: int | None) -> None:
        if self._end is not None and offset is not None and offset + 1 >= self._end:
            self._caught_up = True

    def is_caught_up(self) -> bool:
        return self._caught_up

    def close(self) -> None:
        self._consumer.close()
