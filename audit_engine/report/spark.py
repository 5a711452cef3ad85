"""What a report is made of, from the tables of results.

Of ten thousand logs the statements are read, and of the few that an incident is about, the states.

Owns the reading. Writes nothing, and makes no table. Invariant: only rows of attempts that `audit_runs` names
are read; findings are as the run that is reported left them, whatever later runs did.
"""

from __future__ import annotations

import json
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.report.incidents import is_open, pictured
from audit_engine.report.values import LOGS_MAX, RUNS_MAX, WORST_FIRST, Gathered, Row
from audit_engine.run.errors import NoSuchRun
from audit_engine.run.reading.spark import latest_findings
from audit_engine.tables.results import EMITTERS, FINDINGS, RUNS, STATE, STATEMENTS
from rules.identity import LogId
from rules.machine import LogState, StateTooNew, decode

_KEY = ("cluster_id", "topic_id", "partition")
_OF_RUN = ("cut", "terms", "gate", "counts")


def gather(spark: SparkSession, root: str, run: int | None = None) -> Gathered | None:
    """The last run, or the one of this number. None: no run was ever finished. Raises NoSuchRun."""
    return _Reading(spark, root).gather(run)


class _Reading:
    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root.rstrip("/")

    def gather(self, run: int | None) -> Gathered | None:
        runs = self._runs(run)
        if not runs:
            return None
        this = runs[-1]
        findings = self._findings(this)
        before = None if len(runs) < 2 else self._verdicts(runs[-2])
        return Gathered(
            runs=runs,
            statements=self._statements(this),
            before=before,
            findings=findings,
            changes=self._changes(this),
            emitters=self._emitters(this),
            states=self._states(this, pictured(findings)),
        )

    def _runs(self, run: int | None) -> list[Row]:
        path = f"{self._root}/{RUNS}"
        if not DeltaTable.isDeltaTable(self._spark, path):
            if run is not None:
                raise NoSuchRun(run=run, table=path)
            return []
        table = self._table(RUNS)
        upto = table if run is None else table.where(F.col("run") <= run)
        rows = upto.orderBy(F.desc("run")).limit(RUNS_MAX).collect()
        if run is not None and (not rows or rows[0]["run"] != run):
            raise NoSuchRun(run=run, table=path)
        told = (row.asDict() for row in reversed(rows))
        return [each | {name: json.loads(each[name]) for name in _OF_RUN} for each in told]

    def _statements(self, run: Row) -> list[Row]:
        rows = self._of(STATEMENTS, run)
        if run["counts"]["logs"] > LOGS_MAX:
            order = F.array_position(F.array(*map(F.lit, WORST_FIRST)), F.col("verdict"))
            rows = rows.orderBy(order, "topic", "partition").limit(LOGS_MAX)
        stated = rows.select("statement", "statement_hash").collect()
        return [{**json.loads(row["statement"]), "statement_hash": row["statement_hash"]} for row in stated]

    def _verdicts(self, run: Row) -> dict[LogId, str]:
        rows = self._of(STATEMENTS, run).select(*_KEY, "verdict").collect()
        return {LogId(row["cluster_id"], row["topic_id"], row["partition"]): row["verdict"] for row in rows}

    def _findings(self, run: Row) -> list[dict[str, Any]]:
        """Those of incidents of which something is open."""
        every = latest_findings(self._spark, self._root, run["run"] + 1)
        live = {each["incident"] for each in every if is_open(each)}
        return [each for each in every if each["incident"] in live]

    def _changes(self, run: Row) -> list[Row]:
        rows = self._of(FINDINGS, run).select("change", "detail").collect()
        return [{"change": row["change"], **json.loads(row["detail"])} for row in rows]

    def _emitters(self, run: Row) -> list[Row]:
        rows = self._of(EMITTERS, run).select("cluster_id", "broker_id", "component", "is_silent")
        return [row.asDict() for row in rows.orderBy("cluster_id", "broker_id", "component").collect()]

    def _states(self, run: Row, logs: list[LogId]) -> dict[LogId, LogState]:
        """What cannot be read here is not drawn."""
        if not logs:
            return {}
        wanted = self._spark.createDataFrame(
            [tuple(each) for each in logs], "cluster_id STRING, topic_id STRING, partition INT"
        )
        rows = self._of(STATE, run).join(F.broadcast(wanted), list(_KEY), "left_semi").select(*_KEY, "state")
        found = {}
        for row in rows.collect():
            try:
                state = decode(bytes(row["state"]))
            except StateTooNew:  # judged by a newer Seawall
                continue
            found[LogId(row["cluster_id"], row["topic_id"], row["partition"])] = state
        return found

    def _of(self, name: str, run: Row) -> DataFrame:
        return self._table(name).where((F.col("run") == run["run"]) & (F.col("attempt") == run["attempt"]))

    def _table(self, name: str) -> DataFrame:
        return self._spark.read.format("delta").load(f"{self._root}/{name}")
