"""The tables of results in Delta: an attempt appends its rows in any order, and the run's row last.

Two runs that judge at the same time would have the same number. Each adds its row under Delta's transaction
of that number; the second is refused, or skipped without a word, which is found by reading it back.

Owns the writes. Refuses to touch rows that are there, but for a run's own row when it is judged again.

Invariant: what the attempt that a run's row names has written is there in full.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import StructField, StructType, _parse_datatype_string

from audit_engine.run.cut import Cut, cut_of
from audit_engine.run.errors import NoSuchRun, RunOvertaken
from audit_engine.run.reading.spark import latest_findings
from audit_engine.tables.results import OUTBOX, RESULTS, RUNS, STATE
from audit_engine.tables.spark import CONFLICTS

APP_ID = "seawall.audit.run"


class Results:
    """All tables of results under `root`; made where they are not there."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root.rstrip("/")
        for name in RESULTS:
            self._make(name)

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def table(self, name: str) -> DataFrame:
        return self._spark.read.format("delta").load(self.path(name))

    def of(self, name: str, row: Mapping[str, Any]) -> DataFrame:
        """What the run of this row left in a table."""
        return self.table(name).where((F.col("run") == row["run"]) & (F.col("attempt") == row["attempt"]))

    def schema(self, name: str) -> StructType:
        fields = [StructField(each.name, _parse_datatype_string(each.sql_type)) for each in RESULTS[name]]
        return StructType(fields)

    def last_run(self) -> dict[str, Any] | None:
        """The row of the last run that was finished."""
        rows = self.table(RUNS).orderBy(F.desc("run")).limit(1).collect()
        return rows[0].asDict() if rows else None

    def rates(self, runs: int = 7) -> list[float]:
        """Events an hour of the last runs that followed one, the newest first."""
        rows = self.table(RUNS).orderBy(F.desc("run")).limit(runs).collect()
        found = []
        for row in rows:
            cut = self.cut(row.asDict())
            if cut.since_ms is not None and cut.as_of_ms > cut.since_ms:
                hours = (cut.as_of_ms - cut.since_ms) / 3_600_000
                found.append(json.loads(row["counts"])["events"] / hours)
        return found

    def run_row(self, run: int) -> dict[str, Any]:
        rows = self.table(RUNS).where(F.col("run") == run).collect()
        if not rows:
            raise NoSuchRun(run=run, table=self.path(RUNS))
        return rows[0].asDict()

    def cut(self, row: Mapping[str, Any]) -> Cut:
        return cut_of(row["run"], row["as_of_ms"], row["cut"])

    def earlier_states(self, below_run: int) -> DataFrame:
        """States of all finished runs before `below_run`."""
        finished = self.table(RUNS).where(F.col("run") < below_run).select("run", "attempt")
        return self.table(STATE).join(F.broadcast(finished), ["run", "attempt"])

    def standing(self, below_run: int) -> list[dict[str, Any]]:
        """The findings as the runs before `below_run` left them."""
        return latest_findings(self._spark, self._root, below_run)

    def append_rows(self, name: str, run: int, attempt: str, rows: list[dict[str, Any]]) -> None:
        """The same of a few rows that the driver has."""
        values = [
            tuple((row | {"run": run, "attempt": attempt})[each.name] for each in RESULTS[name])
            for row in rows
        ]
        if values:
            self.append(name, run, attempt, self._spark.createDataFrame(values, self.schema(name)))

    def append(self, name: str, run: int, attempt: str, rows: DataFrame) -> None:
        marked = rows.withColumns({"run": F.lit(run), "attempt": F.lit(attempt)})
        columns = [F.col(each.name).cast(each.sql_type).alias(each.name) for each in RESULTS[name]]
        marked.select(*columns).write.format("delta").mode("append").save(self.path(name))

    def finish(self, row: Mapping[str, Any]) -> None:
        """A new run counts from here on. Raises RunOvertaken."""
        writer = self._frame(row).write.format("delta").mode("append")
        overtaken = RunOvertaken(run=row["run"], table=self.path(RUNS))
        try:
            writer.option("txnAppId", APP_ID).option("txnVersion", str(row["run"])).save(self.path(RUNS))
        except CONFLICTS as refused:
            raise overtaken from refused
        if self.run_row(row["run"])["attempt"] != row["attempt"]:
            raise overtaken

    def finish_again(self, row: Mapping[str, Any]) -> None:
        """A run that was judged again: this attempt counts from here on, and not the one before."""
        writer = self._frame(row).write.format("delta").mode("overwrite")
        writer.option("replaceWhere", f"run = {row['run']}").save(self.path(RUNS))

    def _frame(self, row: Mapping[str, Any]) -> DataFrame:
        values = tuple(row[each.name] for each in RESULTS[RUNS])
        return self._spark.createDataFrame([values], self.schema(RUNS))

    def _make(self, name: str) -> None:
        path = self.path(name)
        if DeltaTable.isDeltaTable(self._spark, path):
            return
        builder = DeltaTable.createIfNotExists(self._spark).location(path)
        for column in RESULTS[name]:
            builder = builder.addColumn(column.name, column.sql_type, comment=column.comment or None)
        if name not in (RUNS, OUTBOX):
            builder = builder.partitionedBy("run")
        builder.execute()
