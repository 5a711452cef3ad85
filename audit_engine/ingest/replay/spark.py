"""Records in quarantine whose envelope can be read by now, appended to audit_events, each once.

A newer Seawall knows more, or a limit was raised. What is replayed stays in the quarantine, as its history.

Which records were replayed is what audit_events says itself, by their positions in Kafka: so it may be killed
anywhere, run twice, and beside an ingest, whose commit numbers it takes its own from. A record above where
audit_events stands is left alone, since ingest is going to read it again.

Owns the replay. Invariant: a position is in audit_events once, however often it was replayed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.spark import REASON, events, examined
from audit_engine.tables.marks import Mark, Offsets, Range
from audit_engine.tables.spark import POSITION, EvidenceTable, EvidenceTables


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Of the records in quarantine: those looked at, replayed, in audit_events before, unreadable still."""

    looked_at: int
    replayed: int
    replayed_before: int
    unreadable: int


def replay(
    spark: SparkSession,
    tables: EvidenceTables,
    *,
    day: str,
    is_dry_run: bool = False,
    at: Callable[[str], None] = lambda _: None,
) -> Replayed:
    """Raises OtherWriter or CommitSkipped where an ingest was quicker; then nothing was replayed."""
    standing = tables.events.standing()
    rows = examined(_records(tables.quarantine, standing.next_offsets)).persist()
    try:
        looked_at = rows.count()
        readable = rows.where(F.col(REASON).isNull())
        new = readable.join(_there(tables.events, readable), on=list(POSITION), how="left_anti")
        places = sorted(
            (row["kafka_partition"], row["kafka_offset"]) for row in new.select(*POSITION).collect()
        )
        if places and not is_dry_run:
            mark = standing.mark or tables.quarantine.standing().mark
            assert mark is not None, "a row of the quarantine has a commit of ours"
            told = Mark(
                token=uuid.uuid4().hex,
                number=standing.number + 1,
                topic=mark.topic,
                topic_id=mark.topic_id,
                ranges={},
                next_offsets=standing.next_offsets,
                replayed=stretches(places),
            )
            tables.events.append(events(new, day), told, before_reading_back=lambda: at("replayed"))
        readable_count = readable.count()
    finally:
        rows.unpersist()
    return Replayed(
        looked_at=looked_at,
        replayed=len(places),
        replayed_before=readable_count - len(places),
        unreadable=looked_at - readable_count,
    )


def stretches(places: Iterable[tuple[int, int]]) -> dict[int, tuple[Range, ...]]:
    """Offsets in order as half-open ranges, partition by partition."""
    found: dict[int, list[Range]] = {}
    for partition, offset in places:
        ranges = found.setdefault(partition, [])
        if ranges and ranges[-1][1] == offset:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return {partition: tuple(ranges) for partition, ranges in found.items()}


def _records(quarantine: EvidenceTable, below: Offsets) -> DataFrame:
    """As Spark's Kafka source gave them, those that audit_events has gone past; each once."""
    passed = F.lit(False)
    for partition, offset in below.items():
        passed = passed | ((F.col("kafka_partition") == partition) & (F.col("kafka_offset") < offset))
    return (
        quarantine.rows()
        .where(F.col("value").isNotNull() & passed)
        .dropDuplicates(list(POSITION))
        .select(
            "key",
            "value",
            F.col("kafka_topic").alias("topic"),
            F.col("kafka_partition").alias("partition"),
            F.col("kafka_offset").alias("offset"),
            F.timestamp_millis("kafka_timestamp_ms").alias("timestamp"),
        )
    )


def _there(table: EvidenceTable, rows: DataFrame) -> DataFrame:
    """Positions in `table` that could be among those of `rows`, by least and most, which Delta keeps."""
    offsets = rows.agg(F.min("kafka_offset").alias("least"), F.max("kafka_offset").alias("most")).first()
    assert offsets is not None
    within = F.col("kafka_offset").between(offsets["least"], offsets["most"])
    return table.rows().where(within).select(*POSITION)
