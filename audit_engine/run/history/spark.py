"""The evidence of the past, judged anew from its beginning, into nothing but what is returned.

    replay   every log as of a moment, by any terms: what would have been found
    log      the events about one log, for whoever explains a finding of it

A replay reads no carried state: it is as slow as the history is long, and depends on no earlier judgement.
The live chain of runs is not touched, and no table is made.

Owns this reading. Invariant: with the last run's cut, moment and terms it comes to the last run's findings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.cut import Cut, cut_of
from audit_engine.run.decisions import suppressions
from audit_engine.run.decisions.spark import Decisions
from audit_engine.run.doubts.spark import gaps, silent
from audit_engine.run.errors import NothingIngested
from audit_engine.run.evidence.spark import (
    KEY,
    about_logs,
    distinct_logs,
    keyed,
    shared,
    told,
    told_to,
    until,
)
from audit_engine.run.fleet import standing
from audit_engine.run.groups.spark import each_log
from audit_engine.run.kept.spark import Kept
from audit_engine.run.listening.spark import digested, heard
from audit_engine.run.one_log import Task
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.told import told_of
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.results import EMITTERS, RESULTS, STATEMENTS
from rules.identity import LogId
from rules.machine import Terms, Told, decode, newborn
from rules.machine.explained import Explanation, explain, underived
from rules.machine.fleet import blasts

LOOKED_FOR_MAX = 20  # logs of a topic, for a finding of all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Findings as JSON holds them, and the statements of all logs."""

    as_of_ms: int
    findings: list[dict[str, Any]]
    statements: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where an event lies in Kafka; an event that was delivered twice lies in two places."""

    partition: int
    offset: int


class History:
    """Of the tables under `root`, up to where the last finished run saw. NothingIngested before the first."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root.rstrip("/")
        self._verdicts = Verdicts(spark, root)
        rows = self._verdicts.runs(1)
        if not rows:
            raise NothingIngested(table=f"{self._root}/{EVENTS}")
        [self._last] = rows

    @property
    def last_cut(self) -> Cut:
        return cut_of(self._last["run"], self._last["as_of_ms"], json.dumps(self._last["cut"]))

    def log(self, log: LogId, topic: str) -> list[Told]:
        """All that was ever said to it, with what of it never came."""
        rows = [(log.cluster_id, log.topic_id, log.partition, topic)]
        schema = "cluster_id STRING, topic_id STRING, partition INT, topic STRING"
        one = self._spark.createDataFrame(rows, schema)
        events = self._events()
        own = about_logs(events).join(F.broadcast(one.select(*KEY)), list(KEY), "left_semi")
        said = keyed(own).unionByName(told_to(shared(events), one))
        emitters = self._verdicts.rows_of(EMITTERS, self._last)
        said = said.unionByName(gaps(emitters, "gaps", one))
        return [told_of(row.asDict()) for row in said.collect()]

    def explain(self, found: Mapping[str, Any]) -> tuple[Explanation, dict[str, list[Placed]]]:
        """What a finding was made of, by the terms of the last run; one of no log is not derived."""
        terms, as_of_ms = self.live_terms(), self._last["as_of_ms"]
        told = None
        for log, topic in self._logs_of(found["subject"]):
            told = explain(
                found["rule_id"],
                found["finding_id"],
                self.log(log, topic),
                newborn(log, topic),
                terms,
                as_of_ms,
            )
            if told.is_derived:
                return told, self.places(each.event_id for each in told.cited)
        return told or underived(found["rule_id"]), {}

    def live_terms(self) -> Terms:
        """As the last run judged: with what people had decided by then."""
        cut = self.last_cut
        decided = Decisions(self._spark, self._root).all(cut.decisions) if cut.decisions else []
        return replace(Terms(), suppressions=suppressions(decided, cut.as_of_ms))

    def _logs_of(self, subject: str) -> list[tuple[LogId, str]]:
        """A log's finding names it; a topic's is looked for in each of its logs, the first first."""
        cluster_id, _, rest = subject.partition("/")
        topic_id, _, rest = rest.partition("/")
        partition = rest.partition("/")[0]
        stated = self._verdicts.rows_of(STATEMENTS, self._last).where(
            (F.col("cluster_id") == cluster_id) & (F.col("topic_id") == topic_id)
        )
        rows = stated.select("partition", "topic").collect()
        return [
            (LogId(cluster_id, topic_id, row["partition"]), row["topic"])
            for row in sorted(rows, key=lambda row: row["partition"])
            if partition in ("", str(row["partition"]))
        ][:LOOKED_FOR_MAX]

    def places(self, event_ids: Iterable[str]) -> dict[str, list[Placed]]:
        """Where in Kafka these events lie."""
        rows = self._raw().where(F.col("event_id").isin(sorted(set(event_ids))))
        found: dict[str, list[Placed]] = {}
        for row in rows.select("event_id", "kafka_partition", "kafka_offset").distinct().collect():
            place = Placed(partition=row["kafka_partition"], offset=row["kafka_offset"])
            found.setdefault(row["event_id"], []).append(place)
        return {
            name: sorted(each, key=lambda one: (one.partition, one.offset)) for name, each in found.items()
        }

    def replay(self, terms: Terms, *, from_ms: int, to_ms: int) -> Replayed:
        """Every log from its first event on, as of `to_ms`; statements are of the time since `from_ms`."""
        task = Task(terms=terms, from_ms=from_ms, as_of_ms=to_ms)
        events = self._events().where(F.col("observed_at_ms") <= to_ms)
        with Kept() as kept:
            found = digested(events, to_ms, kept, with_bodies=False)
            emitters, told = heard(events, found, self._none(EMITTERS), task, kept)
            logs = distinct_logs(found.logs.where("topic IS NOT NULL"))
            return self._judged(events, logs, emitters, replace(task, doubts=silent(told)))

    def _judged(self, events: DataFrame, logs: DataFrame, emitters: DataFrame, task: Task) -> Replayed:
        said = keyed(about_logs(events)).unionByName(told_to(shared(events), logs))
        said = said.unionByName(gaps(emitters, "gaps", logs))
        nothing = F.lit(None).cast("binary")
        tasks = logs.select(
            *KEY, "topic", nothing.alias("carried"), nothing.alias("base"), F.lit(True).alias("is_again")
        )
        rows = each_log(said, tasks, task).select(
            "findings", "statement", "statement_hash", "has_blast", "state"
        )
        judged = rows.withColumn("state", F.when(F.col("has_blast"), F.col("state"))).collect()
        of_emitters = emitters.where(F.col("findings") != "[]").select("findings").collect()
        return Replayed(
            as_of_ms=task.as_of_ms,
            findings=standing(
                [each for row in judged for each in json.loads(row["findings"])],
                blasts(decode(bytes(row["state"])) for row in judged if row["has_blast"]),
                [each for row in of_emitters for each in json.loads(row["findings"])],
                [],
                as_of_ms=task.as_of_ms,
                terms=task.terms,
            ),
            statements=sorted(
                ({**json.loads(row["statement"]), "statement_hash": row["statement_hash"]} for row in judged),
                key=lambda each: (each["cluster_id"], each["topic"], each["topic_id"], each["partition"]),
            ),
        )

    def _raw(self) -> DataFrame:
        events = self._spark.read.format("delta").load(f"{self._root}/{EVENTS}")
        return until(events, self.last_cut.end_offsets)

    def _events(self) -> DataFrame:
        return told(self._raw())

    def _none(self, name: str) -> DataFrame:
        schema = ", ".join(f"{each.name} {each.sql_type}" for each in RESULTS[name])
        return self._spark.createDataFrame([], schema)
