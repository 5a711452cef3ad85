"""Runs over real tables: the same judgement as the machine's, whatever way the evidence took."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.audit_engine.run.evidence import Evidence
from tests.rules.machine.histories import kip405


def test_a_run_judges_as_the_machine_does(spark: SparkSession, tmp_path: Path) -> None:
    """An untouched log passes."""
    history = kip405()
    history.after(minutes=30)
    evidence = Evidence(spark, tmp_path)
    evidence.add(history.told)

    summary = evidence.audit().next(history.now_ms)

    assert summary.verdicts == {"PASS": 1}
