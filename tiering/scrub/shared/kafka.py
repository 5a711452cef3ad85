"""A shared scrub over Kafka: the coordinator's post, and the voice of a worker.

    KafkaPost     sends tasks; reads the answers that came after it was opened
    KafkaVoice    says answers, and that the worker is there

The worker's tasks come by `workers.consumer.kafka`. A task has no message behind it that must wait, so each
may be given up by itself; an answer is durable when `say` returns.

Owns the clients. Invariant: no answer to a task of this run is before the place from which answers are read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Event
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tiering.cluster.quiet import QUIET
from tiering.scrub.shared.errors import ScrubTopicSilent
from tiering.scrub.shared.handler import Unsaid
from tiering.scrub.shared.topics import MESSAGE_BYTES_MAX, Names
from tiering.scrub.shared.words import HEADER, Answer, Hail, encode_word
from tiering.segments.records import SegmentId

END_S = 30.0
DELIVER_S = 30.0
POLL_S = 0.1
READ_AT_ONCE = 500
NOBODYS_GROUP = "seawall-scrub-coordinator"  # librdkafka wants a name; nothing is joined or committed
_PRODUCER: Mapping[str, Any] = {
    "acks": "all",
    "compression.type": "zstd",
    "delivery.timeout.ms": int(DELIVER_S * 1000),
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.max.bytes": MESSAGE_BYTES_MAX,
    "partitioner": "murmur2_random",  # as Kafka's own clients do
}

_log = logging.getLogger(__name__)


class KafkaPost:
    """Of one run. For one thread. Raises ScrubTopicSilent where the end of the answers is not to be had."""

    def __init__(self, config: Mapping[str, str], names: Names) -> None:
        self._names = names
        self._refused: list[tuple[SegmentId, str]] = []
        self._producer = Producer({**config, **_PRODUCER}, logger=QUIET)
        self._consumer = Consumer(
            {
                **config,
                "group.id": NOBODYS_GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                "isolation.level": "read_committed",
                "max.poll.interval.ms": 86_400_000,  # nobody polls while the bucket is listed
            },
            logger=QUIET,
        )
        answers = TopicPartition(names.answers, 0)
        try:
            _, answers.offset = self._consumer.get_watermark_offsets(answers, timeout=END_S, cached=False)
        except (KafkaException, TypeError) as unknown:  # no answer in time is None
            self._consumer.close()
            why = unknown.args[0].str() if isinstance(unknown, KafkaException) else "nobody answered"
            raise ScrubTopicSilent(topic=names.answers, what="asked for its end", why=why) from unknown
        self._consumer.assign([answers])

    def send(self, segment_id: SegmentId, run: str, value: bytes) -> None:
        try:
            self._producer.produce(
                self._names.tasks,
                key=segment_id.encode(),
                value=value,
                headers=[(HEADER, run.encode())],
                on_delivery=partial(self._delivered, segment_id),
            )
        except (BufferError, KafkaException) as refused:
            self._refused.append((segment_id, str(refused)))
        self._producer.poll(0)

    def refused(self) -> Sequence[tuple[SegmentId, str]]:
        self._producer.poll(0)
        found, self._refused = self._refused, []
        return found

    def receive(self, timeout_s: float) -> Sequence[bytes]:
        found: list[bytes] = []
        first = self._consumer.poll(timeout_s)
        if first is None:
            return found
        for message in (first, *self._consumer.consume(READ_AT_ONCE, 0)):
            if (error := message.error()) is not None:
                _log.debug("reading %s: %s", self._names.answers, error.str())
            elif (value := message.value()) is not None:
                found.append(value if isinstance(value, bytes) else value.encode())
        return found

    def close(self) -> None:
        """What was not sent yet is nobody's any more."""
        self._producer.purge()
        self._producer.flush(0)
        self._consumer.close()

    def _delivered(self, segment_id: SegmentId, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._refused.append((segment_id, error.str()))


class KafkaVoice:
    """Of one worker. For any number of threads."""

    def __init__(self, config: Mapping[str, str], names: Names) -> None:
        self._names = names
        self._producer = Producer({**config, **_PRODUCER}, logger=QUIET)

    def say(self, answer: Answer) -> None:
        """Returns when every in-sync replica has it. Raises Unsaid."""
        done = Event()
        said: list[KafkaError | None] = []

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            said.append(error)
            done.set()

        try:
            self._producer.produce(
                self._names.answers,
                key=answer.segment_id.encode(errors="replace"),
                value=encode_word(answer),
                partition=0,
                on_delivery=on_delivery,
            )
        except (BufferError, KafkaException) as refused:
            raise Unsaid(str(refused)) from refused
        last_moment_s = time.monotonic() + DELIVER_S + 1.0
        while not done.is_set():
            if time.monotonic() >= last_moment_s:
                raise Unsaid("no acknowledgement in time")
            self._producer.poll(POLL_S)
        if (error := said[0]) is not None:
            raise Unsaid(error.str())

    def hail(self, hail: Hail) -> None:
        """Say it, and do not wait: the next one is soon."""
        try:
            self._producer.produce(
                self._names.answers, key=hail.worker.encode(), value=encode_word(hail), partition=0
            )
        except (BufferError, KafkaException) as refused:
            _log.debug("a hail was not said: %s", refused)
        self._producer.poll(0)

    def close(self) -> None:
        self._producer.flush(1.0)
