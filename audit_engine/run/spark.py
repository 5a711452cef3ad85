"""One run of the audit over all logs: listen, fold, judge, commit.

    slice    what the table has since the run before (`cut`)
    listen   each emitter by itself: what of it never came, and who is silent (`one_emitter`)
    fold     each log by itself, over its carried state (`one_log`); with late evidence, over an earlier one
    merge    what no single log can say (`fleet`), and what changed since the run before (`outcomes`)
    commit   state, statements, findings, outbox; then the run's own row, from which on all of it counts

Owns the order. Refuses to judge an empty table, and to go on from a run that was not finished.

Invariant: the same cut comes to the same `content_hash`, whatever the partitions, the order and the number of
attempts.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from delta.tables import DeltaTable
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.cut import Cut, next_cut
from audit_engine.run.errors import NothingIngested
from audit_engine.run.evidence.spark import (
    KEY,
    bare,
    distinct_logs,
    keyed,
    of_logs,
    shared,
    since,
    told_to,
    until,
    with_bodies,
)
from audit_engine.run.fleet import standing
from audit_engine.run.groups.spark import EMITTER, each_emitter, each_log
from audit_engine.run.one_log import Silent, Task, canonical
from audit_engine.run.outcomes import Outcome, changes, pages
from audit_engine.run.results.spark import Results
from audit_engine.run.told import COLUMNS, told_of
from audit_engine.tables.columns import ENVELOPE, EVENTS
from audit_engine.tables.results import EMITTERS, FINDINGS, OUTBOX, STATE, STATEMENTS
from audit_engine.tables.spark import EvidenceTable
from rules.catalogue import rule_set_hash
from rules.events import EmitterRetired
from rules.machine import Terms, decode
from rules.machine.fleet import blasts
from rules.machine.terms import NOT_AUDITED
from rules.machine.verdict import Verdict

_TYPES = {column.name: column.sql_type for column in ENVELOPE}
_GAPS = f"ARRAY<STRUCT<{', '.join(f'{name}: {_TYPES[name]}' for name in COLUMNS)}, body: STRING>>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run came to. `verdicts` and `findings` count logs and open findings."""

    run: int
    as_of_ms: int
    verdict: Verdict
    events: int
    logs: int
    refolded: int
    verdicts: Mapping[str, int]
    changes: Mapping[str, int]
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a run needs beside the tables. `at` is told each step, for progress and for tests."""

    terms: Terms
    now_ms: Callable[[], int]
    version: str
    at: Callable[[str], None] = field(default=lambda _: None)


class AuditRun:
    """Runs over the tables under `root`, one at a time."""

    def __init__(self, spark: SparkSession, root: str, means: Means) -> None:
        self._spark = spark
        self._root = root
        self._means = means
        self._results = Results(spark, root)

    def next(self, as_of_ms: int) -> RunSummary:
        """Everything since the run before. Raises AsOfBeforeLastRun, NothingIngested, RunOvertaken."""
        last = self._results.last_run()
        cut = next_cut(None if last is None else self._results.cut(last), self._ends(), as_of_ms)
        row, summary = self._judge(cut, last)
        self._results.finish(row)
        return summary

    def again(self, run: int) -> RunSummary:
        """The same run once more: the same offsets as of the same moment. Raises NoSuchRun."""
        cut = self._results.cut(self._results.run_row(run))
        before = None if cut.previous is None else self._results.run_row(cut.previous)
        row, summary = self._judge(cut, before)
        self._results.finish_again(row)
        return summary

    def _ends(self) -> Mapping[int, int]:
        path = f"{self._root.rstrip('/')}/{EVENTS}"
        if not DeltaTable.isDeltaTable(self._spark, path):
            raise NothingIngested(table=path)
        ends = EvidenceTable(self._spark, self._root, EVENTS).standing().next_offsets
        if not ends:
            raise NothingIngested(table=path)
        return ends

    def _judge(self, cut: Cut, before: Mapping[str, Any] | None) -> tuple[dict[str, Any], RunSummary]:
        began_ms, attempt = self._means.now_ms(), uuid.uuid4().hex
        task = Task(terms=self._means.terms, from_ms=cut.since_ms or 0, as_of_ms=cut.as_of_ms)
        self._means.at("listen")
        emitters = self._listen(cut, before, task).persist(StorageLevel.MEMORY_AND_DISK)
        task = replace(task, silent=_silent(emitters))
        self._means.at("fold")
        first = self._first_look(cut, before, task, emitters).persist(StorageLevel.MEMORY_AND_DISK)
        late = first.where(F.col("late_ms").isNotNull()).select(*KEY, "topic", "late_ms")
        refolded = late.count()
        judged = first.where(F.col("late_ms").isNull())
        if refolded:
            self._means.at("refold")
            judged = judged.unionByName(self._second_look(cut, before, task, late, emitters))
        judged = judged.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._means.at("merge")
            found = self._findings(cut, judged, emitters)
            outcomes = changes(self._results.standing(cut.run), found)
            summary = self._summary(cut, judged, found, outcomes, refolded)
            self._means.at("commit")
            self._put_down(cut.run, attempt, judged, emitters, outcomes)
        finally:
            for frame in (judged, first, emitters):
                frame.unpersist()
        self._means.at("finish")
        return self._row(cut, summary, attempt, began_ms), summary

    def _listen(self, cut: Cut, before: Mapping[str, Any] | None, task: Task) -> DataFrame:
        """Each emitter that is carried or was heard."""
        events = self._spark.read.format("delta").load(f"{self._root.rstrip('/')}/{EVENTS}")
        retired = _retired(until(events, cut.end_offsets))
        known = self._of_before(EMITTERS, before)
        return each_emitter(bare(since(events, cut)), known, task, retired)

    def _events(self) -> DataFrame:
        events = self._spark.read.format("delta").load(f"{self._root.rstrip('/')}/{EVENTS}")
        audited = ~F.col("topic").isin(*sorted(NOT_AUDITED))
        return events.where(F.col("log_id").isNull() | audited)

    def _first_look(
        self, cut: Cut, before: Mapping[str, Any] | None, task: Task, emitters: DataFrame
    ) -> DataFrame:
        """Every log that is carried or was heard of, over what is carried of it."""
        events = self._events()
        new_rows = since(events, cut)
        carried = self._of_before(STATE, before)
        logs = distinct_logs(of_logs(new_rows), carried)
        new_logs = logs.join(carried, list(KEY), "left_anti")
        rows = (
            keyed(of_logs(new_rows))
            .unionByName(told_to(shared(new_rows), carried))
            .unionByName(told_to(shared(until(events, cut.end_offsets)), new_logs))
        )
        gaps = _gaps(emitters, "new_gaps", logs)
        tasks = logs.join(carried.select(*KEY, "state"), list(KEY), "left").select(
            *KEY,
            "topic",
            F.col("state").alias("carried"),
            F.lit(None).cast("binary").alias("base"),
            F.lit(False).alias("is_again"),
        )
        return each_log(with_bodies(rows).unionByName(gaps), tasks, task)

    def _second_look(
        self,
        cut: Cut,
        before: Mapping[str, Any] | None,
        task: Task,
        late: DataFrame,
        emitters: DataFrame,
    ) -> DataFrame:
        """Logs of which something was late: over the last state that has nothing of what comes after it."""
        events = until(self._events(), cut.end_offsets)
        earlier = self._results.earlier_states(cut.run).select(*KEY, "run", "state", "position_ms")
        bases = (
            late.join(earlier, list(KEY))
            .where(F.col("position_ms") < F.col("late_ms"))
            .groupBy(*KEY)
            .agg(F.max_by("state", "run").alias("base"))
        )
        own = of_logs(events).join(late.select(*KEY), list(KEY), "left_semi")
        rows = keyed(own).unionByName(told_to(shared(events), late))
        tasks = late.join(bases, list(KEY), "left").select(
            *KEY, "topic", F.lit(None).cast("binary").alias("carried"), "base", F.lit(True).alias("is_again")
        )
        return each_log(with_bodies(rows).unionByName(_gaps(emitters, "gaps", late)), tasks, task)

    def _of_before(self, name: str, before: Mapping[str, Any] | None) -> DataFrame:
        if before is None:
            return self._spark.createDataFrame([], self._results.schema(name))
        return self._results.of(name, before)

    def _findings(self, cut: Cut, judged: DataFrame, emitters: DataFrame) -> list[dict[str, Any]]:
        """Of all logs, of emitters and of what only many logs show together."""
        told = judged.where(F.col("findings") != "[]").select("findings").collect()
        about = emitters.where(F.col("findings") != "[]").select("findings").collect()
        states = judged.where("has_blast").select("state").collect()
        return standing(
            [each for row in told for each in json.loads(row["findings"])],
            blasts(decode(bytes(row["state"])) for row in states),
            [each for row in about for each in json.loads(row["findings"])],
            self._results.standing(cut.run),
            as_of_ms=cut.as_of_ms,
        )

    def _summary(
        self,
        cut: Cut,
        judged: DataFrame,
        found: list[dict[str, Any]],
        outcomes: list[Outcome],
        refolded: int,
    ) -> RunSummary:
        verdicts = {row["verdict"]: row["count"] for row in judged.groupBy("verdict").count().collect()}
        hashes = [row["statement_hash"] for row in judged.select("statement_hash").collect()]
        content = canonical([sorted(hashes), sorted(found, key=lambda each: str(each["finding_id"]))])
        return RunSummary(
            run=cut.run,
            as_of_ms=cut.as_of_ms,
            verdict=_worst(verdicts, found),
            events=since(self._events(), cut).count(),
            logs=sum(verdicts.values()),
            refolded=refolded,
            verdicts=verdicts,
            changes=dict(Counter(each.change.value for each in outcomes)),
            content_hash=hashlib.sha256(content.encode()).hexdigest(),
        )

    def _put_down(
        self, run: int, attempt: str, judged: DataFrame, emitters: DataFrame, outcomes: list[Outcome]
    ) -> None:
        results = self._results
        results.append(STATE, run, attempt, judged.withColumn("state_hash", F.sha2("state", 256)))
        results.append(STATEMENTS, run, attempt, judged)
        results.append(EMITTERS, run, attempt, emitters)
        rows = [
            {
                "change": each.change.value,
                **{name: each.finding[name] for name in ("finding_id", "rule_id", "severity", "subject")},
                "detail": canonical(each.finding),
            }
            for each in outcomes
        ]
        results.append_rows(FINDINGS, run, attempt, rows)
        results.append_rows(OUTBOX, run, attempt, pages(outcomes))

    def _row(self, cut: Cut, summary: RunSummary, attempt: str, began_ms: int) -> dict[str, Any]:
        counts = {
            "events": summary.events,
            "logs": summary.logs,
            "refolded": summary.refolded,
            "verdicts": dict(summary.verdicts),
            "changes": dict(summary.changes),
        }
        return {
            "run": cut.run,
            "attempt": attempt,
            "as_of_ms": cut.as_of_ms,
            "cut": cut.as_json(),
            "rules_hash": rule_set_hash(),
            "terms": canonical(asdict(self._means.terms)),
            "content_hash": summary.content_hash,
            "gate": "{}",
            "counts": canonical(counts),
            "verdict": summary.verdict.value,
            "began_ms": began_ms,
            "ended_ms": self._means.now_ms(),
            "seawall_version": self._means.version,
        }


def _worst(verdicts: Mapping[str, int], found: list[dict[str, Any]]) -> Verdict:
    """Of all logs; where something is wrong with the evidence itself, no better than what cannot be told."""
    order = list(Verdict)
    worst = max((Verdict(each) for each in verdicts), key=order.index, default=Verdict.INDETERMINATE)
    is_doubtful = any(each["rule_id"].startswith("AUD-") and each["status"] == "open" for each in found)
    return max(worst, Verdict.INDETERMINATE, key=order.index) if is_doubtful else worst


def _silent(emitters: DataFrame) -> tuple[Silent, ...]:
    rows = emitters.where("is_silent").select(*EMITTER, "watches_disks").collect()
    found = (
        Silent(
            cluster_id=row["cluster_id"],
            name=f"{row['broker_id']}/{row['component']}",
            broker_id=row["broker_id"],
            watches_disks=row["watches_disks"],
        )
        for row in rows
    )
    return tuple(sorted(found, key=lambda each: (each.cluster_id, each.name)))


def _retired(events: DataFrame) -> frozenset[tuple[str, int, str]]:
    """Cluster, broker and component of each emitter that somebody said to be no more."""
    rows = bare(events.where(F.col("kind") == EmitterRetired.kind)).collect()
    said = [(row["cluster_id"], told_of(row.asDict()).event) for row in rows]
    return frozenset(
        (cluster_id, event.broker_id, event.component)
        for cluster_id, event in said
        if isinstance(event, EmitterRetired)
    )


def _gaps(emitters: DataFrame, column: str, logs: DataFrame) -> DataFrame:
    """What never came, told to the logs that may miss it."""
    rows = emitters.select(F.inline(F.from_json(column, _GAPS)))
    told = told_to(rows, logs)
    return told.select(*[F.col(f"log_{name}") for name in (*KEY, "topic")], *COLUMNS, "body")
