"""What the auditor is judged by: the tables' own histories, and what came too late.

Owns this reading. Refuses to write. Invariant: of a table's history only what lies in the run's cut is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.auditor import Commit, Tardy, out_of_cadence, tampered, tardy
from audit_engine.run.cut import Cut
from audit_engine.tables.columns import EVENTS, QUARANTINE
from audit_engine.tables.spark import commit_infos, log_and_snapshot
from rules.machine import Terms


def versions(spark: SparkSession, root: str) -> dict[str, int]:
    """The last of each table of evidence that there is."""
    found = {}
    for name in (EVENTS, QUARANTINE):
        path = f"{root.rstrip('/')}/{name}"
        if DeltaTable.isDeltaTable(spark, path):
            found[name] = log_and_snapshot(spark, path)[1].version()
    return found


class Auditor:
    """One run's look at itself."""

    def __init__(self, spark: SparkSession, root: str, cut: Cut, before: Mapping[str, Any] | None) -> None:
        self._spark = spark
        self._root = root.rstrip("/")
        self._cut = cut
        self._before = before

    def findings(self, rows: DataFrame, first_ms: int, logs: int, terms: Terms) -> list[dict[str, Any]]:
        """`rows` is the slice, `first_ms` when the first of it was observed; `logs`: so many were judged."""
        counts = None if self._before is None else json.loads(self._before["counts"])
        return [
            *out_of_cadence(
                as_of_ms=self._cut.as_of_ms,
                since_ms=self._cut.since_ms,
                logs=logs,
                logs_before=None if counts is None else counts["logs"],
            ),
            *tardy(self._tardy(rows, first_ms, terms), terms),
        ]

    def tampering(self) -> list[dict[str, Any]]:
        """What the tables' histories tell, which no run has told yet."""
        return [
            each
            for name, version in sorted(self._cut.versions.items())
            for each in tampered(name, self._history(name, version))
        ]

    def _history(self, name: str, last: int) -> Iterator[Commit]:
        """Since the run before; where that one did not say how far it saw, all of it."""
        cut = {} if self._before is None else json.loads(self._before["cut"])
        first = cut.get("versions", {}).get(name, -1) + 1
        if first > last:
            return
        for version, info in commit_infos(self._spark, f"{self._root}/{name}", first, last):
            parameters = info.get("operationParameters") or {}
            yield Commit(
                version=version,
                operation=str(info.get("operation")),
                parameters={
                    key: each if isinstance(each, str) else json.dumps(each)
                    for key, each in parameters.items()
                },
                user_metadata=info.get("userMetadata"),
            )

    def _tardy(self, rows: DataFrame, first_ms: int, terms: Terms) -> list[Tardy]:
        """Of the first run nothing is late: it hears what was ever said."""
        if self._cut.since_ms is None:
            return []
        horizon_ms = self._cut.since_ms - terms.lateness_ms
        if first_ms >= horizon_ms:
            return []
        late = rows.where(F.col("observed_at_ms") < horizon_ms)
        who = ("cluster_id", "emitter_broker_id", "emitter_component", "emitter_incarnation")
        found = late.groupBy(*who).agg(F.min("emitter_seq").alias("first"), F.count(F.lit(1)).alias("events"))
        return [
            Tardy(
                cluster_id=row["cluster_id"],
                emitter="/".join(str(row[name]) for name in who[1:]),
                first_seq=row["first"],
                events=row["events"],
            )
            for row in found.collect()
        ]
