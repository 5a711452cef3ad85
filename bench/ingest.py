"""Ingest of a topic of events into Delta, against a bare copy of the topic by Spark: key, value, position.

The peer is what one writes first: Spark's Kafka source into Delta's own sink, with Kafka's columns and no
others. It parses nothing, so the ratio is the price of the events' columns, of the quarantine and of a commit
that is looked for afterwards. One broker and one SparkSession, the same records a batch for both, each round
into new tables that are made before the clock runs. `rows_per_s` and `their_rows_per_s` follow from the
medians. Wanted: 0.7.

    SEAWALL_BENCH_EVENTS   2,000,000 unless told
    SEAWALL_BENCH_BATCH    1,000,000 records a commit
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from audit_engine.ingest.kafka import KafkaReach
from audit_engine.ingest.spark import Ingest, IngestSource
from audit_engine.tables.spark import open_tables
from audit_engine.topic.kafka import ensure_audit_topic
from audit_engine.wire import Emitter, Envelope, encode
from bench.harness import compare, timed
from rules.events import Event, HighWatermark, LogStartAdvanced, SegmentClosed, SegmentDeletedLocal
from rules.events.base import Source
from rules.events.replicas import SegmentRemoval, TimestampBasis
from rules.identity import LogId
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.spark import spark_session

EVENTS = int(os.environ.get("SEAWALL_BENCH_EVENTS", "2000000"))
BATCH = int(os.environ.get("SEAWALL_BENCH_BATCH", "1000000"))
TOPIC = "bench-ingest"
PARTITIONS = 6
LOGS = 20_000
BROKERS = 3
T0_MS = 1_700_000_000_000
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
DAY = "2026-01-31"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
        folder = Path(name)
        with LocalCluster(folder / "broker") as broker:
            config = {"bootstrap.servers": broker.bootstrap}
            fill(config)
            spark = spark_session(folder / "spark", driver_memory_mib=2048)
            try:
                _compare(spark, config, folder / "tables")
            finally:
                spark.stop()


def _compare(spark: SparkSession, config: dict[str, str], root: Path) -> None:
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    numbers = count()

    def measured(side: str, work: Callable[[Path], Callable[[], None]]) -> float:
        place = root / f"{side}-{next(numbers)}"
        times[side].append(timed(work(place)))
        shutil.rmtree(place)
        return times[side][-1]

    def rates() -> dict[str, Any]:
        ours, theirs = (sorted(each[1:])[len(each[1:]) // 2] for each in times.values())
        return {
            "events": EVENTS,
            "batch_records": BATCH,
            "rows_per_s": round(EVENTS / ours),
            "their_rows_per_s": round(EVENTS / theirs),
        }

    compare(
        "ingest",
        "Spark, Kafka to Delta, bare",
        ours=lambda: measured("ours", lambda place: ingest(spark, config, place)),
        theirs=lambda: measured("theirs", lambda place: copy(spark, config, place)),
        more=rates,
    )


def ingest(spark: SparkSession, config: dict[str, str], place: Path) -> Callable[[], None]:
    """Ours, ready to be timed."""
    tables = open_tables(spark, str(place))
    source = IngestSource(topic=TOPIC, client=config, reach=KafkaReach(config))
    run = Ingest(spark, tables, source, day=lambda: DAY, batch_records_max=BATCH, scratch=place)

    def once() -> None:
        done = run.once()
        assert (done.offsets, done.quarantined) == (EVENTS, 0)

    return once


def copy(spark: SparkSession, config: dict[str, str], place: Path) -> Callable[[], None]:
    """The peer, ready to be timed."""
    columns = "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP"
    spark.sql(f"CREATE TABLE delta.`{place}/copy` ({columns}) USING delta")

    def once() -> None:
        (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", config["bootstrap.servers"])
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(BATCH))
            .load()
            .select("key", "value", "topic", "partition", "offset", "timestamp")
            .writeStream.format("delta")
            .option("checkpointLocation", f"{place}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{place}/copy")
            .awaitTermination()
        )
        assert spark.read.format("delta").load(f"{place}/copy").count() == EVENTS

    return once


def fill(config: dict[str, str]) -> None:
    """The topic, with EVENTS events in it."""
    ensure_audit_topic(config, name=TOPIC, partitions=PARTITIONS)
    print(f"bench: making {EVENTS} events", file=sys.stderr)  # noqa: T201 minutes of silence want a word
    settings = {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000, "compression.type": "lz4"}
    producer = Producer(config | settings, logger=kafka.SILENT)
    for key, value in events():
        while True:
            try:
                producer.produce(TOPIC, value=value, key=key)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(120) == 0


def events() -> Iterator[tuple[bytes, bytes]]:
    """Key and value: what three observers say of 20,000 logs, round after round."""
    for number in range(EVENTS):
        log_number, turn = number % LOGS, number // LOGS
        broker_id = log_number % BROKERS
        log = LogId(CLUSTER_ID, f"CgkTzsXgRlOwPT{log_number // 20:07d}g", log_number % 20)
        envelope = Envelope(
            event=_event(log, turn, number, broker_id),
            emitter=Emitter(broker_id, "observer", 7),
            emitter_seq=number // BROKERS,
            log_seq=turn,
            observed_at_ms=T0_MS + number,
            replica=str(broker_id),
            role="leader",
        )
        yield f"{log.topic_id}:{log.partition}".encode(), encode(envelope)


def _event(log: LogId, turn: int, number: int, broker_id: int) -> Event:
    common: dict[str, Any] = {
        "event_id": f"disk-{broker_id}-{number:012x}",
        "occurred_at_ms": T0_MS + number,
        "log": log,
        "topic": f"topic-{log.topic_id}",
        "leader_epoch": 5,
        "broker_id": broker_id,
        "directory_id": "3cVtEW_RTm2TSqxDBnRsEA",
        "replica_incarnation": 1,
        "ordinal": turn,
        "source": Source.LOG_DIR,
        "not_before_ms": T0_MS + number - 5_000,
    }
    start, size = turn * 1_000, 1 << 30
    stamps: dict[str, Any] = {"max_timestamp_ms": T0_MS + number, "timestamp_basis": TimestampBasis.INDEXED}
    ends: dict[str, Any] = {"base_offset": start, "end_offset": start + 1_000, "size_bytes": size}
    match turn % 4:
        case 0:
            return SegmentClosed(**common, **ends, **stamps, data_end=None, record_count=None)
        case 1:
            return SegmentDeletedLocal(
                **common, **ends, **stamps, segment_removal=SegmentRemoval.RENAMED, reason_hint=None
            )
        case 2:
            return LogStartAdvanced(
                **common,
                old_start=start,
                new_start=start + 1_000,
                local_start=start + 1_000,
                checkpoint_entry=None,
                high_watermark=start + 9_000,
                reason_hint=None,
            )
        case _:
            return HighWatermark(
                **common,
                log_start=start,
                high_watermark=start + 9_000,
                log_end=start + 9_001,
                size_bytes=size,
            )
