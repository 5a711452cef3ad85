"""A run that ends half-way: readers see the run before as if nothing had happened, and it is run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.alerts.outbox.spark import Finished
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.spark import AuditRun, Means
from rules.machine import Terms
from tests.audit_engine.run.evidence import NOW_MS, Evidence
from tests.audit_engine.run.test_run import beats
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import LOG, TOPIC, fixture


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
