"""The screen over all logs at once: one shuffle by log, two windows, one aggregation; no Python.

    numbers   of each log and emitter, what `excuse` asks of its rows: counts, leasts and mosts
    excused   those that agree with what is carried of a calm log

Sums of hashes would need no order (AUDIT_FACTS 8), but cannot tell whether a number or a watermark was said
before another, which the machine asks.

Owns the native form. Invariant: it excuses a log only if `excuse` does; and if so, where bodies are spelled
as our own writers do.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.pieces.spark import own_fields_by
from audit_engine.ingest.rows.plain import Pieces
from audit_engine.run.evidence.spark import KEY
from audit_engine.run.one_log import Doubt
from audit_engine.run.screen import AS_OF, EVENTS, FROM, PLAIN, READINGS, WATERMARK
from audit_engine.tables.results import CALM
from rules.events import SegmentClosed, Source
from rules.machine.terms import DAY_MS

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
_EMITTER = ("emitter_broker_id", "emitter_component", "emitter_incarnation")


def numbers(rows: DataFrame, as_of_ms: int) -> DataFrame:
    """One row a log of which anything was said up to the moment: `told`, one member an emitter.

    A log and an emitter go by hashes of their names, which a sort compares at once; a log has a second
    one, so that two logs of one hash are never taken for one.
    """
    said = rows.where(F.col("observed_at_ms") <= as_of_ms).withColumn("own", own_fields(rows.sparkSession))
    life = F.xxhash64(
        *[F.col(f"own.{name}") for name in ("broker_id", "directory_id", "replica_incarnation")]
    )
    narrow = said.select(
        _hash_of(KEY).alias("log_hash"),
        _check_of(KEY).alias("log_check"),
        _hash_of(_EMITTER).alias("speaker"),
        *_EMITTER,
        "emitter_seq",
        "log_seq",
        "observed_at_ms",
        "leader_epoch",
        _is_plain().alias("is_plain"),
        (F.col("kind") == SegmentClosed.kind).alias("is_closed"),
        F.col("own.broker_id").alias("broker_id"),
        life.alias("life"),
        *[F.col(f"own.{name}") for name in ("log_start", "local_start", "high_watermark")],
        F.when(F.col("own.max_timestamp_ms") >= 0, F.col("own.max_timestamp_ms")).alias("newest_ms"),
    )
    in_order = Window.partitionBy("log_hash").orderBy("observed_at_ms", *_EMITTER, "emitter_seq")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    of_one = Window.partitionBy("log_hash", "speaker").orderBy("observed_at_ms", "emitter_seq")
    goes_on = (F.col("log_seq") == F.lag("log_seq").over(of_one) + 1) & (
        F.col("emitter_seq") > F.lag("emitter_seq").over(of_one)
    )
    published = narrow.withColumn("highest", F.max("high_watermark").over(before))
    published = published.withColumn("goes_on", goes_on)
    of_emitters = published.groupBy("log_hash", "speaker").agg(*_aggregated())
    names = [name for name in of_emitters.columns if name != "log_hash"]
    return of_emitters.groupBy("log_hash").agg(F.collect_list(F.struct(*names)).alias("told"))


def own_fields(spark: SparkSession) -> Column:
    """OWN, of a row's `body`; null for any kind but the plain ones, and for what is spelled otherwise."""
    return own_fields_by(spark, tuple(each.kind for each in PLAIN), OWN, "kind", "body")


def _hash_of(names: Iterable[str]) -> Column:
    return F.xxhash64(*names)


def _check_of(names: Iterable[str]) -> Column:
    """Another hash of the same."""
    return F.xxhash64(*reversed([*names]), F.lit("other"))


def _aggregated() -> list[Column]:
    least = [F.min(name).alias(f"{name}_least") for name in _SPREAD]
    most = [F.max(name).alias(f"{name}_most") for name in _SPREAD]
    known_epoch = F.when(F.col("leader_epoch") >= 0, F.col("leader_epoch"))
    falls = F.col("high_watermark") < F.col("highest")
    return [
        *least,
        *most,
        F.count(F.lit(1)).alias("count"),
        F.count_if("is_plain").alias("plain"),
        F.count_if("goes_on").alias("following"),
        F.min(known_epoch).alias("epoch_least"),
        F.max(known_epoch).alias("epoch_most"),
        F.count_if(falls).alias("falls"),
        F.min(F.when(F.col("is_closed"), F.col("newest_ms"))).alias("newest_least_ms"),
    ]


# What the rows of one emitter must agree upon, or lie between.
_SPREAD = (
    "log_check",
    "log_seq",
    "observed_at_ms",
    "broker_id",
    "life",
    "log_start",
    "local_start",
    "high_watermark",
)


def _is_plain() -> Column:
    is_kind = F.col("kind").isin(*[each.kind for each in PLAIN]) & F.col("is_read")
    is_reading = F.col("kind").isin(*[each.kind for each in READINGS])
    own = F.col("own")
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
    said = is_kind & is_seen & is_known & F.when(is_reading, reads).otherwise(closes)
    return F.coalesce(said, F.lit(False))


