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
    about_logs,
    distinct_logs,
    is_from_day,
    keyed,
    log_id,
    shared,
    told,
    told_to,
    until,
)
from audit_engine.run.groups.spark import LOG_KEY, each_log
from audit_engine.run.one_log import Task
from audit_engine.run.results.spark import Results, rows_of
from audit_engine.run.screen.spark import in_doubt, screened
from audit_engine.tables.results import RESULTS, STATE, STATEMENTS
from rules.machine.verdict import Verdict

FEW_LOGS = 1_000
_CARRIED = (*KEY, "topic", "state_run", "calm", "words")
_ASKED = (
    "cluster_id: STRING, topic_id: STRING, partition: INT, topic: STRING, is_new: BOOLEAN, is_stale: BOOLEAN"
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Logs to be judged, `ids`: what their events call them, if they are few. How many are new or stale."""

    logs: DataFrame
    ids: list[str] | None
    new: int
    stale: int


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
        carried = self._of_before(STATEMENTS, slice_.before, *_CARRIED).unionByName(
            slice_.canary.stated.select(*_CARRIED)
        )
        others = _told_by_others(slice_, carried)
        held = self._kept(_held(slice_, carried, others))
        every = held.select(*KEY, "topic", "is_new", "is_stale", "statement_hash").collect()
        asked = self._asked(held, [row for row in every if row["statement_hash"] is None])
        of_excused = [_excused(row) for row in every if row["statement_hash"] is not None]
        said = keyed(_of(asked.ids, about_logs(slice_.all_rows)))
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
        if of_excused:
            columns = [each.name for each in RESULTS[STATEMENTS] if each.name not in ("run", "attempt")]
            verdict = F.lit(Verdict.PASS.value).alias("verdict")
            excused_logs = held.where(F.col("statement_hash").isNotNull()).select("*", verdict)
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

    def _asked(self, held: DataFrame, rows: list[Row]) -> Asked:
        """Those of all logs that are to be judged; where they are few, by name."""
        few = len(rows) <= FEW_LOGS
        told = [row.asDict() for row in rows]
        logs = held.where(F.col("statement_hash").isNull()).select(*KEY, "topic", "is_new", "is_stale")
        return Asked(
            logs=F.broadcast(rows_of(held.sparkSession, told, _ASKED)) if few else logs,
            ids=[f"{row['topic_id']}:{row['partition']}" for row in rows] if few else None,
            new=sum(row["is_new"] for row in rows),
            stale=sum(row["is_stale"] for row in rows),
        )

    def _first_look(self, slice_: Slice, asked: Asked, said: DataFrame) -> DataFrame:
        """Each log over what is carried of it; of one whose state is of an earlier run, from when on it is
        to be folded again."""
        logs = asked.logs.where("NOT is_stale")
        own = said.join(_named(logs), list(LOG_KEY), "left_semi")
        is_first = slice_.cut.previous is None
        if asked.new:
            ever = slice_.all_rows if is_first else told(until(self._events(), slice_.cut.end_offsets))
            own = own.unionByName(told_to(shared(ever), logs.where("is_new")))
        states = self._of_before(STATE, slice_.before, *KEY, "state")
        states = states.unionByName(slice_.canary.states.select(*KEY, "state"))
        if asked.ids is not None:
            states = states.join(logs.select(*KEY), list(KEY), "left_semi")
        tasks = logs.join(states, list(KEY), "left").select(
            *KEY,
            "topic",
            F.col("state").alias("carried"),
            F.lit(None).cast("binary").alias("base"),
            F.lit(False).alias("is_again"),
        )
        judged = each_log(own, tasks, slice_.task)
        if not asked.stale:
            return judged
        stale = asked.logs.where("is_stale").select(*KEY, "topic")
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
        own = _of(_ids(logs), about_logs(told(events))).join(logs.select(*KEY), list(KEY), "left_semi")
        return keyed(own).unionByName(told_to(shared(told(events)), logs))

    def _of_before(self, name: str, before: Mapping[str, Any] | None, *columns: str) -> DataFrame:
        if before is None:
            return self._results.nothing(name).select(*columns)
        return self._results.of(name, before, *columns)


def _told_by_others(slice_: Slice, carried: DataFrame) -> DataFrame | None:
    """What the slice tells logs beside their own events. New logs hear all that was ever said anyway."""
    found = None
    if (slice_.shared or slice_.canary.shared) and slice_.cut.previous is not None:
        # A slice that is known to have none of these is not read for the canary's.
        found = told_to(shared(slice_.all_rows if slice_.shared else slice_.canary.rows), carried)
    if slice_.has_new_gaps:
        logs = distinct_logs(slice_.logs.where("topic IS NOT NULL"), carried)
        missing = gaps(slice_.emitters, "new_gaps", logs)
        found = missing if found is None else found.unionByName(missing)
    return found


def _held(slice_: Slice, carried: DataFrame, others: DataFrame | None) -> DataFrame:
    """All logs; those that the screen excuses, with their statement: calm ones that nothing but their own
    events can concern in this run. Stale: its last state is of a run before the last."""
    task, previous = slice_.task, slice_.cut.previous
    before = carried.withColumns({"topic_before": F.col("topic"), "is_known": F.lit(True)}).drop("topic")
    both = before.join(slice_.logs, list(KEY), "full_outer").where("is_known OR topic IS NOT NULL")
    may_excuse = F.lit(slice_.may_excuse) & ~in_doubt(task.doubts)
    if others is not None:
        told = others.select(*[F.col(f"log_{name}").alias(name) for name in KEY]).distinct()
        both = both.join(told.withColumn("is_told", F.lit(True)), list(KEY), "left")
        may_excuse &= F.col("is_told").isNull()
    both = both.withColumn("calm", F.when(may_excuse, F.col("calm")))
    found = screened(both, from_ms=task.from_ms, as_of_ms=task.as_of_ms)
    is_excused = F.col("statement_hash").isNotNull()
    last_run = F.coalesce("state_run", F.when(F.col("is_known"), F.lit(previous)))
    return found.select(
        *KEY,
        F.when(is_excused, F.col("topic_before"))
        .otherwise(F.greatest("topic", "topic_before"))
        .alias("topic"),
        F.col("is_known").isNull().alias("is_new"),
        F.coalesce(last_run < (previous or 0), F.lit(False)).alias("is_stale"),
        "state_run",
        F.col("after").alias("calm"),
        F.when(is_excused, F.col("words")).alias("words"),
        "statement",
        "statement_hash",
    )


def _ids(logs: DataFrame) -> list[str] | None:
    """What events call them, if they are few."""
    named = logs.select(log_id().alias("log_id")).distinct().limit(FEW_LOGS + 1).collect()
    return [row["log_id"] for row in named] if len(named) <= FEW_LOGS else None


def _of(ids: list[str] | None, rows: DataFrame) -> DataFrame:
    """Without most rows of other logs, where `ids` are known: they are left where the rows are read, and of a
    day that is ordered by log most files are."""
    return rows if ids is None else rows.where(F.col("log_id").isin(ids))


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


def _excused(row: Row) -> Row:
    """Of an excused log, what `_said` tells of each."""
    said = {name: row[name] for name in ("cluster_id", "statement_hash")}
    verdict = Verdict.PASS.value
    return Row(**said, late_ms=None, is_again=False, verdict=verdict, findings="[]", state=None)
