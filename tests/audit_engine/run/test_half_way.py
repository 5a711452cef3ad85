"""A run that ends half-way: readers see the run before as if nothing had happened, and it is run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.alerts.outbox.spark import Finished
from audit_engine.run.errors import RunOvertaken
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.results.spark import Results
from audit_engine.run.spark import AuditRun, Means
from audit_engine.tables.results import EMITTERS, FINDINGS, OUTBOX, RUNS, STATE, STATEMENTS
from rules.machine import Terms
from tests.audit_engine.run.evidence import NOW_MS, Evidence
from tests.audit_engine.run.test_run import beats
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import LOG, MINUTE_MS, TOPIC, fixture

STEPS = ("read", "listen", "gate", "fold", "merge", "commit", "finish")
WRITES = (STATE, EMITTERS, STATEMENTS, FINDINGS, OUTBOX)


class Stopped(Exception):
    """The run ends here."""


def stop_at(wanted: str) -> Callable[[str], None]:
    def at(step: str) -> None:
        if step == wanted:
            raise Stopped(step)

    return at


def auditor(spark: SparkSession, evidence: Evidence, at: Callable[[str], None] = lambda _: None) -> AuditRun:
    means = Means(terms=Terms(), now_ms=lambda: NOW_MS, version="test", has_gate=False, at=at)
    return AuditRun(spark, evidence.root, means)


def seen(spark: SparkSession, evidence: Evidence) -> Any:
    """All that a reader is told: of runs, findings, statements and pages."""
    verdicts = Verdicts(spark, evidence.root)
    pages = Finished(spark, evidence.root).since({})
    return verdicts.runs(9), verdicts.findings(), verdicts.statements(TOPIC, None), pages


def refusing(wanted: str) -> Callable[..., None]:
    """The store takes nothing more when this table is written to; what others wrote by then stays."""
    append = Results.append

    def refused(self: Results, name: str, *arguments: Any) -> None:
        if name == wanted:
            raise Stopped(name)
        append(self, name, *arguments)

    return refused


def prepared(spark: SparkSession, folder: Path, *, mode: str = "none") -> tuple[Evidence, int]:
    """A run over a quiet log, and the evidence of a fault behind it; the moment as of which all is there."""
    h = trimmed_prefix(mode)
    quiet_ms = fixture(mode).now_ms
    said = beats(h.told, LOG.cluster_id, quiet_ms, h.now_ms)
    evidence = Evidence(spark, folder)
    evidence.add(each for each in said if each.observed_at_ms <= quiet_ms)
    auditor(spark, evidence).next(quiet_ms)
    evidence.add(each for each in said if each.observed_at_ms > quiet_ms)
    return evidence, h.now_ms


def test_a_run_that_dies_just_before_it_counts_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """All its rows are written, and its own is not: readers see the run before, and the next attempt is the
    run that finds the fault."""
    evidence, end_ms = prepared(spark, tmp_path)
    before = seen(spark, evidence)
    with pytest.raises(Stopped):
        auditor(spark, evidence, stop_at("finish")).next(end_ms)
    between = seen(spark, evidence)
    left = Verdicts(spark, evidence.root).unfinished()
    after = auditor(spark, evidence).next(end_ms)

    assert between == before
    assert left is not None
    assert (left.run, after.run) == (2, 2)
    assert after.changes["opened"] >= 1
    assert Verdicts(spark, evidence.root).unfinished() is None


def rows_of(spark: SparkSession, evidence: Evidence, run: int) -> dict[str, list[str]]:
    """Every row that the run wrote in the attempt that counts, but for the attempt's name and the clock's."""
    [of_run] = spark.read.format("delta").load(f"{evidence.root}/{RUNS}").where(f"run = {run}").collect()
    found = {RUNS: [str(of_run.asDict() | {"attempt": "", "began_ms": 0, "ended_ms": 0})]}
    for name in WRITES:
        rows = spark.read.format("delta").load(f"{evidence.root}/{name}")
        mine = rows.where(f"run = {run} AND attempt = '{of_run['attempt']}'").drop("attempt").collect()
        found[name] = sorted(str(row.asDict()) for row in mine)
    return found


@pytest.mark.long  # a dozen runs
@pytest.mark.timeout(3600)
def test_wherever_a_run_dies_it_leaves_nothing_half_written(spark: SparkSession, tmp_path: Path) -> None:
    """At each of its steps, and at each table it writes to; the attempt that comes to its end comes to what
    a run at once comes to, byte for byte."""
    evidence, end_ms = prepared(spark, tmp_path)
    before = seen(spark, evidence)
    for step in STEPS:
        with pytest.raises(Stopped):
            auditor(spark, evidence, stop_at(step)).next(end_ms)
        assert seen(spark, evidence) == before, step
    for name in WRITES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Results, "append", refusing(name))
            with pytest.raises(Stopped):
                auditor(spark, evidence).next(end_ms)
        assert seen(spark, evidence) == before, name
    after = auditor(spark, evidence).next(end_ms)
    written = rows_of(spark, evidence, 2)
    again = auditor(spark, evidence).again(after.run)
    whole, _ = prepared(spark, tmp_path / "whole")
    at_once = auditor(spark, whole).next(end_ms)

    assert (after.run, after.changes) == (2, at_once.changes)
    assert after.content_hash == again.content_hash == at_once.content_hash
    assert all(written[name] for name in WRITES)
    assert rows_of(spark, evidence, 2) == written, "run again"
    assert rows_of(spark, whole, 2) == written, "run at once"


@pytest.mark.long  # three runs
@pytest.mark.timeout(1800)
def test_of_two_runs_at_once_the_second_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Both judge the same; one finishes while the other is at its last step. The other says so, its rows are
    nobody's, and the run after both goes on from the one that counts."""
    evidence, end_ms = prepared(spark, tmp_path)
    quicker: list[Any] = []

    def overtaken(step: str) -> None:
        if step == "finish":
            quicker.append(auditor(spark, evidence).next(end_ms))

    with pytest.raises(RunOvertaken):
        auditor(spark, evidence, overtaken).next(end_ms)
    one = seen(spark, evidence)
    later = auditor(spark, evidence).next(end_ms + MINUTE_MS)

    rows = spark.read.format("delta").load(f"{evidence.root}/{RUNS}").where("run = 2").collect()
    assert [row["content_hash"] for row in rows] == [quicker[0].content_hash]
    assert [run["run"] for run in one[0]] == [2, 1]
    written = spark.read.format("delta").load(f"{evidence.root}/{STATEMENTS}").where("run = 2")
    assert written.select("attempt").distinct().count() == 2
    assert (later.run, later.changes) == (3, {})