def excused(carried: DataFrame, said: DataFrame, *, from_ms: int, as_of_ms: int) -> DataFrame:
    """`carried` are calm logs, each as its last statement has it; `said` is `numbers` of the slice.

    Those that are excused, with their statement and what is carried on.
    """
    named = carried.withColumns({"log_hash": _hash_of(KEY), "log_check": _check_of(KEY)})
    both = named.join(said, "log_hash", "left")
    calm = F.col("calm")
    told = F.coalesce(F.col("told"), F.array().cast(said.schema["told"].dataType))
    is_excused = F.forall(told, lambda each: _agrees(each, calm, F.col("log_check"))) & (
        _until(calm, told) > as_of_ms
    )
    after = both.where(is_excused).withColumn("calm", _advanced(calm, told))
    words = F.col("words")
    numbers_put = {
        AS_OF: F.lit(as_of_ms),
        FROM: F.lit(from_ms),
        EVENTS: F.col("calm.events"),
        WATERMARK: F.col("calm.watermark"),
    }
    for place, number in numbers_put.items():
        text = number.cast("string")
        words = F.replace(F.replace(words, F.lit(f'"{place}"'), text), F.lit(place), text)
    stated = after.withColumn("statement", words)
    return stated.select(
        *KEY,
        "topic",
        "state_run",
        "calm",
        "words",
        F.lit("PASS").alias("verdict"),
        "statement",
        F.sha2("statement", 256).alias("statement_hash"),
    )


def _speaker(known: Column) -> Column:
    return F.xxhash64(known["broker_id"], known["component"], known["incarnation"])


def _agrees(each: Column, calm: Column, check: Column) -> Column:
    """One emitter's word with what is known of the log."""
    goes_on = F.exists(
        calm["heard"],
        lambda known: (_speaker(known) == each["speaker"]) & (known["next_seq"] == each["log_seq_least"]),
    )
    is_it = (each["log_check_least"] == check) & (each["log_check_most"] == check)
    is_whole = is_it & (each["following"] == each["count"] - 1)
    is_plain = each["plain"] == each["count"]
    is_later = each["observed_at_ms_least"] > calm["position_ms"]
    epoch = calm["leader_epoch"]
    is_of_epoch = F.coalesce(each["epoch_least"], epoch).eqNullSafe(epoch)
    is_of_epoch &= F.coalesce(each["epoch_most"], epoch).eqNullSafe(epoch)
    is_low = F.coalesce(each["high_watermark_least"], calm["watermark"]) < calm["watermark"]
    stays_high = (each["broker_id_least"] != calm["leader_id"]) | ((each["falls"] == 0) & ~is_low)
    found = goes_on & is_whole & is_plain & is_later & is_of_epoch & stays_high & _stands(each, calm)
    return F.coalesce(found, F.lit(False))


def _stands(each: Column, calm: Column) -> Column:
    """All of it is about one life that is known, which stands where it stood."""

    def is_it(life: Column) -> Column:
        known_life = F.xxhash64(life["broker_id"], life["directory_id"], life["incarnation"])
        found = (each["life_least"] == known_life) & (each["life_most"] == known_life)
        for name, known in (("log_start", "start"), ("local_start", "local_start")):
            found &= F.coalesce(each[f"{name}_least"], life[known]) == life[known]
            found &= F.coalesce(each[f"{name}_most"], life[known]) == life[known]
        return found

    return F.exists(calm["lives"], is_it)


def _until(calm: Column, told: Column) -> Column:
    keeps = F.transform(told, lambda each: each["newest_least_ms"] + calm["keep_ms"])
    return F.least(calm["until_ms"], F.coalesce(F.array_min(keeps), calm["until_ms"]))


def _advanced(calm: Column, told: Column) -> Column:
    highest = F.array_max(F.transform(told, lambda each: each["high_watermark_most"]))
    latest = F.array_max(F.transform(told, lambda each: each["observed_at_ms_most"]))
    count = F.aggregate(told, F.lit(0).cast("bigint"), lambda sum_, each: sum_ + each["count"])

    def heard_to(known: Column) -> Column:
        own = F.filter(told, lambda each: each["speaker"] == _speaker(known))
        next_seq = F.coalesce(F.try_element_at(own, F.lit(1))["log_seq_most"] + 1, known["next_seq"])
        return known.withField("next_seq", next_seq)

    return (
        calm.withField("until_ms", _until(calm, told))
        .withField("position_ms", F.greatest(calm["position_ms"], latest))
        .withField("events", calm["events"] + count)
        .withField("watermark", F.greatest(calm["watermark"], highest))
        .withField("heard", F.transform(calm["heard"], heard_to))
        .cast(CALM)
    )


def in_doubt(doubts: tuple[Doubt, ...]) -> Column:
    """Calm logs that a doubt is about."""
    found = F.lit(False)
    for each in doubts:
        about = F.lit(True)
        if each.cluster_id is not None:
            about &= F.col("cluster_id") == each.cluster_id
        if each.broker_id is not None:
            about &= F.array_contains("calm.brokers", each.broker_id)
        found |= about
    return found
