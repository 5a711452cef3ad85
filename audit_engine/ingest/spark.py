"""The streaming query that fills the tables, batch by batch.

One batch, in this order:

    1  its ranges        from where the table stands to where Spark's plan for the batch ends
    2  audit_quarantine  the records without a readable envelope at or above where *it* stands, if any
    3  audit_events      the others, in one commit that names the ranges
    4  positions move

Nearly every batch has nothing for the quarantine, and none is read twice to know that: it is written to
audit_events at once, by a job that fails before its commit at the first record that is not spelled as our own
writers do; then by one that fails at the first unreadable one. Then comes 2.

Killed between 2 and 3, the next run reads the range again for audit_events; the quarantine's own mark says
that it has its part. Killed after 3, all of it is in. So each table goes by its own position, and
`audit_events` never passes a record that the quarantine should have and has not.

Spark's checkpoint is a folder that is made for a run and thrown away: it is where a batch's end offsets are
read from, and never where to begin.

Owns the query. Refuses to go on behind a commit that it cannot find again.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.streaming.query import StreamingQuery

from audit_engine.ingest.position import Lost, Onward, ReachSource, onward, together, untold
from audit_engine.ingest.rows.spark import (
    EXPIRED_BEFORE_FIRST,
    ODD,
    RETENTION_OVERTOOK,
    UNREADABLE,
    events,
    examined,
    plain_events,
    quarantined,
)
from audit_engine.tables.columns import QUARANTINE_COLUMNS
from audit_engine.tables.errors import ReadingFailed, TopicEndsEarlier, TopicReplaced
from audit_engine.tables.marks import Mark, Offsets, Range, furthest, ranges
from audit_engine.tables.spark import EvidenceTable, EvidenceTables, Standing, following, schema_of

BATCH_RECORDS_MAX = 1_000_000
ATTEMPTS_MAX = 3  # of a run that retention overtakes while it reads
LONG_WAY_BATCHES = 8  # behind one with a record that is not plain: to find one out costs up to a batch
POLL_S = 1
# Behind each poll Spark asks a partition's leader for its first and for its last offset. By Kafka's own 500
# records a poll, a reader waits for these answers longer than for records.
POLLED_RECORDS = 5_000
SPARK_ERRORS = (PySparkException, Py4JJavaError)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSource:
    """The topic, how Spark's client reaches it, and who knows how far it goes."""

    topic: str
    client: Mapping[str, str]
    reach: ReachSource


@dataclass(slots=True, kw_only=True)
class Ingested:
    """What one run came to."""

    batches: int = 0
    offsets: int = 0  # that were passed, transaction markers among them
    quarantined: int = 0  # that audit_events has passed
    lost: list[Lost] = field(default_factory=list)
    never_there: list[Lost] = field(default_factory=list)


class _BatchFailed(Exception):
    """What Spark is told when a batch ended early; what it was is kept here."""


