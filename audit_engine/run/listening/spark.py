"""What is asked of the slice as a whole and of each emitter, natively: counts, and a bit for each number.

    profile   one row a word of 64 numbers: what the gate, the run's counts and the emitters are made of
    seen      what the profile comes to
    heard     each emitter over what was carried of it; Python sees words, not events. Of AUD-02, rows are
              looked at one by one only where a number, or an act's id, came more than once

No row's body is read but of what is about no log, which is little.

Owns these aggregations. Invariant: what is heard is what `rules.machine.emitters.listen` hears.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.evidence.spark import is_shared
from audit_engine.run.groups.spark import EMITTER, Emitter, Listeners, each_emitter
from audit_engine.run.one_log import Task
from audit_engine.run.told import told_of
from rules.events import EmitterRetired, Heartbeat, LogBaseline
from rules.machine.emitters import NO_ACTS, Around

DOUBLED_MAX = 10_000  # rows that are looked at one by one
_SPEAKER = ("cluster_id", "emitter_broker_id", "emitter_component", "emitter_incarnation")
_NAMED = (*EMITTER, "incarnation")
# What a run as a whole is told of each emitter.
HEARD = (*EMITTER, "is_silent", "watches_disks", "new_gaps", "findings", "holes")


def profile(rows: DataFrame, as_of_ms: int) -> DataFrame:
    """By emitter, its run, and word of its numbers; `is_due`: observed up to the moment."""
    kind = F.col("kind")
    return rows.groupBy(
        *[F.col(one).alias(name) for one, name in zip(_SPEAKER, _NAMED, strict=True)],
        F.expr("shiftright(emitter_seq, 6)").alias("word"),
        (F.col("observed_at_ms") <= as_of_ms).alias("is_due"),
    ).agg(
        F.expr("bit_or(shiftleft(1L, cast(emitter_seq & 63 as int)))").alias("bits"),
        F.count(F.lit(1)).alias("events"),
        F.count_if(is_shared()).alias("shared"),
        F.count_if(kind == EmitterRetired.kind).alias("retirements"),
        F.count_if(~F.col("is_read")).alias("unread"),
        F.max(F.col("observed_at_ms") - F.col("kafka_timestamp_ms")).alias("ahead_ms"),
        F.min("observed_at_ms").alias("first_ms"),
        F.max("observed_at_ms").alias("last_ms"),
        F.max((kind == LogBaseline.kind) & F.col("is_read")).alias("watches_disks"),
        F.max("follows_incarnation").alias("follows_incarnation"),
        F.max("follows_last_seq").alias("follows_last_seq"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Of the slice as a whole. `left`: observed after the moment; `twice`: under a number that came before;
    `by_emitter` has what the gate asks of each."""

    events: int
    left: int
    shared: int
    retirements: int
    twice: int
    first_ms: int
    by_emitter: list[Row]


def seen(words: DataFrame) -> Seen:
    """`words` is the profile."""
    numbers = F.when(F.col("is_due"), F.col("events") - F.bit_count("bits"))
    rows = (
        words.groupBy(*EMITTER)
        .agg(
            *[F.sum(name).alias(name) for name in ("events", "shared", "retirements", "unread")],
            F.sum(F.when(~F.col("is_due"), F.col("events"))).alias("left"),
            F.sum(numbers).alias("twice"),
            F.max("ahead_ms").alias("ahead_ms"),
            F.min("first_ms").alias("first_ms"),
        )
        .collect()
    )
    names = ("events", "left", "shared", "retirements", "twice")
    counts = {name: sum(row[name] or 0 for row in rows) for name in names}
    return Seen(**counts, first_ms=min((row["first_ms"] for row in rows), default=0), by_emitter=rows)


def heard(
    rows: DataFrame,
    words: DataFrame,
    slice_: Seen,
    known: DataFrame,
    task: Task,
    kept: Callable[[DataFrame], DataFrame],
) -> tuple[DataFrame, list[Row]]:
    """Each emitter of the slice or of before, and what the run is told of it. `words` is the profile."""
    due = rows.where(F.col("observed_at_ms") <= task.as_of_ms)
    listeners = Listeners(
        task=task,
        retired=retired_emitters(rows) if slice_.retirements else frozenset(),
        doubled=_to_emitters([*(_same_number(due, words) if slice_.twice else ()), *_same_id(due)]),
    )
    summed = kept(_summed(due, words))
    found = kept(each_emitter(summed, known, listeners))
    told = found.select(*HEARD).collect()
    holes = [
        (*(each[name] for name in EMITTER), hole["incarnation"], hole["first"], hole["end"])
        for each in told
        for hole in each["holes"]
    ]
    if holes:
        found = kept(each_emitter(summed, known, listeners.knowing(_around(due, holes))))
        told = found.select(*HEARD).collect()
    return found, told


