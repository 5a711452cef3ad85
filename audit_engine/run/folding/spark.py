"""Each log of a run, by as little as it takes.

    excused    calm, and nothing was said but what the screen reads: stated, its last state row stands
    first      over what the run before left
    second     over an earlier state, with all that was said since: something is late, or its last state row
               is of a run further back, since it was excused meanwhile

The canary (`audit_engine.run.canary`) is one of the logs until all are judged, and in nothing that is kept.

Owns which log takes which way. Invariant: whichever it takes, it comes to the same statement and findings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.canary import CLUSTER
from audit_engine.run.canary.spark import Laid
from audit_engine.run.cut import Cut
from audit_engine.run.doubts.spark import gaps
from audit_engine.run.evidence.spark import (
    KEY,
    distinct_logs,
    is_from_day,
    keyed,
    log_id,
    of_logs,
    shared,
    told,
    told_to,
    until,
)
from audit_engine.run.groups.spark import LOG_KEY, each_log
from audit_engine.run.one_log import Task
from audit_engine.run.results.spark import Results
from audit_engine.run.screen.spark import excused, in_doubt
from audit_engine.tables.results import RESULTS, STATE, STATEMENTS
from rules.machine.verdict import Verdict

FEW_LOGS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What a run has heard. `logs`: those of its digest, and the canary; `shared`: whether any of it is about
    more than one log; `emitters` are those of whom something never came, None where nothing is missing."""

    cut: Cut
    before: Mapping[str, Any] | None
    task: Task
    rows: DataFrame
    logs: DataFrame
    canary: Laid
    shared: bool
    emitters: DataFrame
    has_new_gaps: bool
    may_excuse: bool

    @property
    def all_rows(self) -> DataFrame:
        """With the canary's."""
        return self.rows.unionByName(self.canary.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """`stated` are all logs, `judged` those with a state; `said`: what the run as a whole is told of each,
    `canary`: the same of the canary alone."""

    stated: DataFrame
    judged: DataFrame
    said: list[Row]
    canary: list[Row]
    excused: int


class Folding:
    """`kept` holds a frame until the run ends, `at` is told each step."""

    def __init__(
        self,
        results: Results,
        events: Callable[[], DataFrame],
        kept: Callable[[DataFrame], DataFrame],
        at: Callable[[str], None],
    ) -> None:
        self._results = results
        self._events = events
        self._kept = kept
        self._at = at

    def fold(self, slice_: Slice) -> Folded:
        """Every log that is carried or was heard of."""
        carried = self._of_before(STATEMENTS, slice_.before).unionByName(
            slice_.canary.stated, allowMissingColumns=True
        )
        logs = distinct_logs(slice_.logs.where("topic IS NOT NULL"), carried)
        others = _told_by_others(slice_, carried, logs)
        excused_logs, of_excused = None, list[Row]()
        if slice_.may_excuse:
            excused_logs = self._kept(_excused(slice_, carried, others))
            of_excused = _said(excused_logs.withColumns(_of_excused()))
            logs = logs.join(excused_logs, list(KEY), "left_anti")
        asked = self._kept(_asked(slice_.cut, logs, carried))
        said = keyed(_of(asked, of_logs(slice_.all_rows)))
        said = said if others is None else said.unionByName(others)
        first = self._kept(self._first_look(slice_, asked, said))
        of_each = _said(first)
        judged = first.where(F.col("late_ms").isNull())
        if any(each["late_ms"] is not None for each in of_each):
            self._at("refold")
            late = first.where(F.col("late_ms").isNotNull()).select(*KEY, "topic", "late_ms")
            again = self._kept(self._second_look(slice_, late))
            judged = judged.unionByName(again)
            of_each = [each for each in of_each if each["late_ms"] is None] + _said(again)
        stated = judged.withColumn("state_run", F.lit(slice_.cut.run))
        if excused_logs is not None:
            columns = [each.name for each in RESULTS[STATEMENTS] if each.name not in ("run", "attempt")]
            stated = stated.select(*columns).unionByName(excused_logs.select(*columns))
        logs_own, excused_own = _real(of_each), _real(of_excused)
        is_real = F.col("cluster_id") != CLUSTER
        return Folded(
            stated=stated.where(is_real),
            judged=judged.where(is_real),
            said=logs_own + excused_own,
            canary=[each for each in of_each + of_excused if each["cluster_id"] == CLUSTER],
            excused=len(excused_own),
        )

    def _first_look(self, slice_: Slice, asked: DataFrame, said: DataFrame) -> DataFrame:
        """Each log over what is carried of it; of one whose state is of an earlier run, from when on it is
        to be folded again."""
        logs = asked.where("NOT is_stale")
        own = said.join(_named(logs), list(LOG_KEY), "left_semi")
        is_first = slice_.cut.previous is None
        [counts] = asked.agg(
            F.count_if("is_new").alias("new"), F.count_if("is_stale").alias("stale")
        ).collect()
        if counts["new"]:
            ever = slice_.all_rows if is_first else told(until(self._events(), slice_.cut.end_offsets))
            own = own.unionByName(told_to(shared(ever), logs.where("is_new")))
        states = self._of_before(STATE, slice_.before).select(*KEY, "state")
        states = states.unionByName(slice_.canary.states.select(*KEY, "state"))
        tasks = logs.join(states, list(KEY), "left").select(
            *KEY,
            "topic",
            F.col("state").alias("carried"),
            F.lit(None).cast("binary").alias("base"),
            F.lit(False).alias("is_again"),
        )
        judged = each_log(own, tasks, slice_.task)
        if not counts["stale"]:
            return judged
        stale = asked.where("is_stale").select(*KEY, "topic")
        first_said = said.join(_named(stale), list(LOG_KEY), "left_semi").groupBy(*LOG_KEY)
        since = first_said.agg(F.min("observed_at_ms").alias("late_ms")).select(
            *[F.col(f"log_{name}").alias(name) for name in KEY], "late_ms"
        )
        # A state that is older than all that was said since has nothing of it.
        never = F.lit(slice_.cut.as_of_ms + 1)
        stale = stale.join(since, list(KEY), "left").withColumn("late_ms", F.coalesce("late_ms", never))
        return judged.unionByName(stale, allowMissingColumns=True)

    def _second_look(self, slice_: Slice, late: DataFrame) -> DataFrame:
        """Over the last state that has nothing of what comes after `late_ms`; of the events, only those that
        no such state can have are read."""
        results, previous = self._results, slice_.cut.previous or 0
        earlier = results.earlier_states(range(1, previous + 1), *KEY, "run", "position_ms")
        found = (
            late.join(earlier, list(KEY))
            .where(F.col("position_ms") < F.col("late_ms"))
            .groupBy(*KEY)
            .agg(F.max("run").alias("base_run"))
        )
        placed = self._kept(late.join(found, list(KEY), "left"))
        runs = [row["base_run"] for row in placed.select("base_run").distinct().collect()]
        based = [each for each in runs if each is not None]
        states = results.earlier_states(based, *KEY, "run", "state").withColumnRenamed("run", "base_run")
        tasks = placed.join(states, [*KEY, "base_run"], "left").select(
            *KEY,
            "topic",
            F.lit(None).cast("binary").alias("carried"),
            F.col("state").alias("base"),
            F.lit(True).alias("is_again"),
        )
        said = gaps(slice_.emitters, "gaps", placed)
        if None in runs:
            said = said.unionByName(self._said_to(slice_.cut, placed.where("base_run IS NULL"), None))
        if based:
            said = said.unionByName(
                self._said_to(slice_.cut, placed.where("base_run IS NOT NULL"), min(based))
            )
        return each_log(said, tasks, slice_.task)

    def _said_to(self, cut: Cut, logs: DataFrame, run: int | None) -> DataFrame:
        """All that was said to these logs up to the cut; where their states are no older than a run's, what
        none of them can have: ingested after its moment, as ingest's days have it while they are trusted."""
        events = until(self._events(), cut.end_offsets)
        if run is not None:
            after = [each for each in self._results.finished() if run < each["run"] < cut.run]
            if all(json.loads(each["counts"]).get("by_day", each["run"] == 1) for each in after):
                events = events.where(is_from_day(self._results.run_row(run)["as_of_ms"]))
        own = _of(logs, of_logs(told(events))).join(logs.select(*KEY), list(KEY), "left_semi")
        return keyed(own).unionByName(told_to(shared(told(events)), logs))

    def _of_before(self, name: str, before: Mapping[str, Any] | None) -> DataFrame:
        return self._results.nothing(name) if before is None else self._results.of(name, before)


def _told_by_others(slice_: Slice, carried: DataFrame, logs: DataFrame) -> DataFrame | None:
    """What the slice tells logs beside their own events. New logs hear all that was ever said anyway."""
    found = None
    if (slice_.shared or slice_.canary.shared) and slice_.cut.previous is not None:
        # A slice that is known to have none of these is not read for the canary's.
        found = told_to(shared(slice_.all_rows if slice_.shared else slice_.canary.rows), carried)
    if slice_.has_new_gaps:
        missing = gaps(slice_.emitters, "new_gaps", logs)
        found = missing if found is None else found.unionByName(missing)
    return found


def _excused(slice_: Slice, carried: DataFrame, others: DataFrame | None) -> DataFrame:
    """Calm logs that nothing but their own events can concern in this run, as the screen states them."""
    task = slice_.task
    calm = carried.where(F.col("calm").isNotNull() & ~in_doubt(task.doubts))
    if others is not None:
        named = [F.col(f"log_{name}").alias(name) for name in KEY]
        calm = calm.join(others.select(*named), list(KEY), "left_anti")
    return excused(calm, slice_.logs, from_ms=task.from_ms, as_of_ms=task.as_of_ms)


def _asked(cut: Cut, logs: DataFrame, carried: DataFrame) -> DataFrame:
    """Logs to be judged. Stale: its last state is of a run before the last."""
    known = carried.select(*KEY, F.coalesce("state_run", F.lit(cut.previous)).alias("state_run"))
    of_each = logs.join(known.withColumn("is_known", F.lit(True)), list(KEY), "left")
    return of_each.select(
        *KEY,
        "topic",
        F.col("is_known").isNull().alias("is_new"),
        F.coalesce(F.col("state_run") < (cut.previous or 0), F.lit(False)).alias("is_stale"),
    )


def _of(logs: DataFrame, rows: DataFrame) -> DataFrame:
    """Without most rows of other logs, where `logs` are few: they are left where the rows are read, and of a
    day that is ordered by log most files are."""
    ids = logs.select(log_id().alias("log_id")).distinct()
    few = [row["log_id"] for row in ids.limit(FEW_LOGS + 1).collect()]
    return rows.where(F.col("log_id").isin(few)) if len(few) <= FEW_LOGS else rows


def _named(logs: DataFrame) -> DataFrame:
    """Their keys as rows that are told to logs have them."""
    return logs.select(*[F.col(name).alias(f"log_{name}") for name in KEY])


def _said(judged: DataFrame) -> list[Row]:
    """What is asked of each log: in one go, since each asking looks at all of them."""
    state = F.when(F.col("has_blast"), F.col("state")).alias("state")
    asked = ("cluster_id", "late_ms", "is_again", "verdict", "statement_hash", "findings")
    return judged.select(*asked, state).collect()


def _real(said: list[Row]) -> list[Row]:
    return [each for each in said if each["cluster_id"] != CLUSTER]


def _of_excused() -> dict[str, Any]:
    """Of an excused log, as `_said` asks."""
    return {
        "late_ms": F.lit(None).cast("bigint"),
        "is_again": F.lit(False),
        "findings": F.lit("[]"),
        "has_blast": F.lit(False),
        "state": F.lit(None).cast("binary"),
        "verdict": F.lit(Verdict.PASS.value),
    }
