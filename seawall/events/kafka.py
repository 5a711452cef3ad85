"""Reads `__seawall_audit` as it lies there: from a time on, to its end, or on and on.

Owns the consumer. Refuses to decode, to join a group, or to commit anything.

Invariant: what it ends after is everything that was there when it began; if Kafka falls silent before,
that is an error, not the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from audit_engine.digests.kafka import first_offset
from audit_engine.errors import AuditTopicSilent
from audit_engine.topic import TOPIC
from tiering.cluster.interface import Unknown
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.quiet import QUIET

POLL_S = 0.2
SILENCE_MAX_S = 30.0
MESSAGES_AT_ONCE = 1_000
LOOK_AGAIN_S = 60.0  # for partitions that were added


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A record and its place."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None


def hear(
    config: Mapping[str, str], *, since_ms: int, is_endless: bool = False, topic: str = TOPIC
) -> Iterator[Heard]:
    """The records from this time on: of one partition in order, of several by time as far as read at once.

    Raises AuditTopicSilent.
    """
    settings: dict[str, Any] = {
        **config,
        "group.id": "seawall-events-tail",  # librdkafka wants one; nothing is joined or committed
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "enable.partition.eof": "true",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
    }
    consumer = Consumer(settings, logger=QUIET)
    try:
        yield from _Tail(consumer, config, topic, since_ms).read(is_endless=is_endless)
    except KafkaException as refused:
        error: KafkaError = refused.args[0]
        raise AuditTopicSilent(topic=topic, what="read", why=error.str()) from refused
    finally:
        consumer.close()


class _Tail:
    def __init__(self, consumer: Consumer, config: Mapping[str, str], topic: str, since_ms: int) -> None:
        self._consumer = consumer
        self._config = config
        self._topic = topic
        self._positions: dict[int, int] = {}
        self._unread: set[int] = set()  # partitions whose end has not been seen
        self._trouble = "no answer came"
        self._assign(since_ms)

    def read(self, *, is_endless: bool) -> Iterator[Heard]:
        silent_since_s = look_at_s = time.monotonic()
        while is_endless or self._unread:
            messages = self._consumer.consume(MESSAGES_AT_ONCE, POLL_S)
            heard = [each for message in messages if (each := self._taken(message)) is not None]
            yield from sorted(heard, key=lambda each: each.timestamp_ms)
            now_s = time.monotonic()
            if messages or is_endless:
                silent_since_s = now_s
            elif now_s - silent_since_s > SILENCE_MAX_S:
                raise AuditTopicSilent(topic=self._topic, what="read to its end", why=self._trouble)
            if is_endless and now_s - look_at_s > LOOK_AGAIN_S:
                self._assign(0)
                look_at_s = now_s

    def _assign(self, since_ms: int) -> None:
        """Read every partition: from where we are in it, or from this time on."""
        partitions = self._partitions()
        if self._positions.keys() == partitions:
            return
        for partition in partitions - self._positions.keys():
            asked = ClientPartition(self._topic, partition, since_ms)
            self._positions[partition] = first_offset(self._consumer, asked)
        self._unread = set(partitions)
        self._consumer.assign([ClientPartition(self._topic, *at) for at in self._positions.items()])

    def _partitions(self) -> set[int]:
        cluster = KafkaCluster(dict(self._config), monotonic_s=time.monotonic)
        described = cluster.describe_topics([self._topic])[self._topic]
        if isinstance(described, Unknown):
            raise AuditTopicSilent(topic=self._topic, what="described", why=described.reason)
        return set(described.partitions)

    def _taken(self, message: Message) -> Heard | None:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF and partition is not None:
                self._unread.discard(partition)
            elif error.fatal() or error.code() == KafkaError._UNKNOWN_TOPIC:
                raise KafkaException(error)
            else:
                self._trouble = error.str()  # librdkafka tries again by itself
            return None
        assert partition is not None
        assert offset is not None
        self._positions[partition] = offset + 1
        _, timestamp_ms = message.timestamp()
        return Heard(partition=partition, offset=offset, timestamp_ms=timestamp_ms, value=message.value())
