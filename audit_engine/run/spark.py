"""One run of the audit over all logs.

    slice    what the table has since the run before (`cut`)
    listen   each emitter by itself: what of it never came, and who is silent (`one_emitter`)
    gate     what can be expected of any slice; where it is not so, logs are in doubt (`gate`)
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
from pathlib import Path
from typing import Any, NamedTuple

from delta.tables import DeltaTable
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.cut import Cut, Reach, next_cut
from audit_engine.run.doubts.spark import gaps, retired_emitters, silent, unmet
from audit_engine.run.errors import AsOfAhead, NothingIngested
from audit_engine.run.evidence.spark import (
    KEY,
    distinct_logs,
    is_shared,
    keyed,
    of_logs,
    shared,
    since,
    since_offsets,
    told,
    told_to,
    until,
)
from audit_engine.run.fleet import standing
from audit_engine.run.gate import Expected, Past
from audit_engine.run.gate.spark import evaluate
from audit_engine.run.groups.spark import each_emitter, each_log
from audit_engine.run.one_log import Task, canonical
from audit_engine.run.outcomes import Outcome, changes, pages
from audit_engine.run.results.spark import Results
from audit_engine.tables.columns import EVENTS, QUARANTINE
from audit_engine.tables.results import EMITTERS, FINDINGS, OUTBOX, STATE, STATEMENTS
from audit_engine.tables.spark import EvidenceTable
from rules.catalogue import rule_set_hash
from rules.machine import Terms, decode
from rules.machine.fleet import blasts
from rules.machine.verdict import Verdict


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
    has_gate: bool = True
    docs: Path | None = None  # where the gate keeps its pages
    at: Callable[[str], None] = field(default=lambda _: None)


class AuditRun:
    """Runs over the tables under `root`, one at a time."""

    def __init__(self, spark: SparkSession, root: str, means: Means) -> None:
        self._spark = spark
        self._root = root
        self._means = means
        self._results = Results(spark, root)

    def next(self, as_of_ms: int) -> RunSummary:
        """Everything since the run before. AsOfAhead, AsOfBeforeLastRun, NothingIngested, RunOvertaken."""
        if as_of_ms > self._means.now_ms():
            raise AsOfAhead(as_of_ms=as_of_ms)
        last = self._results.last_run()
        before = None if last is None else self._results.cut(last)
        cut = next_cut(before, self._reach(before), as_of_ms)
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

    def _reach(self, before: Cut | None) -> Reach:
        path = f"{self._root.rstrip('/')}/{EVENTS}"
        if not DeltaTable.isDeltaTable(self._spark, path):
            raise NothingIngested(table=path)
        table = EvidenceTable(self._spark, self._root, EVENTS)
        standing = table.standing()
        if not standing.next_offsets:
            raise NothingIngested(table=path)
        replayed = {} if before is None else table.replayed_after(before.commit)
        return Reach(offsets=standing.next_offsets, commit=standing.number, replayed=replayed)

    def _judge(self, cut: Cut, before: Mapping[str, Any] | None) -> tuple[dict[str, Any], RunSummary]:
        began_ms, attempt = self._means.now_ms(), uuid.uuid4().hex
        with _Kept() as kept:
            self._means.at("read")
            rows = kept(told(since(self._events(), cut)))
            seen = _Seen(*rows.agg(F.count(F.lit(1)), F.count_if(is_shared())).collect()[0])
            task = Task(terms=self._means.terms, from_ms=cut.since_ms or 0, as_of_ms=cut.as_of_ms)
            self._means.at("listen")
            known = self._of_before(EMITTERS, before)
            emitters = kept(each_emitter(rows, known, task, retired_emitters(rows)))
            self._means.at("gate")
            expected = self._gate(cut, rows, seen.events) if self._means.has_gate else ()
            task = replace(task, doubts=(*silent(emitters), *unmet(expected)))
            self._means.at("fold")
            judged, refolded = self._fold(cut, before, task, rows, seen, emitters, kept)
            self._means.at("merge")
            standing_before = self._results.standing(cut.run)
            found = _findings(judged, emitters, standing_before, cut.as_of_ms)
            outcomes = changes(standing_before, found)
            summary = _summary(cut, judged, found, outcomes, seen.events, refolded)
            self._means.at("commit")
            self._put_down(cut.run, attempt, judged, emitters, outcomes)
        self._means.at("finish")
        return self._row(cut, summary, expected, attempt, began_ms), summary

    def _events(self) -> DataFrame:
        return self._spark.read.format("delta").load(f"{self._root.rstrip('/')}/{EVENTS}")

    def _gate(self, cut: Cut, rows: DataFrame, events: int) -> tuple[Expected, ...]:
        """What is expected of the slice, and whether it is so."""
        quarantine = f"{self._root.rstrip('/')}/{QUARANTINE}"
        bad = 0
        if DeltaTable.isDeltaTable(self._spark, quarantine):
            kept_apart = self._spark.read.format("delta").load(quarantine)
            bad = since_offsets(until(kept_apart, cut.end_offsets), cut.begin_offsets).count()
        least = 1
        if cut.since_ms is not None:
            least = Past(rates=self._results.rates()).least((cut.as_of_ms - cut.since_ms) / 3_600_000)
        return evaluate(rows, events=events, least=least, quarantined=bad, docs=self._means.docs)

    def _fold(
        self,
        cut: Cut,
        before: Mapping[str, Any] | None,
        task: Task,
        rows: DataFrame,
        seen: _Seen,
        emitters: DataFrame,
        kept: _Kept,
    ) -> tuple[DataFrame, int]:
        """Every log that is carried or was heard of, and how many were judged anew for late evidence."""
        carried = self._of_before(STATE, before)
        logs = kept(distinct_logs(of_logs(rows), carried))
        first = kept(self._first_look(cut, carried, logs, task, rows, seen, emitters))
        late = first.where(F.col("late_ms").isNotNull()).select(*KEY, "topic", "late_ms")
        judged = first.where(F.col("late_ms").isNull())
        refolded = late.count()
        if refolded:
            self._means.at("refold")
            judged = kept(judged.unionByName(self._second_look(cut, task, late, emitters)))
        return judged, refolded

    def _first_look(
        self,
        cut: Cut,
        carried: DataFrame,
        logs: DataFrame,
        task: Task,
        rows: DataFrame,
        seen: _Seen,
        emitters: DataFrame,
    ) -> DataFrame:
        """Each log over what is carried of it."""
        said = keyed(of_logs(rows))
        if seen.shared and cut.previous is not None:
            said = said.unionByName(told_to(shared(rows), carried))
        new_logs = logs if cut.previous is None else logs.join(carried, list(KEY), "left_anti")
        if cut.previous is None or not new_logs.isEmpty():
            ever = rows if cut.previous is None else told(until(self._events(), cut.end_offsets))
            said = said.unionByName(told_to(shared(ever), new_logs))
        if not emitters.where(F.col("new_gaps") != "[]").isEmpty():
            said = said.unionByName(gaps(emitters, "new_gaps", logs))
        tasks = logs.join(carried.select(*KEY, "state"), list(KEY), "left").select(
            *KEY,
            "topic",
            F.col("state").alias("carried"),
            F.lit(None).cast("binary").alias("base"),
            F.lit(False).alias("is_again"),
        )
        return each_log(said, tasks, task)

    def _second_look(self, cut: Cut, task: Task, late: DataFrame, emitters: DataFrame) -> DataFrame:
        """Logs of which something was late: over the last state that has nothing of what comes after it."""
        events = told(until(self._events(), cut.end_offsets))
        earlier = self._results.earlier_states(cut.run).select(*KEY, "run", "state", "position_ms")
        bases = (
            late.join(earlier, list(KEY))
            .where(F.col("position_ms") < F.col("late_ms"))
            .groupBy(*KEY)
            .agg(F.max_by("state", "run").alias("base"))
        )
        own = of_logs(events).join(late.select(*KEY), list(KEY), "left_semi")
        said = keyed(own).unionByName(told_to(shared(events), late)).unionByName(gaps(emitters, "gaps", late))
        tasks = late.join(bases, list(KEY), "left").select(
            *KEY, "topic", F.lit(None).cast("binary").alias("carried"), "base", F.lit(True).alias("is_again")
        )
        return each_log(said, tasks, task)

    def _of_before(self, name: str, before: Mapping[str, Any] | None) -> DataFrame:
        if before is None:
            return self._spark.createDataFrame([], self._results.schema(name))
        return self._results.of(name, before)

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

    def _row(
        self,
        cut: Cut,
        summary: RunSummary,
        expected: tuple[Expected, ...],
        attempt: str,
        began_ms: int,
    ) -> dict[str, Any]:
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
            "gate": canonical([{"name": e.name, "is_met": e.is_met, "detail": e.detail} for e in expected]),
            "counts": canonical(counts),
            "verdict": summary.verdict.value,
            "began_ms": began_ms,
            "ended_ms": self._means.now_ms(),
            "seawall_version": self._means.version,
        }


class _Kept:
    """Frames that are looked at more than once, held until the run ends. A lost one is made again."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def __enter__(self) -> _Kept:
        return self

    def __call__(self, frame: DataFrame) -> DataFrame:
        self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._frames[-1]

    def __exit__(self, *_: object) -> None:
        for frame in reversed(self._frames):
            frame.unpersist()


