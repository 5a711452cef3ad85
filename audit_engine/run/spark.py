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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from delta.tables import DeltaTable
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.auditor.spark import Auditor, versions
from audit_engine.run.cut import Cut, Reach, next_cut
from audit_engine.run.decisions import suppressions
from audit_engine.run.decisions.spark import Decisions
from audit_engine.run.doubts.spark import HEARD, retired_emitters, silent, unmet
from audit_engine.run.errors import AsOfAhead, NothingIngested
from audit_engine.run.evidence.spark import (
    is_shared,
    since,
    since_offsets,
    told,
    until,
)
from audit_engine.run.fleet import standing
from audit_engine.run.folding.spark import Folded, Folding, Slice
from audit_engine.run.gate import Expected, Past
from audit_engine.run.gate.spark import evaluate
from audit_engine.run.groups.spark import each_emitter
from audit_engine.run.one_log import Task, canonical
from audit_engine.run.outcomes import Outcome, changes, pages
from audit_engine.run.results.spark import Results
from audit_engine.tables.columns import EVENTS, QUARANTINE
from audit_engine.tables.results import EMITTERS, FINDINGS, OUTBOX, STATE, STATEMENTS
from audit_engine.tables.spark import EvidenceTable
from rules.catalogue import rule_set_hash
from rules.events import EmitterRetired
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
    open_findings: int  # that nobody answers for
    suppressed_findings: int
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a run needs beside the tables. `at` is told each step, for progress and for tests."""

    terms: Terms
    now_ms: Callable[[], int]
    version: str
    has_gate: bool = True
    has_screen: bool = True
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
        return Reach(
            offsets=standing.next_offsets,
            commit=standing.number,
            replayed=replayed,
            decisions=Decisions(self._spark, self._root).last(),
            versions=versions(self._spark, self._root),
        )

    def _judge(self, cut: Cut, before: Mapping[str, Any] | None) -> tuple[dict[str, Any], RunSummary]:
        began_ms, attempt = self._means.now_ms(), uuid.uuid4().hex
        with _Kept() as kept:
            self._means.at("read")
            rows = kept(told(since(self._events(), cut)))
            seen = _seen(rows)
            task = Task(terms=self._terms(cut), from_ms=cut.since_ms or 0, as_of_ms=cut.as_of_ms)
            self._means.at("listen")
            known = self._of_before(EMITTERS, before)
            retired = retired_emitters(rows) if seen.retirements else frozenset()
            emitters = kept(each_emitter(rows, known, task, retired))
            heard = emitters.select(*HEARD).collect()
            self._means.at("gate")
            expected = self._gate(cut, rows, seen.events) if self._means.has_gate else ()
            task = replace(task, doubts=(*silent(heard), *unmet(expected)))
            self._means.at("fold")
            folding = Folding(self._results, self._events, kept, self._means.at)
            slice_ = Slice(
                cut=cut,
                before=before,
                task=task,
                rows=rows,
                shared=bool(seen.shared),
                emitters=emitters,
                has_new_gaps=any(each["new_gaps"] != "[]" for each in heard),
                may_excuse=self._may_excuse(before, task),
            )
            folded = folding.fold(slice_)
            said = folded.said
            self._means.at("merge")
            standing_before = self._results.standing(cut.run)
            own = Auditor(self._spark, self._root, cut, before).findings(rows, len(said), task)
            found = _findings(said, heard, own, standing_before, task)
            outcomes = changes(standing_before, found)
            summary = _summary(cut, said, found, outcomes, seen.events)
            self._means.at("commit")
            self._put_down(cut.run, attempt, folded, emitters, outcomes)
        self._means.at("finish")
        return self._row(cut, summary, task.terms, expected, attempt, began_ms), summary

    def _terms(self, cut: Cut) -> Terms:
        """With what people let be: of the decisions, those that were there when the run was cut."""
        decided = Decisions(self._spark, self._root).all(cut.decisions) if cut.decisions else []
        said = suppressions(decided, cut.as_of_ms)
        return replace(self._means.terms, suppressions=(*self._means.terms.suppressions, *said))

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

    def _may_excuse(self, before: Mapping[str, Any] | None, task: Task) -> bool:
        """What is carried of calm logs was found by these very rules and terms."""
        if before is None or not self._means.has_screen:
            return False
        found_by = (before["rules_hash"], before["terms"], before["seawall_version"])
        return found_by == (rule_set_hash(), canonical(asdict(task.terms)), self._means.version)

    def _of_before(self, name: str, before: Mapping[str, Any] | None) -> DataFrame:
        return self._results.nothing(name) if before is None else self._results.of(name, before)

    def _put_down(
        self, run: int, attempt: str, folded: Folded, emitters: DataFrame, outcomes: list[Outcome]
    ) -> None:
        """At once, but what `judged` and `emitters` were made of: written to, both would be made again."""
        results = self._results
        rows = [
            {
                "change": each.change.value,
                **{name: each.finding[name] for name in ("finding_id", "rule_id", "severity", "subject")},
                "detail": canonical(each.finding),
            }
            for each in outcomes
        ]
        states = folded.judged.withColumn("state_hash", F.sha2("state", 256))

        def carried_on() -> None:
            results.append(STATE, run, attempt, states)
            results.append(EMITTERS, run, attempt, emitters)

        def for_people() -> None:
            results.append(STATEMENTS, run, attempt, folded.stated)
            results.append_rows(FINDINGS, run, attempt, rows)
            results.append_rows(OUTBOX, run, attempt, pages(outcomes))

        with ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(for_people), pool.submit(carried_on)]:
                each.result()

    def _row(
        self,
        cut: Cut,
        summary: RunSummary,
        terms: Terms,
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
            "open_findings": summary.open_findings,
            "suppressed_findings": summary.suppressed_findings,
        }
        return {
            "run": cut.run,
            "attempt": attempt,
            "as_of_ms": cut.as_of_ms,
            "cut": cut.as_json(),
            "rules_hash": rule_set_hash(),
            "terms": canonical(asdict(terms)),
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
    retirements: int


def _seen(rows: DataFrame) -> _Seen:
    is_retirement = F.col("kind") == EmitterRetired.kind
    return _Seen(
        *rows.agg(F.count(F.lit(1)), F.count_if(is_shared()), F.count_if(is_retirement)).collect()[0]
    )


def _findings(
    said: list[Row],
    heard: list[Row],
    of_auditor: list[dict[str, Any]],
    before: list[dict[str, Any]],
    task: Task,
) -> list[dict[str, Any]]:
    """Of all logs, of emitters and of what only many logs show together."""
    return standing(
        [each for row in said for each in json.loads(row["findings"])],
        blasts(decode(bytes(row["state"])) for row in said if row["state"] is not None),
        [*(each for row in heard for each in json.loads(row["findings"])), *of_auditor],
        before,
        as_of_ms=task.as_of_ms,
        terms=task.terms,
    )


def _summary(
    cut: Cut,
    said: list[Row],
    found: list[dict[str, Any]],
    outcomes: list[Outcome],
    events: int,
) -> RunSummary:
    verdicts = dict(Counter(row["verdict"] for row in said))
    hashes = sorted(row["statement_hash"] for row in said)
    still_open = [each for each in found if each["status"] == "open"]
    suppressed = sum(each["suppressed_by"] is not None for each in still_open)
    content = canonical([hashes, sorted(found, key=lambda each: str(each["finding_id"]))])
    return RunSummary(
        run=cut.run,
        as_of_ms=cut.as_of_ms,
        verdict=_worst(verdicts, found),
        events=events,
        logs=len(said),
        refolded=sum(each["is_again"] for each in said),
        verdicts=verdicts,
        changes=dict(Counter(each.change.value for each in outcomes)),
        open_findings=len(still_open) - suppressed,
        suppressed_findings=suppressed,
        content_hash=hashlib.sha256(content.encode()).hexdigest(),
    )


# Of the evidence or the auditor: while one stands, no run is better than INDETERMINATE.
_DOUBTFUL = frozenset({"AUD-01", "AUD-02", "AUD-03", "AUD-04", "AUD-05", "AUD-07"})


def _worst(verdicts: Mapping[str, int], found: list[dict[str, Any]]) -> Verdict:
    """Of all logs; where something is wrong with the evidence itself, no better than what cannot be told."""
    order = list(Verdict)
    worst = max((Verdict(each) for each in verdicts), key=order.index, default=Verdict.INDETERMINATE)
    is_doubtful = any(
        each["rule_id"] in _DOUBTFUL and each["status"] == "open" and each["suppressed_by"] is None
        for each in found
    )
    return max(worst, Verdict.INDETERMINATE, key=order.index) if is_doubtful else worst
