"""What a report is made of, from the tables of results.

Of ten thousand logs the statements are read, and of the few that an incident is about, the states.

Owns the reading. Writes nothing, and makes no table. Invariant: only rows of attempts that `audit_runs` names
are read; findings are as the run that is reported left them, whatever later runs did.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.report.course import LEAST
from audit_engine.report.incidents import is_open, pictured
from audit_engine.report.values import COURSE_MAX, LOGS_MAX, RUNS_MAX, WORST_FIRST, Gathered, Moment, Row
from audit_engine.run.errors import NoSuchRun
from audit_engine.run.results.spark import Results
from audit_engine.tables.results import EMITTERS, FINDINGS, RUNS, STATEMENTS
from rules.identity import LogId
from rules.machine import LogState, StateTooNew, decode

_KEY = ("cluster_id", "topic_id", "partition")
_KEY_SCHEMA = "cluster_id STRING, topic_id STRING, partition INT"
_AS_JSON = ("cut", "terms", "gate", "counts")


def gather(spark: SparkSession, root: str, run: int | None = None) -> Gathered | None:
    """The last run, or the one of this number. None: no run was ever finished. Raises NoSuchRun."""
    results = Results(spark, root)
    runs = _runs(results, run)
    if not runs:
        return None
    findings = _findings(results, runs[-1])
    logs = pictured(findings)
    return Gathered(
        runs=runs,
        statements=_statements(results, runs[-1]),
        before=None if len(runs) == 1 else _verdicts(results, runs[-2]),
        findings=findings,
        changes=_changes(results, runs[-1]),
        emitters=_emitters(results, runs[-1]),
        states=_states(spark, results, runs[-1], logs),
        courses=_courses(spark, results, runs[-COURSE_MAX:], logs),
    )


def _runs(results: Results, run: int | None) -> list[Row]:
    """The oldest first, up to the one that is reported."""
    rows = [each for each in results.finished() if run is None or each["run"] <= run][:RUNS_MAX]
    if run is not None and (not rows or rows[0]["run"] != run):
        raise NoSuchRun(run=run, table=results.path(RUNS))
    return [each | {name: json.loads(each[name]) for name in _AS_JSON} for each in reversed(rows)]


def _statements(results: Results, run: Row) -> list[Row]:
    rows = results.of(STATEMENTS, run)
    if run["counts"]["logs"] > LOGS_MAX:
        order = F.array_position(F.array(*map(F.lit, WORST_FIRST)), F.col("verdict"))
        rows = rows.orderBy(order, "topic", "partition").limit(LOGS_MAX)
    stated = rows.select("statement", "statement_hash").collect()
    return [{**json.loads(row["statement"]), "statement_hash": row["statement_hash"]} for row in stated]


def _verdicts(results: Results, run: Row) -> dict[LogId, str]:
    rows = results.of(STATEMENTS, run).select(*_KEY, "verdict").collect()
    return {LogId(*row[:3]): row["verdict"] for row in rows}


def _findings(results: Results, run: Row) -> list[dict[str, Any]]:
    """Those of incidents of which something is open."""
    every = results.standing(run["run"] + 1)
    live = {each["incident"] for each in every if is_open(each)}
    return [each for each in every if each["incident"] in live]


def _changes(results: Results, run: Row) -> list[Row]:
    rows = results.of(FINDINGS, run).select("change", "detail").collect()
    return [{"change": row["change"], **json.loads(row["detail"])} for row in rows]


def _emitters(results: Results, run: Row) -> list[Row]:
    names = ("cluster_id", "broker_id", "component", "is_silent")
    return [row.asDict() for row in results.of(EMITTERS, run).select(*names).orderBy(*names).collect()]


def _courses(
    spark: SparkSession, results: Results, runs: list[Row], logs: list[LogId]
) -> dict[LogId, list[Moment]]:
    """Where each of these logs began and ended, as these runs stated it."""
    if not logs or len(runs) < LEAST:
        return {}
    moments = {(each["run"], each["attempt"]): each["as_of_ms"] for each in runs}
    wanted = spark.createDataFrame([tuple(each) for each in logs], _KEY_SCHEMA)
    of_runs = F.col("run").isin([run for run, _ in moments])
    rows = results.table(STATEMENTS).where(of_runs).join(F.broadcast(wanted), list(_KEY), "left_semi")
    found: dict[LogId, list[Moment]] = {}
    for row in rows.select(*_KEY, "run", "attempt", "statement").orderBy("run").collect():
        if (row["run"], row["attempt"]) not in moments:
            continue  # an attempt that was killed
        stated = json.loads(row["statement"])
        moment = Moment(
            run=row["run"],
            at_ms=moments[row["run"], row["attempt"]],
            start=stated["log_start"],
            watermark=stated["high_watermark"],
        )
        found.setdefault(LogId(*row[:3]), []).append(moment)
    return found


def _states(spark: SparkSession, results: Results, run: Row, logs: list[LogId]) -> dict[LogId, LogState]:
    """As they were last carried; what cannot be read here is not drawn."""
    if not logs:
        return {}
    wanted = spark.createDataFrame([tuple(each) for each in logs], _KEY_SCHEMA)
    carried = results.earlier_states(range(1, run["run"] + 1), *_KEY, "run", "state")
    carried = carried.join(F.broadcast(wanted), list(_KEY), "left_semi")
    found = {}
    for row in carried.groupBy(*_KEY).agg(F.max_by("state", "run").alias("state")).collect():
        try:
            found[LogId(*row[:3])] = decode(bytes(row["state"]))
        except StateTooNew:  # a newer Seawall judged
            continue
    return found
