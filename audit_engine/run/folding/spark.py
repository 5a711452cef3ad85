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
    of_some,
    shared,
    told,
    told_to,
    until,
)
from audit_engine.run.groups.spark import LOG_KEY, each_log
from audit_engine.run.one_log import Doubt, Task
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
    """What a run has heard; `rows_of`: of these logs, as their events call them, all of it and some more.
    `logs`: those of its digest, and the canary; `shared`: whether any of it is about more than one log."""

    cut: Cut
    before: Mapping[str, Any] | None
    task: Task
    rows: DataFrame
    rows_of: Callable[[list[str]], DataFrame]
    logs: DataFrame
    canary: Laid
    shared: bool
    may_excuse: bool

    def all_rows(self, ids: list[str] | None = None) -> DataFrame:
        """With the canary's; of these logs, where they are few."""
        if ids is None:
            return self.rows.unionByName(self.canary.rows)
        return self.rows_of(ids).unionByName(of_some(ids, self.canary.rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Of each log what the run before left, the canary's with it: what it stated, and states."""

    stated: DataFrame
    states: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """What never came, as `emitters` have it; whether no run has told it yet."""

    emitters: DataFrame
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Those of `held` that are excused, and what the first look at all others came to."""

    held: DataFrame
    excused: list[Row]
    first: DataFrame
    said: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """`held`: every log that is carried or was heard of, with its statement where the slice asks for no more;
    `every`: which they are, and what is asked of each; `others`: what that tells logs besides their events.
    `looked`: what comes of it if nothing is missing, where few logs are to be judged."""

    carried: Carried
    held: DataFrame
    every: list[Row]
    others: DataFrame | None
    looked: Looked | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """`stated` are all logs, `judged` those with a state; `said`: what the run as a whole is told of each of
    these, `excused`: the hashes of what is stated of the others; `canary`: the findings of the canary, if it
    was judged."""

    stated: DataFrame
    judged: DataFrame
    said: list[Row]
    excused: list[str]
    canary: list[str]


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

    def carried(self, before: Mapping[str, Any] | None, canary: Laid) -> Carried:
        """What it stated is at hand, once it is handed back."""
        left = self._of_before(STATEMENTS, before, *_CARRIED)
        stated = self._kept(left.unionByName(canary.stated.select(*_CARRIED)))
        states = self._of_before(STATE, before, *KEY, "state")
        stated.count()
        return Carried(stated=stated, states=states.unionByName(canary.states.select(*KEY, "state")))

    def screen(self, slice_: Slice, carried: Carried) -> Screened:
        """Before it is known what never came; that is rare, and mostly nothing has to be done again."""
        others = _told_by_others(slice_, carried.stated)
        held = self._kept(_held(slice_, carried.stated))
        if others is not None:
            held = self._kept(_without(held, (), others))
        every = _every(held)
        is_small = sum(row["statement_hash"] is None for row in every) <= FEW_LOGS
        looked = self._look(slice_, carried, held, every, others) if is_small else None
        return Screened(carried=carried, held=held, every=every, others=others, looked=looked)

    def fold(self, slice_: Slice, screened: Screened, missed: Missed) -> Folded:
        """Every log; of the slice's task doubts are known by now. None that is in doubt, or is told of what
        never came, is excused."""
        looked = screened.looked
        if missed.is_new or slice_.task.doubts or looked is None:
            others, held, every = screened.others, screened.held, screened.every
            if missed.is_new:
                logs = distinct_logs(slice_.logs.where("topic IS NOT NULL"), screened.carried.stated)
                missing = gaps(missed.emitters, "new_gaps", logs)
                others = missing if others is None else others.unionByName(missing)
            if missed.is_new or slice_.task.doubts:
                held = self._kept(_without(held, slice_.task.doubts, others))
                every = _every(held)
            looked = self._look(slice_, screened.carried, held, every, others)
        held, first, of_each = looked.held, looked.first, looked.said
        judged = first.where(F.col("late_ms").isNull())
        if any(each["late_ms"] is not None for each in of_each):
            self._at("refold")
            late = first.where(F.col("late_ms").isNotNull()).select(*KEY, "topic", "late_ms")
            again = self._kept(self._second_look(slice_, late, missed.emitters))
            judged = judged.unionByName(again)
            of_each = [each for each in of_each if each["late_ms"] is None] + _said(again)
        stated = judged.withColumn("state_run", F.lit(slice_.cut.run))
        if looked.excused:
            columns = [each.name for each in RESULTS[STATEMENTS] if each.name not in ("run", "attempt")]
            verdict = F.lit(Verdict.PASS.value).alias("verdict")
            excused_logs = held.where(F.col("statement_hash").isNotNull()).select("*", verdict)
            stated = stated.select(*columns).unionByName(excused_logs.select(*columns))
        is_real = F.col("cluster_id") != CLUSTER
        return Folded(
            stated=stated.where(is_real),
            judged=judged.where(is_real),
            said=[each for each in of_each if each["cluster_id"] != CLUSTER],
            excused=[each["statement_hash"] for each in looked.excused if each["cluster_id"] != CLUSTER],
            canary=[each["findings"] for each in of_each if each["cluster_id"] == CLUSTER]
            + ["[]" for each in looked.excused if each["cluster_id"] == CLUSTER],
        )

    def _look(
        self,
        slice_: Slice,
        carried: Carried,
        held: DataFrame,
        every: list[Row],
        others: DataFrame | None,
    ) -> Looked:
        """`every` is what is asked of each row of `held`."""
        asked = self._asked(held, [row for row in every if row["statement_hash"] is None])
        said = keyed(about_logs(slice_.all_rows(asked.ids)))
        said = said if others is None else said.unionByName(others)
        first = self._kept(self._first_look(slice_, carried.states, asked, said))
        excused = [row for row in every if row["statement_hash"] is not None]
        return Looked(held=held, excused=excused, first=first, said=_said(first))

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

    def _first_look(self, slice_: Slice, states: DataFrame, asked: Asked, said: DataFrame) -> DataFrame:
        """Each log over what is carried of it; of one whose state is of an earlier run, from when on it is
        to be folded again."""
        logs = asked.logs.where("NOT is_stale")
        own = said.join(_named(logs), list(LOG_KEY), "left_semi")
        is_first = slice_.cut.previous is None
        if asked.new:
            ever = slice_.all_rows() if is_first else told(until(self._events(), slice_.cut.end_offsets))
            own = own.unionByName(told_to(shared(ever), logs.where("is_new")))
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

    def _second_look(self, slice_: Slice, late: DataFrame, emitters: DataFrame) -> DataFrame:
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
        said = gaps(emitters, "gaps", placed)
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
        ids = _ids(logs)
        own = about_logs(told(events if ids is None else of_some(ids, events))).join(
            logs.select(*KEY), list(KEY), "left_semi"
        )
        return keyed(own).unionByName(told_to(shared(told(events)), logs))

    def _of_before(self, name: str, before: Mapping[str, Any] | None, *columns: str) -> DataFrame:
        if before is None:
            return self._results.nothing(name).select(*columns)
        return self._results.of(name, before, *columns)


def _told_by_others(slice_: Slice, carried: DataFrame) -> DataFrame | None:
    """What the slice tells logs beside their own events. New logs hear all that was ever said anyway."""
    if not (slice_.shared or slice_.canary.shared) or slice_.cut.previous is None:
        return None
    # A slice that is known to have none of these is not read for the canary's.
    return told_to(shared(slice_.all_rows() if slice_.shared else slice_.canary.rows), carried)


def _held(slice_: Slice, carried: DataFrame) -> DataFrame:
    """All logs; those that the screen excuses, with their statement. Stale: its last state is of a run before
    the last."""
    task, previous = slice_.task, slice_.cut.previous
    before = carried.withColumns({"topic_before": F.col("topic"), "is_known": F.lit(True)}).drop("topic")
    both = before.join(slice_.logs, list(KEY), "full_outer").where("is_known OR topic IS NOT NULL")
    both = both.withColumn("calm", F.when(F.lit(slice_.may_excuse), F.col("calm")))
    found = screened(both, from_ms=task.from_ms, as_of_ms=task.as_of_ms)
    is_excused = F.col("statement_hash").isNotNull()
    last_run = F.coalesce("state_run", F.when(F.col("is_known"), F.lit(previous)))
    return found.select(
        *KEY,
        # An excused one goes by the name that stands in its statement.
        F.when(is_excused, F.col("topic_before"))
        .otherwise(F.greatest("topic", "topic_before"))
        .alias("topic"),
        F.greatest("topic", "topic_before").alias("topic_now"),
        F.col("is_known").isNull().alias("is_new"),
        F.coalesce(last_run < (previous or 0), F.lit(False)).alias("is_stale"),
        "state_run",
        F.col("after").alias("calm"),
        F.when(is_excused, F.col("words")).alias("words"),
        "statement",
        "statement_hash",
    )


def _without(held: DataFrame, doubts: tuple[Doubt, ...], others: DataFrame | None) -> DataFrame:
    """The same; those that are told something by others, or are in doubt, are to be judged."""
    may_excuse = ~in_doubt(doubts)
    if others is not None:
        told = others.select(*[F.col(f"log_{name}").alias(name) for name in KEY]).distinct()
        held = held.join(told.withColumn("is_told", F.lit(True)), list(KEY), "left")
        may_excuse &= F.col("is_told").isNull()
    stands = F.coalesce(may_excuse, F.lit(False))
    own = {name: F.when(stands, F.col(name)) for name in ("calm", "words", "statement", "statement_hash")}
    topic = F.when(stands, F.col("topic")).otherwise(F.col("topic_now"))
    return held.withColumns({**own, "topic": topic}).drop("is_told")


def _every(held: DataFrame) -> list[Row]:
    return held.select(*KEY, "topic", "is_new", "is_stale", "statement_hash").collect()


def _ids(logs: DataFrame) -> list[str] | None:
    """What events call them, if they are few."""
    named = logs.select(log_id().alias("log_id")).distinct().limit(FEW_LOGS + 1).collect()
    return [row["log_id"] for row in named] if len(named) <= FEW_LOGS else None


def _named(logs: DataFrame) -> DataFrame:
    """Their keys as rows that are told to logs have them."""
    return logs.select(*[F.col(name).alias(f"log_{name}") for name in KEY])


def _said(judged: DataFrame) -> list[Row]:
    """What is asked of each log: in one go, since each asking looks at all of them."""
    state = F.when(F.col("has_blast"), F.col("state")).alias("state")
    asked = ("cluster_id", "late_ms", "is_again", "verdict", "statement_hash", "findings")
    return judged.select(*asked, state).collect()
