"""A slice, gone through once: all that a run asks of it before it folds any log (SliceDigest.java).

    digest       one pass, without a shuffle: what each task saw, in few rows of three parts
    of_emitters  one row a run of an emitter: its counts, and a bit for each of its numbers
    of_logs      one row a log: what each of its speakers says of it, as the screen asks
    unlike       acts that were told several times with several contents

A body is read in here alone, of the kinds that the screen knows.

Owns the columns that go in and come out. Invariant: how rows lie in files and tasks changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.pieces.spark import SOURCE as PLAIN_EVENTS
from audit_engine.ingest.rows.pieces.spark import reader_of
from audit_engine.ingest.rows.plain import Pieces, plain_bodies
from audit_engine.jvm.spark import compile_into, invoked
from audit_engine.run.evidence.spark import KEY, SHARED
from audit_engine.run.kept.spark import Kept
from audit_engine.run.screen import PLAIN, READINGS
from rules.events import EmitterRetired, Heartbeat, LogBaseline, SegmentClosed, Source
from rules.machine.emitters import NO_ACTS
from rules.machine.terms import DAY_MS, NOT_AUDITED

SOURCES = sorted(Path(__file__).parent.glob("*.java"))
HELD_BYTES = 256 << 20  # of one task's rows, about; less where there is little memory
READINGS_BYTES = 256 << 10  # of one log in one task: sixty thousand of them and more
RUN = ("cluster_id", "broker_id", "component", "incarnation")

# What EventRow takes of a row, in its order.
ASKED = (
    *("cluster_id", "emitter_broker_id", "emitter_component", "emitter_incarnation", "emitter_seq"),
    *("observed_at_ms", "kafka_timestamp_ms", "kind", "event_id", "is_read"),
    *("follows_incarnation", "follows_last_seq", "log_id", "topic_id", "topic", "partition"),
    *("log_seq", "leader_epoch", "occurred_at_ms", "body"),
)
# Of an event's own fields, in its order too.
OWN: Pieces = {
    **dict.fromkeys(("source", "directory_id"), ("STRING", "text")),
    "broker_id": ("INT", "int"),
    **dict.fromkeys(
        (
            *("replica_incarnation", "log_start", "local_start", "high_watermark", "size_bytes"),
            *("base_offset", "end_offset", "data_end", "record_count", "max_timestamp_ms"),
        ),
        ("BIGINT", "long"),
    ),
}
# What the rows of one speaker must agree upon, or lie between, in Speaker's order.
SPREAD = ("leader_epoch", "own_broker_id", "life", "log_start", "local_start", "high_watermark")
_LONGS = "ARRAY<BIGINT>"
# What is asked of an event by its kind, as Kinds has it.
_KINDS = json.dumps(
    {
        "shared": SHARED,
        "retirement": [EmitterRetired.kind],
        "baseline": [LogBaseline.kind],
        "heartbeat": [Heartbeat.kind],
        "no_act": [each.kind for each in NO_ACTS],
        "plain": [each.kind for each in PLAIN],
        "reading": [each.kind for each in READINGS],
        "closed": [SegmentClosed.kind],
        "not_audited": sorted(NOT_AUDITED),
        "log_dir": Source.LOG_DIR.value,
        "ahead_ms": DAY_MS,
    }
)
# What comes out, in the order of TaskDigest's parts.
_OF_EMITTERS: Mapping[str, str] = {
    "part": "INT",
    **dict(zip(RUN, ("STRING", "INT", "STRING", "BIGINT"), strict=True)),
    **dict.fromkeys(("events", "left", "shared", "retirements", "unread"), "BIGINT"),
    **dict.fromkeys(("ahead_ms", "first_ms", "last_ms", "told_to"), "BIGINT"),
    "watches_disks": "BOOLEAN",
    **dict.fromkeys(("follows", "whole", "words", "bits", "counts", "elsewhere"), _LONGS),
}
_OF_LOGS: Mapping[str, str] = {
    "part": "INT",
    **dict(zip((*KEY, "topic"), ("STRING", "STRING", "INT", "STRING"), strict=True)),
    "stretches": "BINARY",
}
_OF_ACTS: Mapping[str, str] = {
    "part": "INT",
    "cluster_id": "STRING",
    "of": "INT",
    **dict.fromkeys(("acts", "tellers", "contents"), _LONGS),
}
_TOLD: Mapping[str, str] = {
    "broker_id": "INT",
    "component": "STRING",
    **dict.fromkeys(("incarnation", "events", "plain"), "BIGINT"),
    "is_in_line": "BOOLEAN",
    "falls": "BIGINT",
    **dict.fromkeys(("first_number", "last_number", "first_ms", "last_ms", "newest_least_ms"), "BIGINT"),
    "numbers": _LONGS,
    **{f"{name}_{which}": "BIGINT" for name in SPREAD for which in ("least", "most")},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What all tasks saw, each by itself: of emitters, logs and acts."""

    emitters: DataFrame
    logs: DataFrame
    acts: DataFrame


