"""The outbox in Delta: what finished runs left for people.

Beside each critical finding that is open stands who led its log, as the same run carried it: a hold stops no
broker, and whoever is called at night asks which one to stop.

Owns the reading. Invariant: only rows of attempts that `audit_runs` names are told, each run's all at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.alerts.formats.words import log_of
from audit_engine.alerts.news import LEADER, Changed, Finding, Page, RunNews
from audit_engine.tables.results import FINDINGS, OUTBOX, RUNS, STATE
from rules.identity import LogId
from rules.machine import StateTooNew, decode

_KEY = ("attempt", "cluster_id", "topic_id", "partition")
_KEY_SCHEMA = "attempt STRING, cluster_id STRING, topic_id STRING, partition INT"
LEADERS_MAX = 500  # logs whose state is read for it; of more, the message says that brokers go on, not which


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
            self._name_leaders(counts, pages)
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

    def _name_leaders(self, counts: Column, pages: dict[str, list[Page]]) -> None:
        wanted = [
            (attempt, *log)
            for attempt, of_attempt in pages.items()
            for page in of_attempt
            for each in page.changes
            if (log := _asks_for_leader(each.finding)) is not None
        ]
        leaders = self._leaders(counts, dict.fromkeys(wanted))
        for attempt, of_attempt in pages.items() if leaders else ():
            pages[attempt] = [_named(page, attempt, leaders) for page in of_attempt]

    def _leaders(self, counts: Column, wanted: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
        """By attempt and log, as that run carried it: what it did not fold, or is gone by now, has none."""
        asked = list(wanted)[:LEADERS_MAX]
        path = f"{self._root}/{STATE}"
        if not asked or not DeltaTable.isDeltaTable(self._spark, path):
            return {}
        keys = self._spark.createDataFrame(asked, _KEY_SCHEMA)
        rows = self._spark.read.format("delta").load(path).where(counts).select(*_KEY, "state")
        found = {}
        for row in rows.join(F.broadcast(keys), list(_KEY), "left_semi").collect():
            try:
                leader_id = decode(bytes(row["state"])).leader_id
            except StateTooNew:  # a newer Seawall judged
                continue
            if leader_id is not None and leader_id >= 0:
                found[tuple(row[:4])] = leader_id
        return found


def _asks_for_leader(finding: Finding) -> LogId | None:
    is_asked = finding["severity"] == "C" and finding["status"] == "open"
    return log_of(finding) if is_asked else None


def _named(page: Page, attempt: str, leaders: Mapping[tuple[Any, ...], int]) -> Page:
    changes = []
    for each in page.changes:
        log = _asks_for_leader(each.finding)
        leader_id = None if log is None else leaders.get((attempt, *log))
        named = each.finding if leader_id is None else {**each.finding, LEADER: leader_id}
        changes.append(replace(each, finding=named))
    return replace(page, changes=tuple(changes))
