"""One run of the audit over all logs.

    slice    what the table has since the run before (`cut`)
    digest   one pass over it: all that is asked of it before a log is folded (`digest`)
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
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.auditor import blind
from audit_engine.run.auditor.spark import Auditor, versions
from audit_engine.run.canary import Canary, canary
from audit_engine.run.canary.spark import Laid, found_of, laid
from audit_engine.run.cut import Cut, Reach, next_cut
from audit_engine.run.decisions import accepted_gaps, suppressions
from audit_engine.run.decisions.spark import Decisions
from audit_engine.run.digest.spark import digest, of_logs
from audit_engine.run.doubts.spark import silent, unmet
from audit_engine.run.errors import AsOfAhead, NothingIngested, StatesGone
from audit_engine.run.evidence.spark import since_offsets, until
from audit_engine.run.fleet import standing
from audit_engine.run.folding.spark import Carried, Folded, Folding, Missed, Slice
from audit_engine.run.gate import Expected, Past
from audit_engine.run.gate.spark import evaluate
from audit_engine.run.kept.spark import Kept
from audit_engine.run.listening.spark import Seen, heard
from audit_engine.run.one_log import Task, canonical
from audit_engine.run.outcomes import Outcome, changes, pages
from audit_engine.run.results.spark import Results
from audit_engine.run.sliced.spark import sliced
from audit_engine.tables.columns import EVENTS, QUARANTINE
from audit_engine.tables.results import EMITTERS, FINDINGS, OUTBOX, STATE, STATEMENTS
from audit_engine.tables.spark import EvidenceTable
from rules.catalogue import rule_set_hash
from rules.machine import Terms, decode
from rules.machine.fleet import blasts
from rules.machine.verdict import Verdict

ASIDE = 3  # threads, for what waits for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run came to. `excused`: logs that the screen stated; `verdicts` and `findings` count."""

    run: int
    as_of_ms: int
    verdict: Verdict
    events: int
    logs: int
    refolded: int
    excused: int
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
        """The same run once more: the same offsets as of the same moment. Raises NoSuchRun, StatesGone."""
        cut = self._results.cut(self._results.run_row(run))
        before = None if cut.previous is None else self._results.run_row(cut.previous)
        gone = 0 if before is None else self._results.states_gone(before)
        if gone:
            raise StatesGone(run=run, logs=gone)
        row, summary = self._judge(cut, before)
        self._results.finish_again(row)
        return summary

    def _reach(self, before: Cut | None) -> Reach:
        path = self._path(EVENTS)
        if not DeltaTable.isDeltaTable(self._spark, path):
            raise NothingIngested(table=path)
        table = EvidenceTable(self._spark, self._root, EVENTS)
        standing = table.standing()
        if not standing.next_offsets:
            raise NothingIngested(table=path)
        replayed = {} if before is None else table.replayed_after(before.commit, standing.number)
        return Reach(
            offsets=standing.next_offsets,
            commit=standing.number,
            replayed=replayed,
            decisions=Decisions(self._spark, self._root).last(),
            versions=versions(self._spark, self._root),
        )

    def _judge(self, cut: Cut, before: Mapping[str, Any] | None) -> tuple[dict[str, Any], RunSummary]:
        began_ms, attempt = self._means.now_ms(), uuid.uuid4().hex
        with Kept() as kept, ThreadPoolExecutor(ASIDE) as aside:
            self._means.at("read")
            decided = Decisions(self._spark, self._root).all(cut.decisions) if cut.decisions else []
            said = suppressions(decided, cut.as_of_ms)
            task = Task(
                # With what people let be: of the decisions, those that were there when the run was cut.
                terms=replace(self._means.terms, suppressions=(*self._means.terms.suppressions, *said)),
                from_ms=cut.since_ms or 0,
                as_of_ms=cut.as_of_ms,
                accepted=accepted_gaps(decided),
            )
            # What asks nothing of the slice is done while that is read.
            folding = Folding(self._results, self._events, kept, self._means.at)
            auditor = Auditor(self._spark, self._root, cut, before)
            injected = canary(cut.run, cut.as_of_ms)
            carried_asked = aside.submit(self._carried, folding, injected, task, cut, before, kept)
            known_asked = aside.submit(self._of_before, EMITTERS, before)
            standing_asked = aside.submit(self._results.standing, cut.run)
            tampering_asked = aside.submit(auditor.tampering)
            may_excuse = self._may_excuse(before, task)
            wanted = self._wanted(cut, before)
            read = sliced(self._spark, self._path(EVENTS), cut, wanted, kept, with_bodies=may_excuse)
            rows, slice_seen = read.rows, read.digested.seen
            canary_among, canary_logs, carried = carried_asked.result()
            slice_ = Slice(
                cut=cut,
                before=before,
                task=task,
                rows=rows,
                rows_of=read.rows_of,
                logs=read.digested.logs.unionByName(canary_logs),
                canary=canary_among,
                shared=bool(slice_seen.shared),
                may_excuse=may_excuse,
            )
            screen_asked = aside.submit(folding.screen, slice_, carried)
            self._means.at("listen")
            emitters, told_of_emitters = heard(rows, read.digested, known_asked.result(), task, kept)
            self._means.at("gate")
            expected = self._gate(cut, slice_seen) if self._means.has_gate else ()
            task = replace(task, doubts=(*silent(told_of_emitters), *unmet(expected)))
            self._means.at("fold")
            is_new = any(each["new_gaps"] != "[]" for each in told_of_emitters)
            folded = folding.fold(
                replace(slice_, task=task), screen_asked.result(), Missed(emitters=emitters, is_new=is_new)
            )
            self._means.at("merge")
            standing_before = standing_asked.result()
            logs = len(folded.said) + len(folded.excused)
            own = auditor.findings(rows, slice_seen.first_ms, logs, task.terms) + tampering_asked.result()
            own += blind(injected, found_of(folded.canary))
            found = _findings(folded.said, told_of_emitters, own, standing_before, task)
            outcomes = changes(standing_before, found)
            summary = _summary(cut, folded, found, outcomes, slice_seen.events)
            self._means.at("commit")
            self._put_down(cut.run, attempt, folded, emitters, outcomes)
        self._means.at("finish")
        row = self._row(cut, summary, task.terms, expected, attempt, began_ms)
        kept_on = {"left": slice_seen.left, "by_day": read.by_day}
        counts = json.loads(row["counts"]) | kept_on
        return row | {"counts": canonical(counts)}, summary

    def _carried(
        self,
        folding: Folding,
        injected: Canary,
        task: Task,
        cut: Cut,
        before: Mapping[str, Any] | None,
        kept: Kept,
    ) -> tuple[Laid, DataFrame, Carried]:
        """The canary among what the run before left, its log as a digest has logs, and all that was left."""
        among = laid(self._spark, self._results, injected, task, cut.previous)
        among = replace(among, rows=kept(among.rows))
        carried = folding.carried(before, among)
        return among, of_logs(digest(among.rows, cut.as_of_ms)), carried

    def _wanted(self, cut: Cut, before: Mapping[str, Any] | None) -> int | None:
        """How many rows the slice must have; None where that is not on record, and every day is opened."""
        left = 0 if before is None else json.loads(before["counts"]).get("left")
        after = -1 if before is None else self._results.cut(before).commit
        added = EvidenceTable(self._spark, self._root, EVENTS).rows_after(after, cut.commit)
        return None if left is None or added is None else left + added

    def _events(self) -> DataFrame:
        return self._spark.read.format("delta").load(self._path(EVENTS))

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _gate(self, cut: Cut, slice_seen: Seen) -> tuple[Expected, ...]:
        """What is expected of the slice, and whether it is so."""
        quarantine = self._path(QUARANTINE)
        bad = 0
        if DeltaTable.isDeltaTable(self._spark, quarantine):
            kept_apart = self._spark.read.format("delta").load(quarantine)
            bad = since_offsets(until(kept_apart, cut.end_offsets), cut.begin_offsets).count()
        least = 1
        if cut.since_ms is not None:
            least = Past(rates=self._results.rates()).least((cut.as_of_ms - cut.since_ms) / 3_600_000)
        return evaluate(self._spark, slice_seen, least=least, quarantined=bad, docs=self._means.docs)

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
            "excused": summary.excused,
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
    folded: Folded,
    found: list[dict[str, Any]],
    outcomes: list[Outcome],
    events: int,
) -> RunSummary:
    said, excused = folded.said, folded.excused
    verdicts = dict(Counter(row["verdict"] for row in said) + Counter({Verdict.PASS.value: len(excused)}))
    hashes = sorted([*excused, *(row["statement_hash"] for row in said)])
    still_open = [each for each in found if each["status"] == "open"]
    suppressed = sum(each["suppressed_by"] is not None for each in still_open)
    content = canonical([hashes, sorted(found, key=lambda each: str(each["finding_id"]))])
    return RunSummary(
        run=cut.run,
        as_of_ms=cut.as_of_ms,
        verdict=_worst(verdicts, found),
        events=events,
        logs=len(said) + len(excused),
        refolded=sum(each["is_again"] for each in said),
        excused=len(excused),
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
