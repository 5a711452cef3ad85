"""From real tables to the page: what runs left behind, read as it was at each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.report.incidents import incidents
from audit_engine.report.page import page
from audit_engine.report.spark import gather
from audit_engine.report.values import log_of
from audit_engine.run.errors import NoSuchRun
from rules.machine import Terms
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import ALL, CUT_MS, END_MS
from tests.rules.machine.histories import HOUR_MS

NAMES = ("fault 7 kip405", "fault 16 none", "untouched kip405")


def test_a_run_is_reported_from_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs over three logs: the second as it stands, the first as it was, and what changed between. A run
    that never was is refused; tables that are not there are no run, and are not made."""
    assert gather(spark, str(tmp_path / "none")) is None
    assert not (tmp_path / "none").exists()
    chosen = {each.name: each for each in ALL if each.name in NAMES}
    evidence = Evidence(spark, tmp_path)
    evidence.add([told for each in chosen.values() for told in each.said if told.observed_at_ms <= CUT_MS])
    evidence.audit(Terms(), has_gate=True).next(CUT_MS)
    evidence.add([told for each in chosen.values() for told in each.said if told.observed_at_ms > CUT_MS])
    summary = evidence.audit(Terms(), has_gate=True).next(END_MS)

    last, first = gather(spark, evidence.root), gather(spark, evidence.root, 1)

    assert last is not None
    assert first is not None
    assert (last.run["run"], len(last.runs), len(last.statements)) == (2, 2, 3)
    assert (first.run["run"], first.before, len(first.runs)) == (1, None, 1)
    assert last.before is not None
    assert set(last.before) == set(map(log_of, last.statements))
    assert {each["verdict"] for each in last.statements} >= {"PASS", "VIOLATION"}
    found = incidents(last.findings, last.changes)
    assert {each.root["rule_id"] for each in found} >= {"RET-03", "SEG-02"}
    assert all(log in last.states for each in found for log in each.logs)
    assert len(last.changes) == sum(summary.changes.values())
    assert all(each["opened_ms"] <= CUT_MS + HOUR_MS for each in first.findings)
    text = page(last)
    for each in found:
        assert each.root["finding_id"] in text
    assert text.count("<svg viewBox") >= 1
    assert "9,000 offsets with no known copy" in text
    assert text == page(gather(spark, evidence.root, 2) or last)
    with pytest.raises(NoSuchRun):
        gather(spark, evidence.root, 3)
    with pytest.raises(NoSuchRun):
        gather(spark, str(tmp_path / "none"), 1)