class Ingest:
    """One run at a time. `day` says the commit's day, `at` is told each step that a kill could come after."""

    def __init__(
        self,
        spark: SparkSession,
        tables: EvidenceTables,
        source: IngestSource,
        *,
        day: Callable[[], str],
        batch_records_max: int = BATCH_RECORDS_MAX,
        at: Callable[[str], None] = lambda _: None,
        scratch: Path | None = None,
    ) -> None:
        self._spark = spark
        self._tables = tables
        self._source = source
        self._day = day
        self._batch_records_max = batch_records_max
        self._at = at
        self._scratch = scratch
        self._topic_id = ""
        self._events = self._quarantine = Standing(number=-1, mark=None, next_offsets={})
        self._failed: BaseException | None = None
        self._in_batch = Lock()
        self._between: Callable[[], None] = lambda: None
        self._expects_unreadable = False  # as the batch before had some
        self._long_way_left = 0  # batches that are not tried as plain ones
        self.so_far = Ingested()

    def once(self) -> Ingested:
        """Everything that the topic holds now."""
        self._attempts(self._to_the_end)
        return self.so_far

    def continuously(
        self, stop: Event, *, every_s: int, between: Callable[[], None] = lambda: None
    ) -> Ingested:
        """Batch after batch, one commit each `every_s` at most, until told to stop between two of them.

        `between` is called after each batch, while nothing is read or written.
        """
        self._between = between
        self._attempts(lambda begun: self._until(begun, stop, every_s))
        return self.so_far

    def _attempts(self, read: Callable[[Onward], None]) -> None:
        for left in reversed(range(ATTEMPTS_MAX)):
            begun = self._begin()
            try:
                read(begun)
            except StreamingQueryException as failed:
                in_batch = self._failed
                if in_batch is not None and not isinstance(in_batch, SPARK_ERRORS):
                    raise in_batch from None
                # What retention took while it was read is told when it begins again.
                if not (left and self._is_overtaken()):
                    why = str(in_batch or failed).strip().splitlines()[0]
                    raise ReadingFailed(topic=self._source.topic, why=why) from (in_batch or failed)
            else:
                return

    def _is_overtaken(self) -> bool:
        return bool(onward(self._source.reach.reach(self._source.topic), self._held()).lost)

    def _begin(self) -> Onward:
        """Where the tables stand, and what is to be told before anything is read."""
        self._failed = None
        self._events = self._tables.events.standing()
        self._quarantine = self._tables.quarantine.standing()
        found = self._source.reach.reach(self._source.topic)
        self._same_topic(found.topic_id)
        ahead = onward(found, self._held())
        if ahead.behind:
            raise TopicEndsEarlier(
                topic=self._source.topic,
                table=self._tables.events.path,
                partitions=", ".join(map(str, ahead.behind)),
            )
        self._tell(ahead.lost)
        return ahead

    def _held(self) -> Offsets:
        return self._events.next_offsets

    def _same_topic(self, topic_id: str) -> None:
        for standing in (self._events, self._quarantine):
            if standing.mark is not None and standing.mark.topic_id != topic_id:
                why = f"its id is {topic_id}, that one's was {standing.mark.topic_id}"
                raise TopicReplaced(topic=self._source.topic, table=self._tables.events.path, why=why)
        self._topic_id = topic_id

    def _tell(self, lost: tuple[Lost, ...]) -> None:
        """A row of the quarantine for each stretch; those of a run that was killed behind it are found."""
        if not lost:
            return
        is_first = self._events.number < 0
        if is_first:
            self.so_far.never_there = together([*self.so_far.never_there, *lost])
        else:
            self.so_far.lost = together([*self.so_far.lost, *lost])
        reason = EXPIRED_BEFORE_FIRST if is_first else RETENTION_OVERTOOK
        told = self._told()
        new = [each for one in lost if (each := untold(one, told)) is not None]
        if not new:
            return
        rows = [
            {
                "kafka_topic": self._source.topic,
                "kafka_partition": each.partition,
                "kafka_offset": each.start,
                "kafka_end_offset": each.end,
                "kafka_timestamp_ms": 0,
                "reason": reason,
                "detail": f"{each.end - each.start} offsets were gone before they were ingested",
            }
            for each in new
        ]
        schema = schema_of(tuple(each for each in QUARANTINE_COLUMNS if each.name != "ingest_day"))
        frame = self._spark.createDataFrame(
            [tuple(row.get(name) for name in schema.names) for row in rows], schema
        )
        dated = frame.withColumn("ingest_day", F.lit(self._day()).cast("date"))
        self._quarantine = self._append(self._tables.quarantine, self._quarantine, dated, {})
        self._at("told")

    def _told(self) -> tuple[Lost, ...]:
        found = self._tables.quarantine.rows().where(
            F.col("reason").isin(RETENTION_OVERTOOK, EXPIRED_BEFORE_FIRST)
        )
        return tuple(
            Lost(partition=row["kafka_partition"], start=row["kafka_offset"], end=row["kafka_end_offset"])
            for row in found.select("kafka_partition", "kafka_offset", "kafka_end_offset").collect()
        )

    def _to_the_end(self, begun: Onward) -> None:
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="ingest-") as checkpoint:
            query = self._query(begun, Path(checkpoint), Event(), availableNow=True)
            query.awaitTermination()

    def _until(self, begun: Onward, stop: Event, every_s: int) -> None:
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="ingest-") as checkpoint:
            ending = Event()
            query = self._query(begun, Path(checkpoint), ending, processingTime=f"{every_s} seconds")
            try:
                while not query.awaitTermination(POLL_S):
                    if stop.is_set():
                        break
            finally:
                ending.set()
                with self._in_batch:  # Spark would cancel it halfway; none begins after it
                    pass
                query.stop()

    def _query(self, begun: Onward, checkpoint: Path, ending: Event, **trigger: bool | str) -> StreamingQuery:
        starts = {self._source.topic: {str(p): offset for p, offset in sorted(begun.starts.items())}}
        reader = (
            self._spark.readStream.format("kafka")
            .option("subscribe", self._source.topic)
            .option("startingOffsets", json.dumps(starts))
            .option("failOnDataLoss", "true")
            .option("maxOffsetsPerTrigger", str(self._batch_records_max))
            .option("kafka.isolation.level", "read_committed")
            .option("kafka.max.poll.records", str(POLLED_RECORDS))
        )
        for name, value in self._source.client.items():
            reader = reader.option(f"kafka.{name}", value)

        def take(rows: DataFrame, batch_id: int) -> None:
            with self._in_batch:
                if self._failed is not None or ending.is_set():
                    return
                try:
                    # A service may outlive its topic, and one made anew may soon be as long.
                    self._same_topic(self._source.reach.reach(self._source.topic).topic_id)
                    self._at("planned")
                    self._batch(rows, _ends(checkpoint, batch_id, self._source.topic), begun.starts)
                    self._between()
                except BaseException as failed:
                    self._failed = failed
                    # Spark would wait for ever for an answer from what is no Exception.
                    raise _BatchFailed(str(failed)) from failed

        return (
            reader.load()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", checkpoint.as_uri())
            .trigger(**trigger)  # type: ignore[arg-type]
            .start()
        )

    def _batch(self, rows: DataFrame, ends: Offsets, starts: Offsets) -> None:
        held = furthest(starts, self._held())
        span = ranges(held, ends)
        if not span:
            return
        new = rows.where(_at_or_above(held, partition="partition", offset="offset"))
        if self._expects_unreadable or not self._take_all(new, span):
            self._take_apart(new, held, ends, span)
        self._at("settled")
        self.so_far.batches += 1
        self.so_far.offsets += sum(end - start for start, end in span.values())

    def _take_all(self, rows: DataFrame, span: Mapping[int, Range]) -> bool:
        """In one pass, as nearly every batch can be. False: nothing was written, a record is unreadable."""
        day = self._day()
        if not self._long_way_left:
            if self._take(plain_events(rows, day), span, unless=ODD):
                return True
            self._long_way_left = LONG_WAY_BATCHES
        self._long_way_left -= 1
        return self._take(events(examined(rows), day, all_readable=True), span, unless=UNREADABLE)

    def _take(self, rows: DataFrame, span: Mapping[int, Range], *, unless: str) -> bool:
        """False: a record is `unless`, and nothing was written."""
        try:
            self._events = self._append(self._tables.events, self._events, rows, span)
        except SPARK_ERRORS as failed:
            if unless not in str(failed):
                raise
            return False
        return True

    def _take_apart(self, rows: DataFrame, held: Offsets, ends: Offsets, span: Mapping[int, Range]) -> None:
        """The quarantine's part first, so that audit_events never passes what is not there yet."""
        kept, day = examined(rows).persist(), self._day()
        try:
            count = self._keep_unreadable(kept, held, ends, day)
            self._expects_unreadable = count > 0
            self._events = self._append(self._tables.events, self._events, events(kept, day), span)
            self.so_far.quarantined += count
        finally:
            kept.unpersist()

    def _keep_unreadable(self, rows: DataFrame, held: Offsets, ends: Offsets, day: str) -> int:
        """How many there are: those too that a run put there which was killed before audit_events was past
        them, and so before it could say so."""
        count = quarantined(rows, day).count()
        own = furthest(held, self._quarantine.next_offsets)
        new = quarantined(rows.where(_at_or_above(own)), day)
        if count and (own == held or not new.isEmpty()):
            self._quarantine = self._append(self._tables.quarantine, self._quarantine, new, ranges(own, ends))
            self._at("quarantined")
        return count

    def _append(
        self, table: EvidenceTable, standing: Standing, rows: DataFrame, span: Mapping[int, Range]
    ) -> Standing:
        mark = Mark(
            token=uuid.uuid4().hex,
            number=standing.number + 1,
            topic=self._source.topic,
            topic_id=self._topic_id,
            ranges=span,
            next_offsets=furthest(standing.next_offsets, {p: end for p, (_, end) in span.items()}),
        )
        # Few files. Last of all, as Spark copies each row to where it makes partitions fewer.
        few = rows.coalesce(rows.sparkSession.sparkContext.defaultParallelism)
        table.append(few, mark, before_reading_back=lambda: self._at(f"{table.name} written"))
        return following(standing, mark)


def _at_or_above(
    offsets: Offsets, *, partition: str = "kafka_partition", offset: str = "kafka_offset"
) -> Column:
    """What is not in the table yet. Spark may give a batch again; the table says what is new."""
    lowest = F.create_map(*[F.lit(each) for pair in sorted(offsets.items()) for each in pair])
    return F.col(offset) >= F.coalesce(F.try_element_at(lowest, F.col(partition)), F.lit(0))


def _ends(checkpoint: Path, batch_id: int, topic: str) -> dict[int, int]:
    """Where the batch ends, as Spark writes it down before it begins one; on the third line."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text(encoding="utf-8").splitlines()
    return {int(partition): offset for partition, offset in json.loads(lines[2])[topic].items()}
