"""One run of the audit over all logs: slice, fold, judge, commit.

    slice    what the table has since the run before (`cut`), each event told to the logs it concerns
    fold     each log by itself, over its carried state (`one_log`); with late evidence, over an earlier one
    commit   state, findings, statements, outbox; then the run's own row, from which on all of it counts

Owns the order. Refuses to judge an empty table, and to go on from a run that was not finished.

Invariant: the same cut comes to the same `content_hash`, whatever the partitions, the order and the number of
attempts.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from audit_engine.run.cut import Cut, next_cut
from audit_engine.run.errors import NothingIngested
from audit_engine.run.evidence.spark import (
    KEY,
    distinct_logs,
    keyed,
    of_logs,
    shared,
    since,
    told_to,
    until,
    with_bodies,
)
from audit_engine.run.one_log import Carried, Judged, Late, Task, canonical, judge, judge_again
from audit_engine.run.outcomes import pages
from audit_engine.run.results.spark import Results
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.results import FINDINGS, OUTBOX, STATE, STATEMENTS
from audit_engine.tables.spark import EvidenceTable
from rules.catalogue import rule_set_hash
from rules.identity import LogId
from rules.machine import Terms
from rules.machine.terms import NOT_AUDITED
from rules.machine.verdict import Verdict

_LOG = "cluster_id STRING, topic_id STRING, partition INT, topic STRING"
_TASKS = f"{_LOG}, carried_state BINARY, carried_findings STRING, base_state BINARY, is_again BOOLEAN"
_JUDGED = (
    f"{_LOG}, late_ms BIGINT, state BINARY, position_ms BIGINT, findings STRING, outcomes STRING,"
    " pages STRING, verdict STRING, statement STRING, statement_hash STRING"
)
_OUTCOMES = (
    "ARRAY<STRUCT<change: STRING, finding_id: STRING, rule_id: STRING, severity: STRING, subject: STRING,"
    " detail: STRING>>"
)
_PAGES = "ARRAY<STRUCT<incident: STRING, severity: STRING, message: STRING>>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run came to. `verdicts` and `findings` count logs and open findings."""

    run: int
    as_of_ms: int
    verdict: Verdict
    events: int
    logs: int
    refolded: int
    verdicts: Mapping[str, int]
    changes: Mapping[str, int]
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a run needs beside the tables. `at` is told each step, for progress and for tests."""

    terms: Terms
    now_ms: Callable[[], int]
    version: str
    at: Callable[[str], None] = field(default=lambda _: None)


class AuditRun:
    """Runs over the tables under `root`, one at a time."""

    def __init__(self, spark: SparkSession, root: str, means: Means) -> None:
        self._spark = spark
        self._root = root
        self._means = means
        self._results = Results(spark, root)

    def next(self, as_of_ms: int) -> RunSummary:
        """Everything since the run before. Raises AsOfBeforeLastRun, NothingIngested, RunOvertaken."""
        last = self._results.last_run()
        cut = next_cut(None if last is None else self._results.cut(last), self._ends(), as_of_ms)
        row, summary = self._judge(cut, last)
        self._results.finish(row)
        return summary

    def again(self, run: int) -> RunSummary:
        """The same run once more: the same offsets as of the same moment. Raises NoSuchRun."""
        cut = self._results.cut(self._results.run_row(run))
        before = None if cut.previous is None else self._results.run_row(cut.previous)
        row, summary = self._judge(cut, before)
        self._results.finish_again(row)
        return summary

    def _ends(self) -> Mapping[int, int]:
        path = f"{self._root.rstrip('/')}/{EVENTS}"
        if not DeltaTable.isDeltaTable(self._spark, path):
            raise NothingIngested(table=path)
        ends = EvidenceTable(self._spark, self._root, EVENTS).standing().next_offsets
        if not ends:
            raise NothingIngested(table=path)
        return ends

    def _judge(self, cut: Cut, before: Mapping[str, Any] | None) -> tuple[dict[str, Any], RunSummary]:
        began_ms, attempt = self._means.now_ms(), uuid.uuid4().hex
        task = Task(terms=self._means.terms, from_ms=cut.since_ms or 0, as_of_ms=cut.as_of_ms)
        self._means.at("fold")
        first = self._first_look(cut, before, task).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            late = first.where(F.col("late_ms").isNotNull()).select(*KEY, "topic", "late_ms")
            refolded = late.count()
            judged = first.where(F.col("late_ms").isNull())
            if refolded:
                self._means.at("refold")
                judged = judged.unionByName(self._second_look(cut, before, task, late))
            judged = judged.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                summary = self._summary(cut, judged, refolded)
                self._means.at("commit")
                self._put_down(cut.run, attempt, judged)
            finally:
                judged.unpersist()
        finally:
            first.unpersist()
        self._means.at("finish")
        return self._row(cut, summary, attempt, began_ms), summary

    def _events(self) -> DataFrame:
        events = self._spark.read.format("delta").load(f"{self._root.rstrip('/')}/{EVENTS}")
        audited = ~F.col("topic").isin(*sorted(NOT_AUDITED))
        return events.where(F.col("log_id").isNull() | audited)

    def _first_look(self, cut: Cut, before: Mapping[str, Any] | None, task: Task) -> DataFrame:
        """Every log that is carried or was heard of, over what is carried of it."""
        events = self._events()
        new_rows = since(events, cut)
        carried = self._carried(before)
        logs = distinct_logs(of_logs(new_rows), carried)
        new_logs = logs.join(carried, list(KEY), "left_anti")
        rows = (
            keyed(of_logs(new_rows))
            .unionByName(told_to(shared(new_rows), carried))
            .unionByName(told_to(shared(until(events, cut.end_offsets)), new_logs))
        )
        tasks = logs.join(carried.drop("topic"), list(KEY), "left").select(
            *KEY,
            "topic",
            F.col("state").alias("carried_state"),
            F.col("findings").alias("carried_findings"),
            F.lit(None).cast("binary").alias("base_state"),
            F.lit(False).alias("is_again"),
        )
        return _each_log(rows, tasks, task)

    def _second_look(
        self, cut: Cut, before: Mapping[str, Any] | None, task: Task, late: DataFrame
    ) -> DataFrame:
        """Logs of which something was late: over the last state that does not have what comes after it."""
        events = until(self._events(), cut.end_offsets)
        earlier = self._results.earlier_states(cut.run).select(*KEY, "run", "state", "position_ms")
        bases = (
            late.join(earlier, list(KEY))
            .where(F.col("position_ms") < F.col("late_ms"))
            .groupBy(*KEY)
            .agg(F.max_by("state", "run").alias("base_state"))
        )
        rows = keyed(of_logs(events).join(late.select(*KEY), list(KEY), "left_semi")).unionByName(
            told_to(shared(events), late)
        )
        tasks = (
            late.join(self._carried(before).drop("topic"), list(KEY), "left")
            .join(bases, list(KEY), "left")
            .select(
                *KEY,
                "topic",
                F.col("state").alias("carried_state"),
                F.col("findings").alias("carried_findings"),
                "base_state",
                F.lit(True).alias("is_again"),
            )
        )
        return _each_log(rows, tasks, task)

    def _carried(self, before: Mapping[str, Any] | None) -> DataFrame:
        if before is None:
            return self._spark.createDataFrame([], self._results.schema(STATE))
        return self._results.of(STATE, before)

    def _summary(self, cut: Cut, judged: DataFrame, refolded: int) -> RunSummary:
        verdicts = {row["verdict"]: row["count"] for row in judged.groupBy("verdict").count().collect()}
        outcomes = judged.select(F.explode(F.from_json("outcomes", _OUTCOMES)).alias("each"))
        changes = {row["change"]: row["count"] for row in outcomes.groupBy("each.change").count().collect()}
        lines = judged.select(F.sha2(F.concat("statement_hash", "findings"), 256).alias("hash")).collect()
        content = "\n".join(sorted(row["hash"] for row in lines))
        order = [each.value for each in Verdict]
        worst = max(verdicts, key=order.index, default=Verdict.INDETERMINATE.value)
        return RunSummary(
            run=cut.run,
            as_of_ms=cut.as_of_ms,
            verdict=Verdict(worst),
            events=since(self._events(), cut).count(),
            logs=sum(verdicts.values()),
            refolded=refolded,
            verdicts=verdicts,
            changes=changes,
            content_hash=hashlib.sha256(content.encode()).hexdigest(),
        )

    def _put_down(self, run: int, attempt: str, judged: DataFrame) -> None:
        log = (*KEY, "topic")
        state = judged.withColumn("state_hash", F.sha2("state", 256))
        self._results.append(STATE, run, attempt, state)
        self._results.append(STATEMENTS, run, attempt, judged)
        outcomes = judged.select(*log, F.inline(F.from_json("outcomes", _OUTCOMES)))
        self._results.append(FINDINGS, run, attempt, outcomes)
        told = judged.select(*log, F.inline(F.from_json("pages", _PAGES)))
        self._results.append(OUTBOX, run, attempt, told)

    def _row(self, cut: Cut, summary: RunSummary, attempt: str, began_ms: int) -> dict[str, Any]:
        counts = {
            "events": summary.events,
            "logs": summary.logs,
            "refolded": summary.refolded,
            "verdicts": dict(summary.verdicts),
            "changes": dict(summary.changes),
        }
        return {
            "run": cut.run,
            "attempt": attempt,
            "as_of_ms": cut.as_of_ms,
            "cut": cut.as_json(),
            "rules_hash": rule_set_hash(),
            "terms": canonical(asdict(self._means.terms)),
            "content_hash": summary.content_hash,
            "gate": "{}",
            "counts": canonical(counts),
            "verdict": summary.verdict.value,
            "began_ms": began_ms,
            "ended_ms": self._means.now_ms(),
            "seawall_version": self._means.version,
        }


def _each_log(rows: DataFrame, tasks: DataFrame, task: Task) -> DataFrame:
    """Each log of `tasks` by itself, with its rows; runs where the data is."""
    schema = T._parse_datatype_string(_JUDGED)
    assert isinstance(schema, T.StructType)
    arrow = to_arrow_schema(schema)

    def judged(key: tuple[Any, ...], told: pa.Table, tasked: pa.Table) -> pa.Table:
        return pa.Table.from_pylist(list(_of_one(told, tasked, task)), schema=arrow)

    # Both sides come from the same tables, which Spark refuses to tell apart by name.
    asked = tasks.select(*[F.col(name).alias(f"asked_{name}") for name in tasks.columns])
    left = with_bodies(rows).groupBy(*[f"log_{name}" for name in KEY])
    return left.cogroup(asked.groupBy(*[f"asked_{name}" for name in KEY])).applyInArrow(judged, schema)


def _of_one(told: pa.Table, tasked: pa.Table, task: Task) -> Iterator[dict[str, Any]]:
    """One row, or none for rows of a log that nobody asked about."""
    names = [name.removeprefix("asked_") for name in tasked.column_names]
    for asked in tasked.rename_columns(names).to_pylist():
        log = LogId(asked["cluster_id"], asked["topic_id"], asked["partition"])
        carried = None
        if asked["carried_state"] is not None:
            carried = Carried(state=asked["carried_state"], findings=asked["carried_findings"])
        rows = told.to_pylist()
        found: Judged | Late
        if asked["is_again"]:
            found = judge_again(log, asked["topic"], rows, carried, asked["base_state"], task)
        else:
            found = judge(log, asked["topic"], rows, carried, task)
        yield {**{name: asked[name] for name in (*KEY, "topic")}, **_columns(found)}


def _columns(found: Judged | Late) -> dict[str, Any]:
    if isinstance(found, Late):
        return {"late_ms": found.observed_at_ms}
    outcomes = [
        {
            "change": each.change.value,
            **{name: each.finding[name] for name in ("finding_id", "rule_id", "severity", "subject")},
            "detail": canonical(each.finding),
        }
        for each in found.outcomes
    ]
    return {
        "state": found.state,
        "position_ms": found.position_ms,
        "findings": found.findings,
        "outcomes": json.dumps(outcomes),
        "pages": json.dumps(pages(found.statement, found.outcomes)),
        "verdict": found.statement.verdict.value,
        "statement": found.statement_json,
        "statement_hash": found.statement.hash,
    }
