"""What finished runs said. Nothing here writes, or makes a table.

Owns the reading. Invariant: only rows of attempts that `audit_runs` names are told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.decisions import Decision
from audit_engine.run.decisions.spark import Decisions
from audit_engine.run.errors import NoSuchFinding
from audit_engine.tables.results import FINDINGS, RUNS, STATEMENTS
from rules.identity import LogId
from rules.severities import GRAVEST_FIRST


class Unfinished(NamedTuple):
    """An attempt at a run that wrote rows, and was not finished."""

    run: int
    wrote_ms: int


class Verdicts:
    """The results under `root`; where there are none, nothing."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root.rstrip("/")

    def runs(self, limit: int) -> list[dict[str, Any]]:
        """The newest first."""
        path = f"{self._root}/{RUNS}"
        if not DeltaTable.isDeltaTable(self._spark, path):
            return []
        rows = self._spark.read.format("delta").load(path).orderBy(F.desc("run")).limit(limit).collect()
        return [_decoded(row.asDict(), ("cut", "terms", "gate", "counts")) for row in rows]

    def unfinished(self) -> Unfinished | None:
        """What the newest attempt left, where no run's row names it: it was killed, failed, or is at work."""
        path = f"{self._root}/{STATEMENTS}"
        if not DeltaTable.isDeltaTable(self._spark, path):
            return None
        last = self.runs(1)
        after = F.col("run") > (last[0]["run"] if last else 0)
        [row] = (
            self._spark.read.format("delta").load(path).where(after).agg(F.max("run").alias("run")).collect()
        )
        if row["run"] is None:
            return None
        history = DeltaTable.forPath(self._spark, path).history().where("operation = 'WRITE'")
        [wrote] = history.orderBy(F.desc("version")).limit(1).select("timestamp").collect()
        return Unfinished(run=row["run"], wrote_ms=int(wrote["timestamp"].timestamp() * 1000))

    def findings(self) -> list[dict[str, Any]]:
        """As the last run left them: worst first, an incident's together, its root first."""
        told = latest_findings(self._spark, self._root) if self.runs(1) else []
        worst: dict[str, int] = {}
        for each in told:
            rank = GRAVEST_FIRST.index(each["severity"])
            worst[each["incident"]] = min(rank, worst.get(each["incident"], rank))
        return sorted(
            told,
            key=lambda each: (
                worst[each["incident"]],
                each["incident"],
                each["parent"] is not None,
                each["rule_id"],
                each["ranges"],
            ),
        )

    def finding(self, wanted: str) -> dict[str, Any]:
        """The one whose id begins so. Raises NoSuchFinding."""
        fitting = [each for each in self.findings() if wanted and each["finding_id"].startswith(wanted)]
        if len(fitting) != 1:
            raise NoSuchFinding(wanted=wanted, count=len(fitting))
        return fitting[0]

    def decisions(self) -> list[Decision]:
        return Decisions(self._spark, self._root).all()

    def statements(self, topic: str, partition: int | None) -> list[dict[str, Any]]:
        rows = self._of_last(STATEMENTS, "topic", "partition", "statement", "statement_hash")
        return [
            {**json.loads(row["statement"]), "statement_hash": row["statement_hash"]}
            for row in sorted(rows, key=lambda row: row["partition"])
            if row["topic"] == topic and partition in (None, row["partition"])
        ]

    def logs(self, subject: str) -> dict[LogId, str]:
        """The logs of a finding's topic that the last run judged, each with the topic's name."""
        cluster_id, _, rest = subject.partition("/")
        topic_id = rest.partition("/")[0]
        last = self.runs(1)
        if not last:
            return {}
        same = (F.col("cluster_id") == cluster_id) & (F.col("topic_id") == topic_id)
        rows = self.rows_of(STATEMENTS, last[0]).where(same).select("partition", "topic").collect()
        return {LogId(cluster_id, topic_id, row["partition"]): row["topic"] for row in rows}

    def _of_last(self, name: str, *columns: str) -> list[dict[str, Any]]:
        last = self.runs(1)
        if not last:
            return []
        return [row.asDict() for row in self.rows_of(name, last[0]).select(*columns).collect()]

    def rows_of(self, name: str, run: Mapping[str, Any]) -> DataFrame:
        """What a finished run left in a table."""
        counts = (F.col("run") == run["run"]) & (F.col("attempt") == run["attempt"])
        return self._spark.read.format("delta").load(f"{self._root}/{name}").where(counts)


def latest_findings(spark: SparkSession, root: str, below_run: int | None = None) -> list[dict[str, Any]]:
    """Each finding as the last finished run that changed it left it; of runs before `below_run`, if given."""
    runs = spark.read.format("delta").load(f"{root}/{RUNS}").select("run", "attempt")
    if below_run is not None:
        runs = runs.where(F.col("run") < below_run)
    changes = (
        spark.read.format("delta").load(f"{root}/{FINDINGS}").join(F.broadcast(runs), ["run", "attempt"])
    )
    latest = changes.groupBy("finding_id").agg(F.max_by("detail", "run").alias("detail"))
    return [json.loads(row["detail"]) for row in latest.collect()]


def _decoded(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return row | {name: json.loads(row[name]) for name in names}
