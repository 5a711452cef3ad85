"""Reads `__seawall_audit` for what agents say of each other's concern, in a thread of its own.

From a recent window on: what was said before is of no use to who acts now. Every partition is read by every
agent; its place is kept in memory only.

Owns the consumer and the thread. Refuses to be evidence: a record that cannot be read is counted and passed,
ingest keeps it.

Invariant: whatever goes wrong is tried again and is in `trouble`, until it is told to stop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from types import TracebackType
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from audit_engine.errors import AuditTopicSilent, EventError
from audit_engine.topic import TOPIC
from audit_engine.wire import Envelope, decode
from rules.events import TierState
from tiering.cluster.interface import Unknown
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.quiet import QUIET

WINDOW_MS = 3_600_000
POLL_S = 0.25
LOOK_AGAIN_S = 60.0  # for partitions that were added
ANSWER_S = 10.0
MESSAGES_AT_ONCE = 1_000
BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)

_log = logging.getLogger(__name__)

_DEFAULTS = {"client.id": "seawall-agent"}


class AuditFollower:
    """Calls `hear` with each event of these kinds. Begins with its making."""

    def __init__(
        self,
        config: Mapping[str, str],
        hear: Callable[[Envelope], object],
        *,
        topic: str = TOPIC,
        kinds: frozenset[str] = frozenset({TierState.kind}),
        window_ms: int = WINDOW_MS,
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        self._config = dict(config)
        self._hear = hear
        self._topic = topic
        self._marks = tuple(f'"kind":"{kind}"'.encode() for kind in kinds)
        self._since_ms = time.time_ns() // 1_000_000 - window_ms
        self._look_again_s = look_again_s
        self._positions: dict[int, int] = {}
        self.heard = 0
        self.malformed = 0
        self.trouble: str | None = None
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="audit-follow", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Return when the thread has ended."""
        self._stopping.set()
        self._thread.join()

    def __enter__(self) -> AuditFollower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            before = self.heard
            try:
                self._follow()
            except Exception as trouble:  # noqa: BLE001 the worker's edge: without it, nobody would hear anything
                self.trouble = trouble.args[0].str() if isinstance(trouble, KafkaException) else str(trouble)
                _log.warning("reading %s begins anew: %s", self._topic, self.trouble)
                failures = 0 if self.heard != before else failures + 1
                self._stopping.wait(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])

    def _follow(self) -> None:
        """Read until stopped, or until the topic has more partitions."""
        partitions = self._partitions()
        with self._consumer() as consumer:
            places = self._begin(consumer, partitions)
            consumer.assign([ClientPartition(self._topic, *place) for place in places])
            look_at_s = time.monotonic() + self._look_again_s
            while not self._stopping.is_set():
                for message in consumer.consume(MESSAGES_AT_ONCE, POLL_S):
                    self._take(message)
                if time.monotonic() >= look_at_s:
                    if self._partitions() != partitions:
                        return
                    self.trouble = None
                    look_at_s = time.monotonic() + self._look_again_s

    def _partitions(self) -> list[int]:
        cluster = KafkaCluster(self._config, monotonic_s=time.monotonic)
        described = cluster.describe_topics([self._topic])[self._topic]
        if isinstance(described, Unknown):
            raise AuditTopicSilent(topic=self._topic, what="described", why=described.reason)
        return sorted(described.partitions)

    def _begin(self, consumer: Consumer, partitions: list[int]) -> Iterator[tuple[int, int]]:
        """Where to read each partition from: where we were, or the first event of the window."""
        for partition in partitions:
            if partition not in self._positions:
                asked = ClientPartition(self._topic, partition, self._since_ms)
                self._positions[partition] = first_offset(consumer, asked)
            yield partition, self._positions[partition]

    def _take(self, message: Message) -> None:
        error, value = message.error(), message.value()
        if error is not None:
            if error.fatal() or error.code() == KafkaError._UNKNOWN_TOPIC:
                raise KafkaException(error)
            self.trouble = error.str()  # librdkafka tries again by itself
            return
        self.trouble = None
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self._positions[partition] = offset + 1
        if value is None or not any(mark in value for mark in self._marks):
            return
        try:
            envelope = decode(value, f"{self._topic}-{partition} at offset {offset}")
        except EventError:
            self.malformed += 1
            return
        self.heard += 1
        self._hear(envelope)

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        settings: dict[str, Any] = {
            **_DEFAULTS,
            **self._config,
            "group.id": "seawall-audit-follow",  # librdkafka wants one; nothing is joined or committed
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "allow.auto.create.topics": "false",
            "error_cb": self._on_error,
        }
        consumer = Consumer(settings, logger=QUIET)
        try:
            yield consumer
        finally:
            consumer.close()

    def _on_error(self, error: KafkaError) -> None:
        self.trouble = error.str()


class Offsets(Protocol):
    """What `first_offset` asks of a consumer."""

    def get_watermark_offsets(
        self, partition: ClientPartition, timeout: float, cached: bool
    ) -> tuple[int, int] | None: ...

    def offsets_for_times(
        self, partitions: list[ClientPartition], timeout: float
    ) -> list[ClientPartition]: ...


def first_offset(consumer: Offsets, asked: ClientPartition) -> int:
    """The first record from the time in `asked` on; where there is none yet, the one that comes next."""
    # The end is asked for first: what is appended between the two questions is read, not passed.
    bounds = consumer.get_watermark_offsets(asked, timeout=ANSWER_S, cached=False)
    if bounds is None:
        raise AuditTopicSilent(topic=asked.topic, what="read", why="no leader answered")
    [found] = consumer.offsets_for_times([asked], timeout=ANSWER_S)
    if found.error is not None:
        raise KafkaException(found.error)
    return found.offset if found.offset >= 0 else bounds[1]