def digest(rows: DataFrame, as_of_ms: int, *, with_bodies: bool = True, kept: Kept | None = None) -> Parts:
    """`rows` are a slice, with ASKED. Without bodies, no event is one that the screen knows. What is read
    from files with nothing but a filter above is not made rows of. Without `kept`, each part is a pass."""
    spark = rows.sparkSession
    # A plan that is made in a thread goes by that thread's session.
    sessions: Any = spark._jvm
    sessions.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    asked: Any = rows.select(*ASKED)._jdf
    seen = made(spark, as_of_ms, with_bodies=with_bodies).of(asked.queryExecution().executedPlan())
    if kept is not None:
        seen = kept.as_they_are(spark, seen)
    parts = (_OF_EMITTERS, _OF_LOGS, _OF_ACTS)
    emitters, logs, acts = [_part(spark, seen, at, columns) for at, columns in enumerate(parts)]
    return Parts(emitters=emitters, logs=logs, acts=acts)


def _part(spark: SparkSession, seen: Any, part: int, columns: Mapping[str, str]) -> DataFrame:
    jvm: Any = spark._jvm
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(_ddl(columns))
    session: Any = spark._jsparkSession
    rows = _classes(spark).OfPart(part).of(seen)
    return DataFrame(session.internalCreateDataFrame(rows, schema, False), spark)


def made(spark: SparkSession, as_of_ms: int, *, with_bodies: bool) -> Any:
    """A SliceDigest."""
    reader = own_reader(spark) if with_bodies else None
    return _classes(spark).SliceDigest(_KINDS, reader, as_of_ms, HELD_BYTES, READINGS_BYTES)


def own_reader(spark: SparkSession) -> Any:
    """What cuts OWN out of bodies of the plain kinds, of those that are spelled as our own writers do."""
    return reader_of(spark, plain_bodies(tuple(each.kind for each in PLAIN), OWN))


def of_emitters(seen: Parts) -> DataFrame:
    """By run of an emitter. `numbers` and `elsewhere` are ranges, starts and ends behind each other, these in
    any order; `twice`: words of which some number came more than once."""
    of_it = seen.emitters.groupBy(*RUN)
    sums, mosts = ("events", "left", "shared", "retirements", "unread"), ("ahead_ms", "last_ms", "told_to")
    arrays = ("follows", "whole", "words", "bits", "counts", "elsewhere")
    each = of_it.agg(
        *[F.sum(name).alias(name) for name in sums],
        *[F.max(name).alias(name) for name in (*mosts, "watches_disks")],
        F.min("first_ms").alias("first_ms"),
        F.collect_list(F.struct(*arrays)).alias("each"),
    ).withColumns({name: F.flatten(f"each.{name}") for name in arrays})
    spark = seen.emitters.sparkSession
    numbers = "STRUCT<numbers: ARRAY<BIGINT>, twice: ARRAY<BIGINT>>"
    own = invoked(spark, _classes(spark).Numbers(), "of", numbers, "whole", "words", "bits", "counts")
    names = (*RUN, *sums, *mosts, "watches_disks", "first_ms", "follows", "elsewhere")
    return each.withColumn("own", own).select(*names, "own.numbers", "own.twice")


def twice(emitters: DataFrame) -> DataFrame:
    """Words of which some number came more than once."""
    return emitters.select(*RUN, F.explode("twice").alias("word"))


def of_logs(seen: Parts) -> DataFrame:
    """KEY, `topic`, null where it is not audited, and `told`: a member for each speaker, those that were
    observed in time."""
    of_each = seen.logs.groupBy(*KEY)
    whole = of_each.agg(F.max("topic").alias("topic"), F.collect_list("stretches").alias("stretches"))
    spark = seen.logs.sparkSession
    told = invoked(
        spark, _classes(spark).Told(), "merged", f"ARRAY<STRUCT<{_ddl(_TOLD, ': ')}>>", "stretches"
    )
    return whole.select(*KEY, "topic", told.alias("told"))


def unlike(seen: Parts) -> DataFrame:
    """Cluster and hash of the id of acts that several told, and not in the same words."""
    names = ("acts", "tellers", "contents")
    parts = seen.acts.groupBy("cluster_id", "of")
    each = parts.agg(F.collect_list(F.struct(*names)).alias("each"))
    each = each.withColumns({name: F.flatten(f"each.{name}") for name in names})
    spark = seen.acts.sparkSession
    acts = _classes(spark).Acts()
    found = each.withColumn("found", invoked(spark, acts, "unlike", _LONGS, *names))
    return found.select("cluster_id", F.explode("found").alias("act"))


def is_act() -> Column:
    return F.col("is_read") & ~F.col("kind").isin(*[each.kind for each in NO_ACTS])


def act_of() -> Column:
    """By what an act is known, as `unlike` names it."""
    return F.xxhash64("event_id")


def _classes(spark: SparkSession) -> Any:
    return compile_into(spark, *SOURCES, PLAIN_EVENTS)


def _ddl(columns: Mapping[str, str], between: str = " ") -> str:
    return ", ".join(f"{name}{between}{sql_type}" for name, sql_type in columns.items())
