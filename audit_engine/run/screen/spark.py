"""The screen over all logs at once, by what `digest` has of each; no Python.

Sums of hashes would need no order (AUDIT_FACTS 8), but cannot tell whether a number or a watermark was said
before another, which the machine asks.

Owns the native form. Invariant: it excuses a log only if `excuse` does; and if so, where bodies are spelled
as our own writers do.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.jvm.spark import compile_into, invoked
from audit_engine.run.evidence.spark import KEY
from audit_engine.run.one_log import Doubt
from audit_engine.run.screen import AS_OF, EVENTS, FROM, WATERMARK
from audit_engine.tables.results import CALM

_WORDING = Path(__file__).parent / "Wording.java"


def excused(carried: DataFrame, logs: DataFrame, *, from_ms: int, as_of_ms: int) -> DataFrame:
    """`carried` are calm logs, each as its last statement has it; `logs` are those of the slice's digest.

    Those that are excused, with their statement and what is carried on.
    """
    both = carried.join(logs.select(*KEY, "told"), list(KEY), "left")
    found = screened(both, from_ms=from_ms, as_of_ms=as_of_ms).where(F.col("after").isNotNull())
    of_it = ("statement", "statement_hash")
    return found.select(*KEY, "topic", "state_run", F.col("after").alias("calm"), "words", *of_it)


def screened(both: DataFrame, *, from_ms: int, as_of_ms: int) -> DataFrame:
    """Logs with `calm` and `words` as they are carried and `told` as the digest has it, each null where there
    is none; `after`, what is carried on, and its statement: null where it is not excused."""
    calm = F.col("calm")
    told = F.coalesce(F.col("told"), F.array().cast(both.schema["told"].dataType))
    is_excused = F.forall(told, lambda each: _agrees(each, calm)) & (_until(calm, told) > as_of_ms)
    found = both.withColumn("after", F.when(calm.isNotNull() & is_excused, _advanced(calm, told)))
    spark = both.sparkSession
    words = compile_into(spark, _WORDING).Wording(FROM, AS_OF, EVENTS, WATERMARK, from_ms, as_of_ms)
    # Of none that is not excused: it has no numbers.
    put = invoked(spark, words, "put", "STRING", "words", "after.events", "after.watermark")
    found = found.withColumn("statement", put)
    return found.withColumn("statement_hash", F.sha2("statement", 256))


def _is_of(each: Column, known: Column) -> Column:
    """Whether it is the speaker that is known."""
    names = ("broker_id", "component", "incarnation")
    return F.struct(*[each[name] for name in names]) == F.struct(*[known[name] for name in names])


def _agrees(each: Column, calm: Column) -> Column:
    """One speaker's word with what is known of the log."""
    goes_on = F.exists(
        calm["heard"],
        lambda known: _is_of(each, known) & (known["next_seq"] == each["first_number"]),
    )
    is_plain = each["plain"] == each["events"]
    is_later = each["first_ms"] > calm["position_ms"]
    epoch = calm["leader_epoch"]
    is_of_epoch = F.coalesce(each["leader_epoch_least"], epoch).eqNullSafe(epoch)
    is_of_epoch &= F.coalesce(each["leader_epoch_most"], epoch).eqNullSafe(epoch)
    is_low = F.coalesce(each["high_watermark_least"], calm["watermark"]) < calm["watermark"]
    is_leader = each["own_broker_id_least"] == calm["leader_id"]
    stays_high = ~is_leader | ((each["falls"] == 0) & ~is_low)
    found = goes_on & each["is_in_line"] & is_plain & is_later & is_of_epoch & stays_high
    return F.coalesce(found & _stands(each, calm), F.lit(False))


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
    latest = F.array_max(F.transform(told, lambda each: each["last_ms"]))
    count = F.aggregate(told, F.lit(0).cast("bigint"), lambda sum_, each: sum_ + each["events"])

    def heard_to(known: Column) -> Column:
        own = F.filter(told, lambda each: _is_of(each, known))
        next_seq = F.coalesce(F.try_element_at(own, F.lit(1))["last_number"] + 1, known["next_seq"])
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