def _summed(due: DataFrame, words: DataFrame) -> DataFrame:
    """Words of emitters, words of their logs, and what heartbeats say."""
    nothing = F.lit(None)
    own = words.where("is_due").select(
        *_NAMED,
        nothing.cast("string").alias("log"),
        *("word", "bits", "last_ms", "watches_disks", "follows_incarnation", "follows_last_seq"),
        nothing.cast("bigint").alias("told_to"),
    )
    named = [F.col(one).alias(name) for one, name in zip(_SPEAKER, _NAMED, strict=True)]
    log = F.when(F.col("is_read") & F.col("log_id").isNotNull(), F.col("log_id")).otherwise("")
    of_logs = (
        due.where(F.col("log_seq").isNotNull())
        .groupBy(
            *named,
            log.alias("log"),
            F.expr("shiftright(log_seq, 6)").alias("word"),
        )
        .agg(F.expr("bit_or(shiftleft(1L, cast(log_seq & 63 as int)))").alias("bits"))
    )
    last_seq = F.get_json_object("body", "$.last_seq").cast("bigint")
    beats = (
        due.where(F.col("log_id").isNull() & (F.col("kind") == Heartbeat.kind) & F.col("is_read"))
        .groupBy(*named)
        .agg((F.max(last_seq) + 1).alias("told_to"))
    )
    both = own.unionByName(of_logs, allowMissingColumns=True)
    return both.unionByName(beats, allowMissingColumns=True)


def _around(
    due: DataFrame, holes: list[tuple[str, int, str, int, int, int]]
) -> dict[Emitter, dict[int, Around]]:
    """When what borders on the holes was said, by emitter and run."""
    schema = (
        "cluster_id STRING, broker_id INT, component STRING, incarnation BIGINT, first BIGINT, end BIGINT"
    )
    at = F.broadcast(due.sparkSession.createDataFrame(holes, schema))
    same = [due[one] == at[name] for one, name in zip(_SPEAKER, _NAMED, strict=True)]
    seq, moment = F.col("emitter_seq"), F.col("observed_at_ms")
    placed = F.struct(seq, moment)
    found = (
        due.join(at, same)
        .groupBy(*[at[name] for name in _NAMED])
        .agg(
            F.max(F.when(seq < F.col("first"), placed))["observed_at_ms"].alias("before_ms"),
            F.min(F.when(seq >= F.col("end"), placed))["observed_at_ms"].alias("behind_ms"),
        )
    )
    by_emitter: dict[Emitter, dict[int, Around]] = {}
    for row in found.collect():
        name = (row["cluster_id"], row["broker_id"], row["component"])
        around = Around(row["before_ms"], row["behind_ms"])
        by_emitter.setdefault(name, {})[row["incarnation"]] = around
    return by_emitter


def _same_number(due: DataFrame, words: DataFrame) -> list[Row]:
    """Those that came under one number with several contents."""
    number = (*_SPEAKER, "emitter_seq")
    twice = words.where("is_due AND events > bit_count(bits)").select(*_NAMED, "word")
    same = [due[one] == twice[name] for one, name in zip(_SPEAKER, _NAMED, strict=True)]
    again = due.join(twice, [*same, F.expr("shiftright(emitter_seq, 6)") == twice["word"]], "left_semi")
    contents = again.groupBy(*number).agg(
        F.min("payload_hash").alias("one"), F.max("payload_hash").alias("other")
    )
    several = contents.where("one <> other").select(*number)
    found = again.join(several, list(number), "left_semi")
    return found.orderBy(*number, "payload_hash").limit(DOUBLED_MAX).collect()


def _same_id(due: DataFrame) -> list[Row]:
    """Acts that were told several times with several contents, whoever told them: what all hosts can see is
    told by several, as one event (docs/decisions/0013)."""
    acts = due.where(F.col("is_read") & ~F.col("kind").isin(*[each.kind for each in NO_ACTS]))
    named = acts.withColumn("own_id", F.xxhash64("event_id"))
    once = ("cluster_id", "own_id")
    number = F.xxhash64(*_SPEAKER[1:], "emitter_seq")
    told = named.groupBy(*once).agg(F.min(number).alias("least"), F.max(number).alias("most"))
    repeated = told.where("least <> most").select(*once)
    if repeated.isEmpty():
        return []
    content = F.xxhash64(
        *("kind", "event_id", "occurred_at_ms", "topic_id", "topic", "partition", "leader_epoch", "body")
    )
    again = named.join(repeated, list(once), "left_semi")
    contents = again.withColumn("content", content).groupBy(*once)
    several = contents.agg(F.min("content").alias("one"), F.max("content").alias("other"))
    different = several.where("one <> other").select(*once)
    found = again.join(different, list(once), "left_semi").drop("own_id")
    return found.orderBy("event_id", *_SPEAKER, "emitter_seq").limit(DOUBLED_MAX).collect()


def _to_emitters(found: list[Row]) -> dict[Emitter, list[dict[str, Any]]]:
    """To each of them all of its cluster: what one says may contradict another."""
    by_cluster: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        by_cluster.setdefault(row["cluster_id"], []).append(row.asDict())
    return {
        (row["cluster_id"], row["emitter_broker_id"], row["emitter_component"]): by_cluster[row["cluster_id"]]
        for row in found
    }


def retired_emitters(rows: DataFrame) -> frozenset[Emitter]:
    """Cluster, broker and component of each emitter that somebody says to be no more; its state remembers."""
    found = rows.where(F.col("log_id").isNull() & (F.col("kind") == EmitterRetired.kind)).collect()
    said = [(row["cluster_id"], told_of(row.asDict()).event) for row in found]
    return frozenset(
        (cluster_id, event.broker_id, event.component)
        for cluster_id, event in said
        if isinstance(event, EmitterRetired)
    )
