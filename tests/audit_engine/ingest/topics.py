"""A topic with events in it, and an ingest of it that can be stopped between any two steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from audit_engine.ingest.kafka import KafkaReach
from audit_engine.ingest.spark import Ingest, Ingested, IngestSource
from audit_engine.spool import EmitterName, Spool
from audit_engine.tables.spark import EvidenceTables, open_tables
from audit_engine.topic.kafka import Publisher, ensure_audit_topic
from audit_engine.wire import Emitter, Envelope, encode
from rules.events import LogEvent
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.events import CLUSTER_ID, stalled

DEADLINE_S = 120.0
DAY = "2026-01-31"


class Stopped(BaseException):
    """Stands for a kill: nothing catches it."""


def value_of(number: int) -> bytes:
    """An event of an emitter that is not the spool's."""
    envelope = Envelope(
        event=stalled(number),
        emitter=Emitter(2, "agent", 7),
        emitter_seq=number,
        log_seq=number,
        observed_at_ms=5,
    )
    return encode(envelope)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTopic:
    """A topic of its own on the shared broker."""

    broker: LocalCluster
    name: str
    folder: Path
    sent: list[bytes] = field(default_factory=list)

    def make(self, partitions: int) -> EventTopic:
        ensure_audit_topic(self.config(), name=self.name, partitions=partitions)
        return self

    def config(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    @contextmanager
    def publishing(self) -> Iterator[Callable[[Iterable[LogEvent]], None]]:
        """Through one spool, as an agent does; what is called returns when all is in Kafka."""
        name = EmitterName(CLUSTER_ID, 1, "agent")
        with (
            Spool(self.folder / f"{self.name}.db", name) as spool,
            Publisher(spool, self.config(), topic=self.name),
        ):

            def publish(events: Iterable[LogEvent]) -> None:
                spool.emit_many(list(events))
                assert becomes_true(lambda: spool.counters().pending == 0, deadline_s=DEADLINE_S)

            yield publish

    def publish(self, events: Iterable[LogEvent]) -> None:
        with self.publishing() as publish:
            publish(events)

    def produce(self, *values: bytes | None, partition: int = 0) -> None:
        """As they are."""
        producer = Producer(self.config(), logger=kafka.SILENT)
        for value in values:
            producer.produce(self.name, value=value, key=b"key", partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    def source(self) -> IngestSource:
        return IngestSource(
            topic=self.name,
            client={"bootstrap.servers": self.broker.bootstrap},
            reach=KafkaReach(self.config()),
        )

    def tables(self, spark: SparkSession) -> EvidenceTables:
        return open_tables(spark, self.root)

    @property
    def root(self) -> str:
        return str(self.folder / "tables")

    def run(
        self, spark: SparkSession, tables: EvidenceTables, *, at: Callable[[str], None] = lambda _: None
    ) -> Ingest:
        return Ingest(spark, tables, self.source(), day=lambda: DAY, at=at, batch_records_max=1_000)

    def ingest(
        self, spark: SparkSession, tables: EvidenceTables, *, at: Callable[[str], None] = lambda _: None
    ) -> Ingested:
        return self.run(spark, tables, at=at).once()


def stopping_at(step: str) -> Callable[[str], None]:
    def at(reached: str) -> None:
        if reached == step:
            raise Stopped(step)

    return at
