"""Appends records to the topic of metadata: the `Appender` of tiering.uploader.metadata.

One idempotent producer for all threads; each call waits for its own acknowledgement from every in-sync
replica. One thread runs librdkafka's callbacks.

Owns the producer. Refuses to retry: librdkafka has, up to the deadline, and in order; what remains is the
caller's to decide.

Invariant: `append` returns only an offset at which the topic holds the record. Anything else is an error:
AppendRefused where the record is known not to be there, AppendUncertain where that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout  # another class, before Python 3.11
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from rules.identity import LogId
from tiering.cluster.quiet import QUIET
from tiering.segments.errors import AppendRefused, AppendUncertain, SegmentMetadataError
from tiering.segments.keys import metadata_partition
from tiering.segments.topic import SegmentsTopic

DELIVERY_TIMEOUT_S = 30.0
GRACE_S = 5.0  # for a callback that comes later than it should
POLL_S = 0.1
LINGER_MS = 2  # records of many workers share a request; nobody notices

_DEFAULTS = {"client.id": "seawall-agent", "compression.type": "zstd"}

# The broker looked at the record, or librdkafka did, and it went no further.
_NEVER_APPENDED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_MSG,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)


class KafkaAppender:
    """For any number of threads."""

    def __init__(
        self,
        config: Mapping[str, str],
        topic: SegmentsTopic,
        *,
        delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
    ) -> None:
        self._topic = topic
        self._timeout_s = delivery_timeout_s
        self._settings: dict[str, Any] = {
            **_DEFAULTS,
            **config,
            "acks": "all",
            "enable.idempotence": "true",
            "delivery.timeout.ms": str(round(delivery_timeout_s * 1000)),
            "linger.ms": str(LINGER_MS),
            "allow.auto.create.topics": "false",
            "error_cb": self._on_error,
        }
        self._lock = Lock()
        self._producer = self._opened()
        self._is_broken = False
        self._closing = Event()
        self._poller = Thread(target=self._poll, name="metadata-append", daemon=True)
        self._poller.start()

    def append(self, log: LogId, key: bytes, value: bytes | None) -> int:
        """The record's offset, once every in-sync replica has it. None is a tombstone."""
        acknowledged: Future[int] = Future()

        def note(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None:
                acknowledged.set_exception(self._failed(key, error))
            elif offset is None or offset < 0:  # known as a duplicate, and no longer where
                why = "it is there, at an offset that the broker no longer knows"
                acknowledged.set_exception(self._uncertain(key, why))
            else:
                acknowledged.set_result(offset)

        self._send(metadata_partition(log, self._topic.partition_count), key, value, note)
        try:
            return acknowledged.result(self._timeout_s + GRACE_S)
        except FutureTimeout:
            raise self._uncertain(key, f"no answer within {self._timeout_s + GRACE_S:g} s") from None

    def close(self) -> None:
        """Wait for what is under way, up to the delivery timeout, and end."""
        with self._lock:
            self._closing.set()
            producer = self._producer
        producer.flush(self._timeout_s)
        self._poller.join()

    def __enter__(self) -> KafkaAppender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, partition: int, key: bytes, value: bytes | None, note: Any) -> None:
        with self._lock:
            if self._closing.is_set():
                raise self._refused(key, "this agent is stopping")
            if self._is_broken:
                # Its sequence is broken and it sends nothing any more. What it had is answered by now.
                self._producer, self._is_broken = self._opened(), False
            try:
                self._producer.produce(
                    self._topic.name, key=key, value=value, partition=partition, on_delivery=note
                )
            except (KafkaException, BufferError) as refused:
                raise self._refused(key, str(refused)) from refused

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_S)

    def _opened(self) -> Producer:
        return Producer(self._settings, logger=QUIET)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._is_broken = True

    def _failed(self, key: bytes, error: KafkaError) -> SegmentMetadataError:
        if error.code() in _NEVER_APPENDED:
            return self._refused(key, error.str())
        return self._uncertain(key, error.str())

    def _refused(self, key: bytes, why: str) -> AppendRefused:
        return AppendRefused(what=self._topic.name, key=key.decode("ascii", "replace"), why=why)

    def _uncertain(self, key: bytes, why: str) -> AppendUncertain:
        return AppendUncertain(what=self._topic.name, key=key.decode("ascii", "replace"), why=why)
