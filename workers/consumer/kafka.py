"""The one module that knows confluent-kafka: a group member as a `Source`, a producer as `DeadLetters`.

Owns the clients. Refuses settings that would commit or store offsets behind our back. Ends of partitions are
asked for, since they tell the position behind trailing transaction markers and compacted records, where no
record is.

What was looked up rather than guessed: a pause throws away what librdkafka read ahead, so `loop` seldom
pauses; a batch waits for its last record or its timeout, so the first is polled and the rest taken without
waiting; callbacks run within `poll`, `consume` and `close`; a synchronous commit takes no timeout, so it gets
a thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from workers.consumer.commits import CommitAnswer, CommitPoint
from workers.consumer.ports import Letter, LetterAnswer, Listener, Polled, SourceBroken, Start
from workers.consumer.records import Headers, Partition, Record

CONSUMER_SETTINGS: Mapping[str, Any] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "auto.offset.reset": "earliest",  # the client's own choice, latest, passes over records in silence
    "fetch.wait.max.ms": 100,  # measured: a resumed partition waits for a fetch in flight, 500 ms by default
    "queued.max.messages.kbytes": 16 * 1024,  # for each partition; what is in flight is bounded by us
}
OURS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
}
PRODUCER_SETTINGS: Mapping[str, Any] = {"acks": "all", "enable.idempotence": True, "linger.ms": 5}
COMMITTED_WAIT_S = 5.0

HEADER_PREFIX = "dead-letter-"


class KafkaSource:
    """A member of a consumer group. `settings` are librdkafka's, at least bootstrap.servers and group.id."""

    def __init__(
        self, settings: Mapping[str, Any], topics: Sequence[str], *, logger: logging.Logger | None = None
    ) -> None:
        clash = {name for name in OURS if settings.get(name, OURS[name]) != OURS[name]}
        if clash:
            raise ValueError(f"these settings are not for the taking: {', '.join(sorted(clash))}")
        merged = {**CONSUMER_SETTINGS, **settings, **OURS, "on_commit": self._on_commit}
        protocol = str(merged.get("group.protocol", "classic"))
        if protocol == "consumer":
            del merged["partition.assignment.strategy"]
        self._is_cooperative = protocol == "consumer" or "cooperative" in str(
            merged["partition.assignment.strategy"]
        )
        self._settings, self._topics = merged, list(topics)
        self._logger = logger or logging.getLogger("workers.consumer.client")
        self._client: Consumer | None = None
        self._listener: Listener | None = None
        self._known: dict[tuple[str, int], Partition] = {}

    def open(self, listener: Listener) -> None:
        self._listener = listener
        self._client = Consumer(dict(self._settings), logger=self._logger)
        callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
        self._client.subscribe(self._topics, **callbacks)

    def poll(self, records_max: int, timeout_s: float) -> Polled:
        client = self._consumer
        records: list[Record] = []
        ends: list[tuple[Partition, int]] = []
        try:
            if timeout_s > 0 or records_max <= 1:
                first = client.poll(timeout_s)
                if first is not None:
                    self._sort_out(first, records, ends)
                elif timeout_s > 0:
                    return Polled()
            if records_max > 1:
                for message in client.consume(records_max - len(records), 0):
                    self._sort_out(message, records, ends)
        except KafkaException as failure:
            raise SourceBroken(str(failure)) from failure
        return Polled(records, ends)

    def pause(self, partitions: Collection[Partition]) -> None:
        self._consumer.pause(_named(partitions))

    def resume(self, partitions: Collection[Partition]) -> None:
        self._consumer.resume(_named(partitions))

    def commit(self, points: Mapping[Partition, CommitPoint]) -> None:
        try:
            self._consumer.commit(offsets=_offsets(points), asynchronous=True)
        except KafkaException as failure:
            raise SourceBroken(str(failure)) from failure

    def commit_and_wait(
        self, points: Mapping[Partition, CommitPoint], *, deadline_s: float
    ) -> Sequence[CommitAnswer]:
        answers: list[CommitAnswer] = []
        client, asked = self._consumer, _offsets(points)

        def ask() -> None:
            try:
                answers.extend(
                    _answer(each) for each in client.commit(offsets=asked, asynchronous=False) or ()
                )
            except KafkaException as failure:
                answers.extend(_unanswered(points, str(failure)))

        asking = threading.Thread(target=ask, name="commit", daemon=True)
        asking.start()
        asking.join(deadline_s)
        if asking.is_alive():
            return _unanswered(points, f"no answer within {deadline_s:.1f} s")
        return answers

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def _consumer(self) -> Consumer:
        assert self._client is not None, "open it first"
        return self._client

    def _sort_out(self, message: Message, records: list[Record], ends: list[tuple[Partition, int]]) -> None:
        error = message.error()
        if error is None:
            records.append(self._record(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            ends.append((self._partition(message), _known(message.offset())))
        elif not error.retriable():
            raise SourceBroken(f"{message.topic()}-{message.partition()}: {error.str()}")

    def _record(self, message: Message) -> Record:
        return Record(
            self._partition(message),
            _known(message.offset()),
            _bytes(message.key()),
            _bytes(message.value()),
            message.timestamp()[1],
            _headers(message),
            _epoch(message.leader_epoch()),
        )

    def _partition(self, message: Message) -> Partition:
        name = (message.topic(), message.partition())
        found = self._known.get(name)  # type: ignore[arg-type]  # a message of a consumer has both
        if found is None:
            found = Partition(str(name[0]), _known(name[1]))
            self._known[found] = found
        return found

    def _on_assign(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        assert self._listener is not None
        starts = {Partition(each.topic, each.partition): Start() for each in partitions}
        try:
            for each in client.committed(partitions, timeout=COMMITTED_WAIT_S):
                if each.error is None and each.offset >= 0:
                    start = Start(each.offset, each.metadata or "", _epoch(each.leader_epoch))
                    starts[Partition(each.topic, each.partition)] = start
        except KafkaException as failure:
            self._logger.warning("what was committed could not be asked for: %s", failure)
        (client.incremental_assign if self._is_cooperative else client.assign)(partitions)
        if partitions:
            client.resume(partitions)  # librdkafka remembers a pause beyond the assignment
        self._listener.assigned(starts)

    def _on_revoke(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        assert self._listener is not None
        self._listener.revoked([Partition(each.topic, each.partition) for each in partitions])

    def _on_lost(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        assert self._listener is not None
        self._listener.lost([Partition(each.topic, each.partition) for each in partitions])

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if self._listener is not None:
            self._listener.committed([_answer(each, error) for each in partitions])


class KafkaDeadLetters:
    """Letters go to one topic, under the record's key, with where they came from and why as headers."""

    def __init__(
        self, settings: Mapping[str, Any], topic: str, *, logger: logging.Logger | None = None
    ) -> None:
        self._topic = topic
        self._answers: list[LetterAnswer] = []
        self._producer = Producer(
            {**PRODUCER_SETTINGS, **settings}, logger=logger or logging.getLogger("workers.consumer.client")
        )

    def send(self, number: int, letter: Letter) -> None:
        record = letter.record
        try:
            self._producer.produce(
                self._topic,
                value=record.value,
                key=record.key,
                headers=letter_headers(letter),
                on_delivery=partial(self._delivered, number),
            )
        except (BufferError, KafkaException) as failure:
            self._answers.append(LetterAnswer(number, str(failure)))

    def answers(self) -> Sequence[LetterAnswer]:
        self._producer.poll(0)
        answers, self._answers = self._answers, []
        return answers

    def close(self, *, deadline_s: float) -> None:
        self._producer.flush(deadline_s)

    def _delivered(self, number: int, error: KafkaError | None, _: Message) -> None:
        self._answers.append(LetterAnswer(number, None if error is None else error.str()))


def letter_headers(letter: Letter) -> list[tuple[str, str | bytes | None]]:
    """The record's own headers, and ours behind them."""
    record = letter.record
    ours = {
        "topic": record.partition.topic,
        "partition": str(record.partition.number),
        "offset": str(record.offset),
        "timestamp-ms": str(record.timestamp_ms),
        "leader-epoch": str(record.leader_epoch),
        "attempts": str(letter.attempts),
        "reason": letter.reason,
    }
    own: list[tuple[str, str | bytes | None]] = list(record.headers)
    return own + [(HEADER_PREFIX + name, value.encode()) for name, value in ours.items()]


def _headers(message: Message) -> Headers:
    found: Any = message.headers()  # its stubs allow for what a producer may pass
    return tuple((name, _bytes(value)) for name, value in found) if found else ()


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _epoch(said: int | None) -> int:
    return -1 if said is None else said


def _known(number: int | None) -> int:
    assert number is not None  # a message that a consumer hands out has a place
    return number


def _named(partitions: Collection[Partition]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.number) for each in partitions]


def _offsets(points: Mapping[Partition, CommitPoint]) -> list[TopicPartition]:
    return [
        TopicPartition(
            partition.topic,
            partition.number,
            point.offset,
            point.metadata,
            **({"leader_epoch": point.leader_epoch} if point.leader_epoch >= 0 else {}),
        )
        for partition, point in points.items()
    ]


def _answer(each: TopicPartition, error: KafkaError | None = None) -> CommitAnswer:
    why = error or each.error
    return CommitAnswer(
        partition=Partition(each.topic, each.partition), offset=each.offset, error=why.str() if why else None
    )


def _unanswered(points: Mapping[Partition, CommitPoint], why: str) -> list[CommitAnswer]:
    return [
        CommitAnswer(partition=partition, offset=point.offset, error=why)
        for partition, point in points.items()
    ]
