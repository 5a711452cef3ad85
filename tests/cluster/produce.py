"""The produce kit: topics with small segments, and clients that note exactly what they wrote and where.

Owns nothing on the broker. A `Writer` wraps one confluent-kafka producer; every record it sends is kept
together with the offset and timestamp that the broker acknowledged, as `WrittenRecord`s, so that a reader
of the files can be compared with what the client meant, byte by byte.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from confluent_kafka import KafkaError, Message, Producer

from seawall.local import kafka
from seawall.local.broker import LocalCluster

Fate = Literal["plain", "committed", "aborted", "open"]
Headers = tuple[tuple[str, bytes | None], ...]

# Kafka 4 refuses segment.bytes under 1 MiB; this entry is its own tests' way to roll often.
SEGMENT_BYTES = "internal.segment.bytes"
SMALL_SEGMENT_BYTES = 16 * 1024
FLUSH_S = 30.0
TRANSACTION_S = 30.0

METADATA_PARTITIONS = 4  # of __seawall_segments: whoever comes first makes it, and the others expect the same

# Background work every half second instead of every 30 s to 5 min, so that tests wait for effects and not
# for timers. A killed broker may register again only when its old session has run out: 9 s by default.
QUICK_HOUSEKEEPING = {
    "log.initial.task.delay.ms": "200",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "200",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRecord:
    """One acknowledged record. `timestamp_ms` is the broker's answer, `producer` names the writer."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    producer: str = ""
    fate: Fate = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one case wrote: by topic, in offset order. `notes` are facts that no record shows."""

    topic: str
    records: tuple[WrittenRecord, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)

    def of_partition(self, partition: int = 0) -> list[WrittenRecord]:
        return [record for record in self.records if record.partition == partition]


def written(topic: str, writers: Iterable[Writer], notes: Mapping[str, Any] | None = None) -> Written:
    records = [record for writer in writers for record in writer.acknowledged]
    records.sort(key=lambda record: (record.partition, record.offset))
    return Written(topic=topic, records=tuple(records), notes=dict(notes or {}))


def create_topic(
    cluster: LocalCluster,
    topic: str,
    *,
    partitions: int = 1,
    replication: int = 1,
    segment_bytes: int | None = SMALL_SEGMENT_BYTES,
    config: Mapping[str, str] | None = None,
) -> None:
    """A topic with small segments that keeps everything; returns when every partition has a leader."""
    # By default old timestamps would be deleted by time.
    kept = {"retention.ms": "-1"}
    small = {} if segment_bytes is None else {SEGMENT_BYTES: str(segment_bytes)}
    kafka.create_topic(
        cluster.bootstrap,
        topic,
        partitions=partitions,
        replication=replication,
        config=kept | small | dict(config or {}),
    )


class Writer:
    """One producer client. Without `settings` it is a plain one: acks=all, no idempotence, no codec."""

    def __init__(
        self, cluster: LocalCluster, topic: str, name: str, settings: Mapping[str, str | int] | None = None
    ) -> None:
        self.topic = topic
        self.name = name
        self.acknowledged: list[WrittenRecord] = []
        self._fate: Fate = "plain"
        self._failures: list[KafkaError] = []
        defaults: dict[str, str | int] = {
            "bootstrap.servers": cluster.bootstrap,
            "client.id": name,
            "enable.idempotence": "false",
            "acks": "all",
            "linger.ms": 1000,  # batches are closed by their limits and by flush, never by chance
            "batch.num.messages": 10,
        }
        self._producer = Producer({**defaults, **(settings or {})}, logger=kafka.SILENT)

    def send(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = 0,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Hand one record to the client; it is on the broker only after `flush`."""
        record = WrittenRecord(
            partition=partition,
            offset=-1,
            timestamp_ms=-1,
            key=key,
            value=value,
            headers=headers,
            producer=self.name,
            fate=self._fate,
        )
        # confluent-kafka's own way to say "now" is 0.
        when = 0 if timestamp_ms is None else timestamp_ms
        self._producer.produce(
            self.topic,
            value=value,
            key=key,
            partition=partition,
            timestamp=when,
            headers=[*headers],
            on_delivery=partial(self._note, record),
        )

    def _note(self, record: WrittenRecord, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error)
            return
        offset = message.offset()
        assert offset is not None
        self.acknowledged.append(replace(record, offset=offset, timestamp_ms=message.timestamp()[1]))

    def flush(self) -> None:
        """Close the open batches and wait until everything sent is acknowledged."""
        left = self._producer.flush(FLUSH_S)
        assert not self._failures, f"{self.name}: {self._failures[0]}"
        assert left == 0, f"{self.name}: {left} records not acknowledged within {FLUSH_S} s"

    def poll(self, timeout_s: float = 0.0) -> None:
        """Serve delivery reports without waiting for all of them."""
        self._producer.poll(timeout_s)

    def forgive(self) -> None:
        """Forget failed deliveries: for a case that kills the broker under the writer."""
        self._failures.clear()

    def send_all(self, values: Iterable[bytes | None], **how: Any) -> None:
        for value in values:
            self.send(value, **how)
        self.flush()

    def init_transactions(self) -> None:
        self._producer.init_transactions(TRANSACTION_S)

    def begin(self) -> None:
        """Open a transaction; what is sent from here on is `open` until it is decided."""
        self._producer.begin_transaction()
        self._fate = "open"

    def commit(self) -> None:
        self._producer.commit_transaction(TRANSACTION_S)
        self._decide("committed")

    def abort(self) -> None:
        """Abort what was flushed. (Records not yet flushed would be dropped by the client.)"""
        self.flush()
        self._producer.abort_transaction(TRANSACTION_S)
        self._decide("aborted")

    def _decide(self, fate: Fate) -> None:
        self.acknowledged = [
            replace(record, fate=fate) if record.fate == "open" else record for record in self.acknowledged
        ]
        self._fate = "plain"


def idempotent(cluster: LocalCluster, topic: str, name: str, **settings: str | int) -> Writer:
    return Writer(cluster, topic, name, {"enable.idempotence": "true", **settings})


def transactional(cluster: LocalCluster, topic: str, name: str, **settings: str | int) -> Writer:
    """A transactional producer, ready to begin; its transactional.id is its name."""
    writer = Writer(
        cluster,
        topic,
        name,
        {
            "enable.idempotence": "true",
            "transactional.id": name,
            "transaction.timeout.ms": 900_000,  # the broker's own maximum: nothing is aborted by a timer
            **settings,
        },
    )
    writer.init_transactions()
    return writer


def texts(count: int, *, size_bytes: int = 200, seed: int = 7) -> list[bytes]:
    """Printable values that compress somewhat, the same for the same arguments."""
    chance = random.Random(seed)
    words = [f"tide{n:03d}" for n in range(200)]
    values = []
    for n in range(count):
        text = f"{n:06d} " + " ".join(chance.choice(words) for _ in range(size_bytes // 8 + 1))
        values.append(text[:size_bytes].encode())
    return values


def keys(count: int, *, distinct: int) -> Sequence[bytes]:
    return [f"key-{n % distinct:04d}".encode() for n in range(count)]
