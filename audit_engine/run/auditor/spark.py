"""What the auditor is judged by: the tables' own histories, what came too late, the canary's rows.

Owns this reading. Refuses to write. Invariant: of a table's history only what lies in the run's cut is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.auditor import Commit, Tardy, blind, out_of_cadence, tampered, tardy
from audit_engine.run.canary import TOPIC, Canary, canary
from audit_engine.run.cut import Cut
from audit_engine.run.groups.spark import each_log
from audit_engine.run.one_log import Task
from audit_engine.run.told import COLUMNS, row_of
from audit_engine.tables.columns import ENVELOPE, EVENTS, QUARANTINE
from audit_engine.tables.spark import commit_infos, log_and_snapshot
from rules.machine import Terms

_TYPES = {column.name: column.sql_type for column in ENVELOPE}
_LOG = "log_cluster_id STRING, log_topic_id STRING, log_partition INT, log_topic STRING"
SAID = f"{_LOG}, {', '.join(f'{name} {_TYPES[name]}' for name in COLUMNS)}, body STRING"
TASK = (
    "cluster_id STRING, topic_id STRING, partition INT, topic STRING, carried BINARY, base BINARY,"
    " is_again BOOLEAN"
)


def versions(spark: SparkSession, root: str) -> dict[str, int]:
    """The last of each table of evidence that there is."""
    found = {}
    for name in (EVENTS, QUARANTINE):
        path = f"{root.rstrip('/')}/{name}"
        if DeltaTable.isDeltaTable(spark, path):
            found[name] = log_and_snapshot(spark, path)[1].version()
    return found


def judged_canary(spark: SparkSession, canary: Canary, task: Task) -> list[Row]:
    """What the judge comes to of it, by the way that every log takes from rows to findings."""
    log = canary.log
    place = (log.cluster_id, log.topic_id, log.partition, TOPIC)
    rows = [(*place, *(row[name] for name in (*COLUMNS, "body"))) for row in map(row_of, canary.said)]
    said = spark.createDataFrame(rows, SAID).coalesce(1)
    tasks = spark.createDataFrame([(*place, None, None, False)], TASK).coalesce(1)
    return each_log(said, tasks, task).select("findings").collect()


class Auditor:
    """One run's look at itself."""

    def __init__(self, spark: SparkSession, root: str, cut: Cut, before: Mapping[str, Any] | None) -> None:
        self._spark = spark
        self._root = root.rstrip("/")
        self._cut = cut
        self._before = before

    def findings(self, rows: DataFrame, first_ms: int, logs: int, task: Task) -> list[dict[str, Any]]:
        """`rows` is the slice, `first_ms` when the first of it was observed; `logs`: so many were judged."""
        injected = canary(self._cut.run, self._cut.as_of_ms)
        # It is judged as it would be if nobody let anything be.
        said_of_it = judged_canary(
            self._spark, injected, replace(task, terms=replace(task.terms, suppressions=()))
        )
        found = [each for row in said_of_it for each in json.loads(row["findings"])]
        counts = None if self._before is None else json.loads(self._before["counts"])
        told = [
            *blind(injected, found if said_of_it else None),
            *out_of_cadence(
                as_of_ms=self._cut.as_of_ms,
                since_ms=self._cut.since_ms,
                logs=logs,
                logs_before=None if counts is None else counts["logs"],
            ),
            *tardy(self._tardy(rows, first_ms, task.terms), task.terms),
        ]
        for name, version in sorted(self._cut.versions.items()):
            told += tampered(name, self._history(name, version))
        return told

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
