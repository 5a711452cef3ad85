"""The topic of events over Kafka: made and checked, and filled from a spool.

What librdkafka does that has to be known: a message that runs out of time is given up, and those behind it go
on, so that order is lost. So no message has a time limit here: it waits for as long as Kafka is away.
What a broker refuses for good ends the producer (enable.gapless.guarantee, which librdkafka calls
experimental: without it, what is behind would still be sent), and a new one begins with the first event that
was not acknowledged: repeated, never reordered.

Owns the producer and its thread. Refuses to give an event up, whatever becomes of it: it stays in the spool.

Invariant: an event is marked in the spool only after every in-sync replica has it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from audit_engine.errors import AuditTopicSilent, AuditTopicUnfit
from audit_engine.spool import Spool
from audit_engine.topic import PARTITIONS, TOPIC, AuditTopic
from audit_engine.topic.fitness import MESSAGE_BYTES_MAX, REPLICAS, faults, settings
from tiering.cluster.interface import Cause, DescribedTopic, Unknown
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.new_topic.kafka import make_topic
from tiering.cluster.quiet import QUIET

DEADLINE_S = 30.0
SETTLE_S = 0.1
STOP_S = 5.0
POLL_S = 0.2  # so soon an acknowledgement, or `stop`, is heard
LINGER_MS = 5
IN_FLIGHT_MAX = 1_000
IN_FLIGHT_BYTES_MAX = 32 * 1024 * 1024
BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)

_log = logging.getLogger(__name__)


_DEFAULTS = {"client.id": "seawall-agent", "compression.type": "zstd"}


def ensure_audit_topic(
    config: Mapping[str, str],
    *,
    name: str = TOPIC,
    partitions: int = PARTITIONS,
    replication: int | None = None,
    deadline_s: float = DEADLINE_S,
) -> AuditTopic:
    """The topic, made if there is none, by default with as many replicas as there are brokers, up to three.

    Raises AuditTopicUnfit, AuditTopicSilent, or a ClusterError. Nothing is put right: settings are the
    operator's.
    """
    cluster = KafkaCluster(config, monotonic_s=time.monotonic)
    found = _checked(cluster, name)
    if found is not None:
        return found
    copies = replication or min(REPLICAS, len(cluster.identity().broker_ids))
    _create(config, name, partitions, copies, deadline_s)
    last_moment = time.monotonic() + deadline_s
    while (found := _checked(cluster, name)) is None:
        if time.monotonic() >= last_moment:
            why = "brokers do not know it after its creation"
            raise AuditTopicSilent(topic=name, what="found", why=why)
        time.sleep(SETTLE_S)
    return found


def _checked(cluster: KafkaCluster, name: str) -> AuditTopic | None:
    """The topic, if there is one; fit."""
    described = cluster.describe_topics([name])[name]
    if not isinstance(described, Unknown):
        found = cluster.topic_settings([name])[name]
        if not isinstance(found, Unknown):
            wrong = "; ".join(faults(described, found))
            if wrong:
                raise AuditTopicUnfit(topic=name, why=wrong)
            return _fit(described)
        described = found
    if described.cause is Cause.NO_SUCH_TOPIC:
        return None
    raise AuditTopicSilent(topic=name, what="described", why=described.reason)


def _fit(described: DescribedTopic) -> AuditTopic:
    return AuditTopic(
        name=described.topic,
        topic_id=described.topic_id,
        partition_count=len(described.partitions),
    )


def _create(
    config: Mapping[str, str], name: str, partitions: int, replication: int, deadline_s: float
) -> None:
    refusal = make_topic(
        config,
        name,
        partitions=partitions,
        replication=replication,
        settings=settings(replication),
        deadline_s=deadline_s,
    )
    if refusal is not None:
        raise AuditTopicSilent(topic=name, what="made", why=refusal)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherStatus:
    """`published`: acknowledged by Kafka since the beginning, repetitions among them."""

    published: int
    in_flight: int
    failures: int
    trouble: str | None  # what goes wrong now and is tried again


class _Refused(Exception):
    """Kafka will not have an event, as it is."""


class Publisher:
    """Publishes a spool's events for as long as it lives. Begins with its making."""

    def __init__(
        self,
        spool: Spool,
        config: Mapping[str, str],
        *,
        topic: str = TOPIC,
        in_flight_max: int = IN_FLIGHT_MAX,
    ) -> None:
        self._spool = spool
        self._topic = topic
        self._in_flight_max = in_flight_max
        self._settings: dict[str, Any] = {
            **_DEFAULTS,
            **config,
            "acks": "all",
            "enable.idempotence": "true",
            "enable.gapless.guarantee": "true",
            "delivery.timeout.ms": "0",  # none
            "linger.ms": str(LINGER_MS),
            "message.max.bytes": str(MESSAGE_BYTES_MAX),
            "partitioner": "murmur2_random",  # as Kafka's own clients do
            "error_cb": self._on_error,
        }
        self._lock = Lock()
        self._published = self._failures = 0
        self._in_flight: dict[int, int] = {}  # bytes, by position
        self._trouble: str | None = None
        self._stopping = Event()
        self._give_up_at_s = 0.0
        self._thread = Thread(target=self._run, name="audit-publish", daemon=True)
        self._thread.start()

    def status(self) -> PublisherStatus:
        with self._lock:
            return PublisherStatus(
                published=self._published,
                in_flight=len(self._in_flight),
                failures=self._failures,
                trouble=self._trouble,
            )

    def stop(self, deadline_s: float = STOP_S) -> bool:
        """End, and say whether everything was published. What was not waits in the spool for the next run."""
        self._give_up_at_s = time.monotonic() + deadline_s
        self._stopping.set()
        self._spool.wake()
        self._thread.join()
        return self._spool.counters().pending == 0

    def __enter__(self) -> Publisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        failures = 0
        while True:
            before = self.status().published
            try:
                self._publish()
            except Exception as trouble:  # noqa: BLE001 the worker's edge: without it, events would wait unheard
                said = trouble.args[0].str() if isinstance(trouble, KafkaException) else str(trouble)
                _log.warning("publishing to %s begins anew: %s", self._topic, said)
                failures = 0 if self.status().published != before else failures + 1
                with self._lock:
                    self._failures, self._trouble = self._failures + 1, said
            else:
                return
            if self._is_over(is_idle=False):
                return
            if not self._stopping.wait(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)]):
                continue
            time.sleep(BACKOFF_S[0])  # told to stop, and trying on until the deadline

    def _publish(self) -> None:
        """From the first event that Kafka does not have, until told to stop; or raise."""
        producer = Producer(self._settings, logger=QUIET)
        acknowledged: list[int] = []
        refused: list[KafkaError] = []

        def note(position: int, error: KafkaError | None, _: Message) -> None:
            with self._lock:
                self._in_flight.pop(position, None)
            if error is None:
                acknowledged.append(position)
            else:
                refused.append(error)

        handed = 0
        try:
            while True:
                handed = self._hand_over(producer, note, handed)
                is_idle = not self._in_flight
                is_done = is_idle and not self._spool.wait(handed, 0)
                if self._is_over(is_idle=is_done):
                    return
                if is_done:
                    with self._lock:
                        self._trouble = None  # whatever it was, nothing waits for it
                if is_idle:
                    self._spool.wait(handed, POLL_S)
                producer.poll(0 if is_idle else POLL_S)
                self._mark(acknowledged)
                if refused:
                    raise _Refused(refused[0].str())
        finally:
            producer.purge(blocking=False)
            producer.flush(0)  # runs the callbacks of what was purged
            with self._lock:
                self._in_flight.clear()

    def _hand_over(self, producer: Producer, note: Any, handed: int) -> int:
        """Give the producer what it has room for; the last position that it was given."""
        room = self._in_flight_max - len(self._in_flight)
        room_bytes = IN_FLIGHT_BYTES_MAX - sum(self._in_flight.values())
        if room <= 0 or room_bytes <= 0:
            return handed
        for each in self._spool.pending(handed, limit=room, limit_bytes=room_bytes):
            with self._lock:
                self._in_flight[each.position] = len(each.value)
            producer.produce(
                self._topic, key=each.key, value=each.value, on_delivery=partial(note, each.position)
            )
            handed = each.position
        return handed

    def _mark(self, acknowledged: list[int]) -> None:
        if not acknowledged:
            return
        self._spool.acknowledge(acknowledged)
        with self._lock:
            self._published += len(acknowledged)
            self._trouble = None
        acknowledged.clear()

    def _is_over(self, *, is_idle: bool) -> bool:
        return self._stopping.is_set() and (is_idle or time.monotonic() >= self._give_up_at_s)

    def _on_error(self, error: KafkaError) -> None:
        with self._lock:
            self._trouble = error.str()
