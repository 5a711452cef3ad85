"""The tables of results in Delta: an attempt appends its rows in any order, and the run's row last.

Two runs that judge at the same time would have the same number. Each adds its row under Delta's transaction
of that number; the second is refused, or skipped without a word, which is found by reading it back.

A table is made by the first write to it, and each run before its row writes to all of them: where there is a
run, there are all tables.

Owns the writes. Refuses to touch rows that are there, but for a run's own row when it is judged again.

Invariant: what the attempt that a run's row names has written is there in full.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.cut import Cut, cut_of
from audit_engine.run.errors import NoSuchRun, RunOvertaken
from audit_engine.run.evidence.spark import KEY
from audit_engine.run.kept.spark import apart
from audit_engine.run.reading.spark import latest_findings
from audit_engine.tables.results import FINDINGS, OUTBOX, RESULTS, RUNS, STATE, STATEMENTS
from audit_engine.tables.spark import CONFLICTS

APP_ID = "seawall.audit.run"


def rows_of(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """A few rows that the driver has, through one literal: no Python worker. `schema`: NAME: TYPE, ..."""
    return spark.range(1).select(F.inline(F.from_json(F.lit(json.dumps(rows)), f"ARRAY<STRUCT<{schema}>>")))


class Results:
    """All tables of results under `root`; one that nobody wrote to yet is empty."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root.rstrip("/")
        self._there: set[str] = set()
        self._finished: list[dict[str, Any]] | None = None

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def table(self, name: str) -> DataFrame:
        if not self._is_there(name):
            return self.nothing(name)
        rows = self._spark.read.format("delta").load(self.path(name))
        wanted = {each.name: each.sql_type for each in RESULTS[name] if each.name not in rows.columns}
        return rows.withColumns({name: F.lit(None).cast(kind) for name, kind in wanted.items()})

    def nothing(self, name: str) -> DataFrame:
        return self.rows(name, [])

    def rows(self, name: str, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
        """Rows that the driver has, with the table's columns."""
        told = [{each.name: row.get(each.name) for each in RESULTS[name]} for row in rows]
        return rows_of(
            self._spark, told, ", ".join(f"{each.name}: {each.sql_type}" for each in RESULTS[name])
        )

    def of(self, name: str, row: Mapping[str, Any], *columns: str) -> DataFrame:
        """What the run of this row left in a table; these columns of it, or all: others are not read."""
        counts = (F.col("run") == row["run"]) & (F.col("attempt") == row["attempt"])
        return apart(self._spark, self.table(name).where(counts).select(*(columns or ("*",))))

    def finished(self) -> list[dict[str, Any]]:
        """The rows of all finished runs, the newest first; read once, until this one writes its own."""
        if self._finished is None:
            self._finished = [row.asDict() for row in self.table(RUNS).orderBy(F.desc("run")).collect()]
        return self._finished

    def last_run(self) -> dict[str, Any] | None:
        """The row of the last run that was finished."""
        return next(iter(self.finished()), None)

    def rates(self, runs: int = 7) -> list[float]:
        """Events an hour of the last runs that followed one, the newest first."""
        found = []
        for row in self.finished()[:runs]:
            cut = self.cut(row)
            if cut.since_ms is not None and cut.as_of_ms > cut.since_ms:
                hours = (cut.as_of_ms - cut.since_ms) / 3_600_000
                found.append(json.loads(row["counts"])["events"] / hours)
        return found

    def run_row(self, run: int) -> dict[str, Any]:
        row = next((each for each in self.finished() if each["run"] == run), None)
        if row is None:
            raise NoSuchRun(run=run, table=self.path(RUNS))
        return row

    def cut(self, row: Mapping[str, Any]) -> Cut:
        return cut_of(row["run"], row["as_of_ms"], row["cut"])

    def earlier_states(self, runs: Iterable[int], *columns: str) -> DataFrame:
        """Of these runs, where they were finished: of others, no file is opened, and no other column read."""
        asked = set(runs)
        finished = [each for each in self.finished() if each["run"] in asked]
        counts = F.col("run").isin([each["run"] for each in finished])
        wanted = counts & F.col("attempt").isin([each["attempt"] for each in finished])
        return apart(self._spark, self.table(STATE).where(wanted).select(*columns))

    def states_gone(self, row: Mapping[str, Any]) -> int:
        """Of how many logs the state that the run of this row left is not there any more."""
        state_run = F.coalesce("state_run", F.lit(row["run"])).alias("run")
        left = self.of(STATEMENTS, row).select(*KEY, state_run)
        runs = [each["run"] for each in left.select("run").distinct().collect()]
        return left.join(self.earlier_states(runs, *KEY, "run"), [*KEY, "run"], "left_anti").count()

    def standing(self, below_run: int) -> list[dict[str, Any]]:
        """The findings as the runs before `below_run` left them."""
        if not self._is_there(FINDINGS):
            return []
        return latest_findings(self._spark, self._root, below_run)

    def append_rows(self, name: str, run: int, attempt: str, rows: list[dict[str, Any]]) -> None:
        """The same of a few rows that the driver has."""
        if rows or not self._is_there(name):
            self.append(name, run, attempt, self.rows(name, rows))

    def append(self, name: str, run: int, attempt: str, rows: DataFrame) -> None:
        marked = rows.withColumns({"run": F.lit(run), "attempt": F.lit(attempt)})
        columns = [
            F.col(each.name).cast(each.sql_type).alias(each.name, metadata={"comment": each.comment})
            for each in RESULTS[name]
        ]
        writer = marked.select(*columns).write.format("delta").mode("append").option("mergeSchema", "true")
        if not self._is_there(name) and name not in (RUNS, OUTBOX):
            writer = writer.partitionBy("run")
        writer.save(self.path(name))

    def finish(self, row: Mapping[str, Any]) -> None:
        """A new run counts from here on. Raises RunOvertaken."""
        writer = self.rows(RUNS, [row]).write.format("delta").mode("append")
        overtaken = RunOvertaken(run=row["run"], table=self.path(RUNS))
        try:
            writer.option("txnAppId", APP_ID).option("txnVersion", str(row["run"])).save(self.path(RUNS))
        except CONFLICTS as refused:
            raise overtaken from refused
        self._finished = None
        if self.run_row(row["run"])["attempt"] != row["attempt"]:
            raise overtaken

    def finish_again(self, row: Mapping[str, Any]) -> None:
        """A run that was judged again: this attempt counts from here on, and not the one before."""
        writer = self.rows(RUNS, [row]).write.format("delta").mode("overwrite")
        writer.option("replaceWhere", f"run = {row['run']}").save(self.path(RUNS))
        self._finished = None

    def _is_there(self, name: str) -> bool:
        if name not in self._there and DeltaTable.isDeltaTable(self._spark, self.path(name)):
            self._there.add(name)
        return name in self._there
