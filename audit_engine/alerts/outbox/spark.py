"""The outbox in Delta: what finished runs left for people.

Owns the reading. Invariant: only rows of attempts that `audit_runs` names are told, each run's all at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from delta.tables import DeltaTable
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.alerts.news import Changed, Page, RunNews
from audit_engine.tables.results import FINDINGS, OUTBOX, RUNS


class Finished:
    """The results under `root`; where there are none, nothing."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root.rstrip("/")

    def since(self, taken: Mapping[int, str]) -> list[RunNews]:
        path = f"{self._root}/{RUNS}"
        if not DeltaTable.isDeltaTable(self._spark, path):
            return []
        rows = self._spark.read.format("delta").load(path).select("run", "attempt", "as_of_ms", "gate")
        new = [row for row in rows.orderBy("run").collect() if taken.get(row["run"]) != row["attempt"]]
        counts = F.col("run").isin([row["run"] for row in new]) & F.col("attempt").isin(
            [row["attempt"] for row in new]
        )
        pages: dict[str, list[Page]] = {}
        if new:
            self._add_news(counts, pages)
            self._add_ended(counts, pages)
        return [
            RunNews(
                run=row["run"],
                attempt=row["attempt"],
                as_of_ms=row["as_of_ms"],
                is_complete=all(each["is_met"] for each in json.loads(row["gate"])),
                pages=tuple(pages.get(row["attempt"], ())),
            )
            for row in new
        ]

    def _add_news(self, counts: Column, pages: dict[str, list[Page]]) -> None:
        """By attempt, incidents in the order of their names."""
        outbox = self._spark.read.format("delta").load(f"{self._root}/{OUTBOX}")
        rows = outbox.where(counts).select("attempt", "incident", "message")
        for row in rows.orderBy("attempt", "incident").collect():
            pages.setdefault(row["attempt"], []).append(Page.of_row(row["incident"], row["message"]))

    def _add_ended(self, counts: Column, pages: dict[str, list[Page]]) -> None:
        """What ended while somebody answered for it is in no outbox."""
        changes = self._spark.read.format("delta").load(f"{self._root}/{FINDINGS}")
        ended = changes.where(counts & ~F.col("change").isin("opened", "changed"))
        for row in ended.select("attempt", "change", "detail").orderBy("finding_id").collect():
            of_attempt = pages.setdefault(row["attempt"], [])
            finding = json.loads(row["detail"])
            told = {each.finding["finding_id"] for page in of_attempt for each in page.changes}
            if finding["finding_id"] not in told:
                change = Changed(change=row["change"], finding=finding)
                of_attempt.append(Page(incident=finding["incident"], changes=(change,)))
