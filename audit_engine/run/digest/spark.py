"""A slice, gone through once: all that a run asks of it before it folds any log (SliceDigest.java).

    digest       one pass, without a shuffle: what each task saw, in few rows
    of_emitters  one row a run of an emitter: its counts, and a bit for each of its numbers
    of_logs      one row a log: what each of its speakers says of it, as the screen asks
    unlike       acts that were told several times with several contents

A body is read in here alone, of the kinds that the screen knows.

Owns the columns that go in and come out. Invariant: how rows lie in files and tasks changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.pieces.spark import own_fields_by
from audit_engine.ingest.rows.plain import Pieces
from audit_engine.jvm.spark import compile_into, invoked
from audit_engine.run.evidence.spark import KEY, is_shared
from audit_engine.run.screen import PLAIN, READINGS
from rules.events import EmitterRetired, Heartbeat, LogBaseline, SegmentClosed, Source
from rules.machine.emitters import NO_ACTS
from rules.machine.terms import DAY_MS, NOT_AUDITED

SOURCE = Path(__file__).parent / "SliceDigest.java"
HELD_BYTES = 64 << 20  # of one task's rows, about
READINGS_BYTES = 256 << 10  # of one log in one task: sixty thousand of them and more
RUN = ("cluster_id", "broker_id", "component", "incarnation")

# Of an event's own fields.
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
# What the rows of one speaker must agree upon, or lie between, in SliceDigest's order.
SPREAD = ("leader_epoch", "own_broker_id", "life", "log_start", "local_start", "high_watermark")
_OF_EMITTER, _OF_LOG, _OF_ACTS = 0, 1, 2
_LONGS = "ARRAY<BIGINT>"
_SEEN: Mapping[str, str] = {
    "part": "INT",
    **dict(zip(RUN, ("STRING", "INT", "STRING", "BIGINT"), strict=True)),
    **dict.fromkeys(("events", "left", "shared", "retirements", "unread"), "BIGINT"),
    **dict.fromkeys(("ahead_ms", "first_ms", "last_ms", "told_to"), "BIGINT"),
    "watches_disks": "BOOLEAN",
    **dict.fromkeys(("follows", "words", "bits", "counts", "elsewhere"), _LONGS),
    **dict(zip((*KEY[1:], "topic"), ("STRING", "INT", "STRING"), strict=True)),
    "stretches": "BINARY",
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


def digest(rows: DataFrame, as_of_ms: int, *, with_bodies: bool = True) -> DataFrame:
    """`rows` are a slice, as `evidence` has it. Without bodies, no event is one that the screen knows."""
    spark = rows.sparkSession
    own = own_fields(spark) if with_bodies else F.lit(None).cast(_struct_of(OWN))
    asked: Any = rows.withColumn("own", own).select(*_asked().values())._jdf
    jvm_rows = asked.queryExecution().toRdd().toJavaRDD()
    seen = jvm_rows.mapPartitions(_digest(spark, as_of_ms)).rdd()
    jvm: Any = spark._jvm
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(_ddl(_SEEN))
    session: Any = spark._jsparkSession
    return DataFrame(session.internalCreateDataFrame(seen, schema, False), spark)


def own_fields(spark: SparkSession) -> Column:
    """OWN, of a row's `body`; null for any kind but the plain ones, and for what is spelled otherwise."""
    return own_fields_by(spark, tuple(each.kind for each in PLAIN), OWN, "kind", "body")


def of_emitters(seen: DataFrame) -> DataFrame:
    """By run of an emitter. `words`, `bits` and `counts` go together; a word may come several times."""
    of_it = seen.where(F.col("part") == _OF_EMITTER).groupBy(*RUN)
    sums, mosts = ("events", "left", "shared", "retirements", "unread"), ("ahead_ms", "last_ms", "told_to")
    arrays = ("follows", "words", "bits", "counts", "elsewhere")
    return of_it.agg(
        *[F.sum(name).alias(name) for name in sums],
        *[F.max(name).alias(name) for name in (*mosts, "watches_disks")],
        F.min("first_ms").alias("first_ms"),
        F.collect_list(F.struct(*arrays)).alias("each"),
    ).select(
        *[*RUN, *sums, *mosts, "watches_disks", "first_ms"],
        *[F.flatten(f"each.{name}").alias(name) for name in arrays],
    )


def twice(emitters: DataFrame) -> DataFrame:
    """Words of which some number came more than once."""
    words = emitters.select(*RUN, F.inline(F.arrays_zip("words", "bits", "counts")))
    whole = words.groupBy(*RUN, F.col("words").alias("word")).agg(
        F.bit_or("bits").alias("bits"), F.sum("counts").alias("count")
    )
    return whole.where(F.col("count") > F.bit_count("bits")).select(*RUN, "word")


def of_logs(seen: DataFrame) -> DataFrame:
    """KEY, `topic`, null where it is not audited, and `told`: a member for each speaker, those that were
    observed in time."""
    of_each = seen.where(F.col("part") == _OF_LOG).groupBy(*KEY)
    whole = of_each.agg(F.max("topic").alias("topic"), F.collect_list("stretches").alias("stretches"))
    spark = seen.sparkSession
    told = invoked(spark, _digest(spark, 0), "merged", f"ARRAY<STRUCT<{_ddl(_TOLD, ': ')}>>", "stretches")
    return whole.select(*KEY, "topic", told.alias("told"))


