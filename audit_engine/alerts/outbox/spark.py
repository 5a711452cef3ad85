"""The outbox in Delta: what finished runs left for people.

Owns the reading. Invariant: only rows of attempts that `audit_runs` names are told, each run's all at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
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
        attempts = [row["attempt"] for row in new]
        pages = self._pages(attempts)
        self._add_ended(attempts, pages)
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

    def _pages(self, attempts: list[str]) -> dict[str, list[Page]]:
        """By attempt, incidents in the order of their names."""
        found: dict[str, list[Page]] = {}
        if not attempts:
            return found
        outbox = self._spark.read.format("delta").load(f"{self._root}/{OUTBOX}")
        rows = outbox.where(F.col("attempt").isin(attempts)).select("attempt", "incident", "message")
        for row in rows.orderBy("attempt", "incident").collect():
            found.setdefault(row["attempt"], []).append(Page.of_row(row["incident"], row["message"]))
        return found

    def _add_ended(self, attempts: list[str], pages: dict[str, list[Page]]) -> None:
        """What ended while somebody answered for it is in no outbox."""
        if not attempts:
            return
        changes = self._spark.read.format("delta").load(f"{self._root}/{FINDINGS}")
        is_end = F.col("attempt").isin(attempts) & ~F.col("change").isin("opened", "changed")
        ended = changes.where(is_end).select("attempt", "change", "detail").orderBy("finding_id")
        for row in ended.collect():
            of_attempt = pages.setdefault(row["attempt"], [])
            finding = json.loads(row["detail"])
            told = {each.finding["finding_id"] for page in of_attempt for each in page.changes}
            if finding["finding_id"] not in told:
                change = Changed(change=row["change"], finding=finding)
                of_attempt.append(Page(incident=finding["incident"], changes=(change,)))
