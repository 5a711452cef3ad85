"""Ingest, executed twice more over the topic of events, and held against the tables that live by it.

The topic is read as a batch, from its first offset to its last stable one, and goes through the transforms
that ingest itself has (`audit_engine.ingest.rows`): once in as many pieces as the topic has partitions, once
in more. Each offset makes a row; the two have to make the same.

The tables are compared as far as they have come, and from where the topic still begins: what retention took
since cannot be made again, and is counted.

Owns the reading. Refuses to write: no table is made, no offset is committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.spark import (
    EXPIRED_BEFORE_FIRST,
    RETENTION_OVERTOOK,
    events,
    examined,
    quarantined,
)
from audit_engine.ingest.spark import IngestSource
from audit_engine.tables.columns import COLUMNS, EVENTS, QUARANTINE
from audit_engine.tables.errors import TopicReplaced
from audit_engine.tables.marks import Offsets, Range, ranges
from audit_engine.tables.spark import EvidenceTable, path_of
from seawall.replay.ingest.against import AgainstTables, Executions, Row, against
from workers.proof import Compared

MORE_PIECES = 3  # as many for each partition, the second time
NO_DAY = "1970-01-01"  # the commit's day is of the commit, and is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestProof:
    """`not_yet`: offsets that the tables have not come to. `gone`: rows of theirs that the topic has lost."""

    again: Compared
    live: AgainstTables | None
    not_yet: int
    gone: int


def prove(spark: SparkSession, root: str, source: IngestSource, *, is_compared: bool) -> IngestProof:
    """Raises OffsetsUnknown; TopicReplaced if the tables are of another topic than this one."""
    reach = source.reach.reach(source.topic)
    span = ranges(reach.starts, reach.ends)
    once, again = (_rebuilt(spark, source, span, pieces=len(span) * each) for each in (1, MORE_PIECES))
    executions = Executions(once, again)
    if not (is_compared and _are_there(spark, root)):
        return IngestProof(again=executions.compared(), live=None, not_yet=0, gone=0)
    standing = EvidenceTable(spark, root, EVENTS, may_be_behind=True).standing()
    if standing.mark is not None and standing.mark.topic_id != reach.topic_id:
        why = f"its id is {reach.topic_id}, and the table's {standing.mark.topic_id}"
        raise TopicReplaced(topic=source.topic, table=path_of(root, EVENTS), why=why)
    held = {p: min(end, reach.ends.get(p, 0)) for p, end in standing.next_offsets.items()}
    both = ranges(reach.starts, held)
    rows = _held(spark, root)
    ingested = (each for each in executions if _is_in(each, both))
    live = against(ingested, _in_order(rows.where(_within(both))))
    return IngestProof(
        again=executions.compared(),
        live=live,
        not_yet=_count(span) - _count(both),
        gone=rows.where(_below(reach.starts)).count(),
    )


def _is_in(row: Row, span: Mapping[int, Range]) -> bool:
    start, end = span.get(row.partition, (0, 0))
    return start <= row.offset < end


def _are_there(spark: SparkSession, root: str) -> bool:
    """Asked first: to open a table makes it."""
    return all(DeltaTable.isDeltaTable(spark, path_of(root, name)) for name in (EVENTS, QUARANTINE))


def _rebuilt(
    spark: SparkSession, source: IngestSource, span: Mapping[int, Range], *, pieces: int
) -> Iterator[Row]:
    if not span:
        return iter(())
    records = examined(_records(spark, source, span, pieces))
    events_now = _said(events(records, NO_DAY), EVENTS)
    return _in_order(events_now.unionByName(_said(quarantined(records, NO_DAY), QUARANTINE)))


def _records(spark: SparkSession, source: IngestSource, span: Mapping[int, Range], pieces: int) -> DataFrame:
    reader = (
        spark.read.format("kafka")
        .option("assign", json.dumps({source.topic: sorted(span)}))
        .option("startingOffsets", _offsets(source.topic, {p: start for p, (start, _) in span.items()}))
        .option("endingOffsets", _offsets(source.topic, {p: end for p, (_, end) in span.items()}))
        .option("minPartitions", str(pieces))
        .option("failOnDataLoss", "true")
        .option("kafka.isolation.level", "read_committed")
    )
    for name, value in source.client.items():
        reader = reader.option(f"kafka.{name}", value)
    return reader.load()


def _held(spark: SparkSession, root: str) -> DataFrame:
    """The rows of both tables that are about a record: a stretch that was lost is about none."""
    of_events = EvidenceTable(spark, root, EVENTS, may_be_behind=True).rows()
    of_quarantine = EvidenceTable(spark, root, QUARANTINE, may_be_behind=True).rows()
    is_record = ~F.col("reason").isin(EXPIRED_BEFORE_FIRST, RETENTION_OVERTOOK)
    return _said(of_events, EVENTS).unionByName(_said(of_quarantine.where(is_record), QUARANTINE))


def _said(rows: DataFrame, table: str) -> DataFrame:
    """A column that an older table does not have says as much as one that is null: nothing."""
    there = frozenset(rows.columns)
    said = [each.name for each in COLUMNS[table] if each.name != "ingest_day" and each.name in there]
    return rows.select(
        "kafka_partition",
        "kafka_offset",
        F.lit(table).alias("table"),
        F.to_json(F.struct(*said)).alias("says"),
    )


def _in_order(rows: DataFrame) -> Iterator[Row]:
    ordered = rows.orderBy("kafka_partition", "kafka_offset", "table")
    return (Row(*each) for each in ordered.toLocalIterator())


def _within(span: Mapping[int, Range]) -> Column:
    found = F.lit(False)
    for partition, (start, end) in sorted(span.items()):
        is_in = (F.col("kafka_offset") >= start) & (F.col("kafka_offset") < end)
        found = found | ((F.col("kafka_partition") == partition) & is_in)
    return found


def _below(starts: Offsets) -> Column:
    found = F.lit(False)
    for partition, start in sorted(starts.items()):
        found = found | ((F.col("kafka_partition") == partition) & (F.col("kafka_offset") < start))
    return found


def _count(span: Mapping[int, Range]) -> int:
    return sum(end - start for start, end in span.values())


def _offsets(topic: str, offsets: Offsets) -> str:
    return json.dumps({topic: {str(p): offset for p, offset in sorted(offsets.items())}})
