"""What is asked of the slice as a whole and of each emitter, of its digest: counts, and its numbers.

    digested  the slice, gone through once
    seen      what it comes to: what the gate and the run's counts are made of
    heard     each emitter over what was carried of it; Python sees ranges, not events. Of AUD-02, rows are
              looked at one by one only where a number, or an act, came more than once and not the same

Owns these aggregations. Invariant: what is heard is what `rules.machine.emitters.listen` hears.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.digest.spark import (
    RUN,
    Parts,
    act_of,
    digest,
    is_act,
    of_emitters,
    of_logs,
    twice,
    unlike,
)
from audit_engine.run.evidence.spark import log_id
from audit_engine.run.groups.spark import EMITTER, Emitter, Listeners, each_emitter
from audit_engine.run.kept.spark import Kept
from audit_engine.run.one_log import Task
from audit_engine.run.told import told_of
from rules.events import EmitterRetired
from rules.machine.emitters import Around

DOUBLED_MAX = 10_000  # rows that are looked at one by one
_SPEAKER = ("cluster_id", "emitter_broker_id", "emitter_component", "emitter_incarnation")
# What a run as a whole is told of each emitter.
HEARD = (*EMITTER, "is_silent", "watches_disks", "new_gaps", "findings", "holes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Of the slice as a whole. `left`: observed after the moment; `doubled`: words of which some number came
    more than once; `by_emitter` has what the gate asks of each."""

    events: int
    left: int
    doubled: int
    shared: int
    retirements: int
    first_ms: int
    by_emitter: list[Row]


def seen(emitters: DataFrame) -> Seen:
    """`emitters` is what `digest` has of them."""
    rows = (
        emitters.groupBy(*EMITTER)
        .agg(
            *[F.sum(name).alias(name) for name in ("events", "left", "shared", "retirements", "unread")],
            F.sum(F.size("twice")).alias("doubled"),
            F.max("ahead_ms").alias("ahead_ms"),
            F.min("first_ms").alias("first_ms"),
        )
        .collect()
    )
    names = ("events", "left", "doubled", "shared", "retirements")
    counts = {name: sum(row[name] for row in rows) for name in names}
    return Seen(**counts, first_ms=min((row["first_ms"] for row in rows), default=0), by_emitter=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digested:
    """A slice as `digest` has it: `parts`, and what they come to."""

    parts: Parts
    emitters: DataFrame
    logs: DataFrame
    seen: Seen


def digested(rows: DataFrame, as_of_ms: int, kept: Kept, *, with_bodies: bool) -> Digested:
    parts = digest(rows, as_of_ms, with_bodies=with_bodies, kept=kept)
    with ThreadPoolExecutor(1) as aside:
        logs = aside.submit(lambda: kept(of_logs(parts)))
        emitters = kept(of_emitters(parts))
        return Digested(parts=parts, emitters=emitters, seen=seen(emitters), logs=logs.result())


def heard(
    rows: DataFrame,
    digested: Digested,
    known: DataFrame,
    task: Task,
    kept: Callable[[DataFrame], DataFrame],
) -> tuple[DataFrame, list[Row]]:
    """Each emitter of the slice or of before, and what the run is told of it."""
    due = rows.where(F.col("observed_at_ms") <= task.as_of_ms)
    again = _same_act(due, digested.parts)
    if digested.seen.doubled:
        again += _same_number(due, digested.emitters)
    listeners = Listeners(
        task=task,
        retired=retired_emitters(rows) if digested.seen.retirements else frozenset(),
        doubled=_to_emitters(again),
    )
    summed = kept(_summed(digested))
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


def _summed(digested: Digested) -> DataFrame:
    """A row for each run of an emitter, and one for what it said of logs: to Python tens of thousands of rows
    are dearer than one text."""
    own = digested.emitters.where("events > `left`").select(
        *RUN,
        F.lit(None).cast("string").alias("logs"),
        F.col("numbers").alias("ranges"),
        *("last_ms", "watches_disks", "told_to", "follows", "elsewhere"),
    )
    each = digested.logs.select("cluster_id", log_id().alias("log"), F.explode("told").alias("told"))
    numbers = F.struct("log", F.col("told.numbers").alias("numbers"))
    of_logs = each.where(F.size("told.numbers") > 0).groupBy(
        "cluster_id", *[F.col(f"told.{name}").alias(name) for name in RUN[1:]]
    )
    of_runs = of_logs.agg(F.to_json(F.map_from_entries(F.collect_list(numbers))).alias("logs"))
    return own.unionByName(of_runs, allowMissingColumns=True)


def _around(
    due: DataFrame, holes: list[tuple[str, int, str, int, int, int]]
) -> dict[Emitter, dict[int, Around]]:
    """When what borders on the holes was said, by emitter and run."""
    schema = (
        "cluster_id STRING, broker_id INT, component STRING, incarnation BIGINT, first BIGINT, end BIGINT"
    )
    at = F.broadcast(due.sparkSession.createDataFrame(holes, schema))
    same = [due[one] == at[name] for one, name in zip(_SPEAKER, RUN, strict=True)]
    seq, moment = F.col("emitter_seq"), F.col("observed_at_ms")
    placed = F.struct(seq, moment)
    found = (
        due.join(at, same)
        .groupBy(*[at[name] for name in RUN])
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


def _same_number(due: DataFrame, emitters: DataFrame) -> list[Row]:
    """Those that came under one number with several contents."""
    words = twice(emitters)
    number = (*_SPEAKER, "emitter_seq")
    words = words.select(*[F.col(name).alias(f"of_{name}") for name in words.columns])
    same = [F.col(one) == F.col(f"of_{name}") for one, name in zip(_SPEAKER, RUN, strict=True)]
    again = due.join(words, [*same, F.expr("shiftright(emitter_seq, 6)") == F.col("of_word")], "left_semi")
    contents = again.groupBy(*number).agg(
        F.min("payload_hash").alias("one"), F.max("payload_hash").alias("other")
    )
    several = contents.where("one <> other").select(*number)
    found = again.join(several, list(number), "left_semi")
    return found.orderBy(*number, "payload_hash").limit(DOUBLED_MAX).collect()


def _same_act(due: DataFrame, parts: Parts) -> list[Row]:
    """Acts that were told several times with several contents, whoever told them: what all hosts can see is
    told by several, as one event (docs/decisions/0013)."""
    acts = unlike(parts)
    if acts.isEmpty():
        return []
    named = due.where(is_act()).withColumn("act", act_of())
    found = named.join(acts, ["cluster_id", "act"], "left_semi").drop("act")
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