def unlike(seen: DataFrame) -> DataFrame:
    """Cluster and hash of the id of acts that several told, and not in the same words."""
    acts = seen.where(F.col("part") == _OF_ACTS)
    each = acts.select("cluster_id", F.inline(F.arrays_zip("acts", "tellers", "contents")))
    spread = [
        one(name).alias(f"{name}_{which}")
        for name in ("tellers", "contents")
        for which, one in (("least", F.min), ("most", F.max))
    ]
    by_act = each.groupBy("cluster_id", F.col("acts").alias("act")).agg(*spread)
    several = "tellers_least <> tellers_most AND contents_least <> contents_most"
    return by_act.where(several).select("cluster_id", "act")


def is_act() -> Column:
    return F.col("is_read") & ~F.col("kind").isin(*[each.kind for each in NO_ACTS])


def act_of() -> Column:
    """By what an act is known, as `unlike` names it."""
    return F.xxhash64("event_id")


def _digest(spark: SparkSession, as_of_ms: int) -> Any:
    return compile_into(spark, SOURCE).SliceDigest(as_of_ms, HELD_BYTES, READINGS_BYTES)


def _asked() -> dict[str, Column]:
    """What SliceDigest takes of a row, in its order."""
    own, has_log = F.col("own"), F.col("log_id").isNotNull()
    kind = F.col("kind")
    is_heartbeat = (kind == Heartbeat.kind) & ~has_log & F.col("is_read")
    last_seq = F.get_json_object("body", "$.last_seq").cast("bigint")
    content = F.xxhash64(
        *("kind", "event_id", "occurred_at_ms", "topic_id", "topic", "partition", "leader_epoch", "body")
    )
    teller = F.xxhash64("emitter_broker_id", "emitter_component", "emitter_incarnation", "emitter_seq")
    newest_ms = own["max_timestamp_ms"]
    is_newest = (kind == SegmentClosed.kind) & (newest_ms >= 0)
    is_audited = has_log & ~F.col("topic").isin(*sorted(NOT_AUDITED))
    life = F.xxhash64(own["broker_id"], own["directory_id"], own["replica_incarnation"])
    epoch = F.col("leader_epoch")
    spread = (F.when(epoch >= 0, epoch), own["broker_id"], life, own["log_start"], own["local_start"])
    names = (
        *("cluster_id", "emitter_broker_id", "emitter_component", "emitter_incarnation", "emitter_seq"),
        "observed_at_ms",
    )
    return {
        **{name: F.col(name) for name in names},
        "ahead_ms": F.col("observed_at_ms") - F.col("kafka_timestamp_ms"),
        "is_shared": _is(is_shared()),
        "is_retirement": _is(kind == EmitterRetired.kind),
        "is_read": F.col("is_read"),
        "watches_disks": _is((kind == LogBaseline.kind) & F.col("is_read")),
        "follows_incarnation": F.col("follows_incarnation"),
        "follows_last_seq": F.col("follows_last_seq"),
        "told_to": F.when(is_heartbeat, last_seq + 1),
        "act": F.when(is_act(), act_of()),
        "teller": F.when(is_act(), teller),
        "content": F.when(is_act(), content),
        "has_log": has_log,
        "topic_id": F.col("topic_id"),
        "partition": F.col("partition"),
        "topic": F.when(is_audited, F.col("topic")),
        "log_seq": F.col("log_seq"),
        "is_plain": _is(_is_plain(own)),
        "newest_ms": F.when(is_newest, newest_ms),
        "high_watermark": own["high_watermark"],
        **{f"of_{name}": each.cast("bigint") for name, each in zip(SPREAD, spread, strict=False)},
    }


def _is(column: Column) -> Column:
    return F.coalesce(column, F.lit(False))


def _is_plain(own: Column) -> Column:
    """What `excuse` asks of each event by itself, but what it must agree with."""
    is_kind = F.col("kind").isin(*[each.kind for each in PLAIN]) & F.col("is_read")
    is_reading = F.col("kind").isin(*[each.kind for each in READINGS])
    is_seen = (own["source"] == Source.LOG_DIR.value) & F.col("log_seq").isNotNull()
    is_known = own["broker_id"].isNotNull() & own["directory_id"].isNotNull()
    is_known &= own["replica_incarnation"].isNotNull() & F.col("leader_epoch").isNotNull()
    is_filled = own["size_bytes"].isNull() | (own["size_bytes"] > 0)
    reads = own["log_start"].isNotNull() & own["high_watermark"].isNotNull() & is_filled
    is_full = own["data_end"].isNull() | (own["data_end"] == own["end_offset"])
    span = own["end_offset"] - own["base_offset"]
    is_counted = own["record_count"].isNull() | (own["record_count"] == span)
    newest_ms = own["max_timestamp_ms"]
    is_sane = newest_ms.isNull() | (newest_ms <= F.col("occurred_at_ms") + DAY_MS)
    closes = is_full & is_counted & is_sane
    return is_kind & is_seen & is_known & F.when(is_reading, reads).otherwise(closes)


def _ddl(columns: Mapping[str, str], between: str = " ") -> str:
    return ", ".join(f"{name}{between}{sql_type}" for name, sql_type in columns.items())


def _struct_of(pieces: Pieces) -> str:
    return f"STRUCT<{_ddl({name: sql_type for name, (sql_type, _) in pieces.items()}, ': ')}>"
