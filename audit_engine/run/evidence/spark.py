"""The evidence of a run: its slice of `audit_events`, each event told to every log that it concerns.

    about a log        to that log
    about a topic      to each log of it
    about the cluster  to each log of it: brokers' settings, policies, restarts

What is about no single log is little, and is told natively by joins; `rules.machine.concerns` has the last
word on each. A log that is seen for the first time hears all that was ever said of its topic and cluster.

Owns these transforms. Invariant: a row is dropped only if no log that is known can be concerned by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.cut import Cut
from audit_engine.run.told import COLUMNS
from audit_engine.tables.marks import Offsets, Range
from rules.events import KINDS, LogEvent
from rules.machine.fold import HANDLERS
from rules.machine.terms import NOT_AUDITED

CLOCKS_APART_MS = 2 * 24 * 3600 * 1000  # no two hosts' clocks are further apart
KEY = ("cluster_id", "topic_id", "partition")
SHARED = tuple(
    kind.kind
    for kind in KINDS
    if not issubclass(kind, LogEvent) and (kind in HANDLERS or kind.kind == "evidence_gap")
)


def until(events: DataFrame, offsets: Offsets) -> DataFrame:
    """Everything below these offsets."""
    return events.where(F.col("kafka_offset") < _offset_of(offsets))


def since(events: DataFrame, cut: Cut, *, by_day: bool = True) -> DataFrame:
    """The run's slice: what is new, what came from the quarantine, and what the run before had read and left.

    All of it was ingested after that run's moment: by day, days well before it are not opened, as ingest's
    clock has them; nor are files of which all rows were read, by their least and most.
    """
    slice_ = until(events, cut.end_offsets)
    least = min((cut.begin_offsets.get(partition, 0) for partition in cut.end_offsets), default=0)
    is_new = (F.col("kafka_offset") >= least) & (F.col("kafka_offset") >= _offset_of(cut.begin_offsets))
    if cut.since_ms is None:
        return slice_.where(is_new)
    if by_day:
        slice_ = slice_.where(is_from_day(cut.since_ms))
    was_left = F.col("observed_at_ms") > cut.since_ms
    return slice_.where(is_new | was_left | _is_in(cut.replayed))


def is_from_day(moment_ms: int) -> Column:
    """Whether it was ingested after a moment, by whatever clock."""
    return F.col("ingest_day") >= F.to_date(F.timestamp_millis(F.lit(moment_ms - CLOCKS_APART_MS)))


def _is_in(ranges: Mapping[int, Sequence[Range]]) -> Column:
    offset = F.col("kafka_offset")
    found = F.lit(False)
    for partition, each in ranges.items():
        for start, end in each:
            found = found | ((F.col("kafka_partition") == partition) & (offset >= start) & (offset < end))
    return found


def since_offsets(rows: DataFrame, offsets: Offsets) -> DataFrame:
    """Everything at or above these offsets."""
    return rows.where(F.col("kafka_offset") >= _offset_of(offsets))


def told(events: DataFrame) -> DataFrame:
    """What a run takes of each row: its place, when it came, and its own fields as they came."""
    body = F.when(F.col("is_read"), F.col("body")).alias("body")
    return events.select(*COLUMNS, "log_id", "payload_hash", "kafka_timestamp_ms", body)


def about_logs(rows: DataFrame) -> DataFrame:
    """Those about one log each, of topics that are audited."""
    return rows.where(F.col("log_id").isNotNull() & ~F.col("topic").isin(*sorted(NOT_AUDITED)))


def of_some(ids: Sequence[str], rows: DataFrame) -> DataFrame:
    """Of logs as their events call them: rows of others are left where they are read, and of a day that is
    ordered by log most files are."""
    return rows.where(F.col("log_id").isin(*ids))


def log_id() -> Column:
    """Of a KEY, as `audit_events` has it."""
    return F.concat_ws(":", "topic_id", "partition")


def is_shared() -> Column:
    return F.col("log_id").isNull() & F.col("kind").isin(*SHARED)


def shared(rows: DataFrame) -> DataFrame:
    """Those about more than one log."""
    return rows.where(is_shared())


def told_to(rows: DataFrame, logs: DataFrame) -> DataFrame:
    """`rows` about a topic or a cluster, once for each of `logs` that they can concern."""
    named = [F.col(name).alias(f"log_{name}") for name in (*KEY, "topic")]
    each = logs.select(*named)
    same_cluster = F.col("cluster_id") == F.col("log_cluster_id")
    has_id, has_name = F.col("topic_id").isNotNull(), F.col("topic").isNotNull()
    by_id = rows.where(has_id).join(each, same_cluster & (F.col("topic_id") == F.col("log_topic_id")))
    by_name = rows.where(~has_id & has_name).join(each, same_cluster & (F.col("topic") == F.col("log_topic")))
    by_cluster = rows.where(~has_id & ~has_name).join(each, same_cluster)
    return by_id.unionByName(by_name).unionByName(by_cluster).select(*_FOR_A_LOG)


def keyed(rows: DataFrame) -> DataFrame:
    """Rows about one log each, with its key where `told_to` puts it."""
    return rows.withColumns({f"log_{name}": F.col(name) for name in (*KEY, "topic")}).select(*_FOR_A_LOG)


_FOR_A_LOG = (*(f"log_{name}" for name in (*KEY, "topic")), *COLUMNS, "body")


def _offset_of(offsets: Offsets) -> Column:
    """Of the row's partition; 0 where there is none. By cases: a map would be searched for each row."""
    found = F.lit(0).cast("bigint")
    for partition, offset in sorted(offsets.items(), reverse=True):
        found = F.when(F.col("kafka_partition") == partition, F.lit(offset)).otherwise(found)
    return found


def distinct_logs(*frames: DataFrame) -> DataFrame:
    """Each log once, with the name that its topic was last known by."""
    every = reduce(DataFrame.unionByName, [frame.select(*KEY, "topic") for frame in frames])
    return every.groupBy(*KEY).agg(F.max("topic").alias("topic"))