class _Seen(NamedTuple):
    """How many events the slice has, and how many of them are about more than one log."""

    events: int
    shared: int


def _findings(
    judged: DataFrame, emitters: DataFrame, before: list[dict[str, Any]], as_of_ms: int
) -> list[dict[str, Any]]:
    """Of all logs, of emitters and of what only many logs show together."""
    told_of_logs = judged.where(F.col("findings") != "[]").select("findings").collect()
    told_of_emitters = emitters.where(F.col("findings") != "[]").select("findings").collect()
    states = judged.where("has_blast").select("state").collect()
    return standing(
        [each for row in told_of_logs for each in json.loads(row["findings"])],
        blasts(decode(bytes(row["state"])) for row in states),
        [each for row in told_of_emitters for each in json.loads(row["findings"])],
        before,
        as_of_ms=as_of_ms,
    )


def _summary(
    cut: Cut,
    judged: DataFrame,
    found: list[dict[str, Any]],
    outcomes: list[Outcome],
    events: int,
    refolded: int,
) -> RunSummary:
    stated = judged.select("verdict", "statement_hash").collect()
    verdicts = dict(Counter(row["verdict"] for row in stated))
    hashes = sorted(row["statement_hash"] for row in stated)
    content = canonical([hashes, sorted(found, key=lambda each: str(each["finding_id"]))])
    return RunSummary(
        run=cut.run,
        as_of_ms=cut.as_of_ms,
        verdict=_worst(verdicts, found),
        events=events,
        logs=len(stated),
        refolded=refolded,
        verdicts=verdicts,
        changes=dict(Counter(each.change.value for each in outcomes)),
        content_hash=hashlib.sha256(content.encode()).hexdigest(),
    )


def _worst(verdicts: Mapping[str, int], found: list[dict[str, Any]]) -> Verdict:
    """Of all logs; where something is wrong with the evidence itself, no better than what cannot be told."""
    order = list(Verdict)
    worst = max((Verdict(each) for each in verdicts), key=order.index, default=Verdict.INDETERMINATE)
    is_doubtful = any(each["rule_id"].startswith("AUD-") and each["status"] == "open" for each in found)
    return max(worst, Verdict.INDETERMINATE, key=order.index) if is_doubtful else worst
