"""A loss does not heal because a day passes: fault 1, quiet days, a restore."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.reading.spark import Verdicts
from audit_engine.tables.results import FINDINGS, OUTBOX
from rules.machine.verdict import Verdict
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats
from tests.rules.machine import acts
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import DAY_MS, HOUR_MS, LOG, MINUTE_MS, History

DAYS = 3


def put_back(h: History) -> None:
    """On each broker, what the fault took."""
    for broker in (1, 2, 3):
        acts.restores(h, 0, 3000, broker=broker)


@pytest.mark.long  # five runs
@pytest.mark.timeout(3600)
def test_a_loss_stays_open_over_quiet_days_pages_once_and_is_closed_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """VIOLATION each day, the same findings, one page for the incident and no other; restored: closed, once,
    and PASS."""
    h = trimmed_prefix("none")
    moments = [h.now_ms + day * DAY_MS for day in range(DAYS + 2)]
    h.now_ms = moments[-1] - HOUR_MS
    put_back(h)
    said = beats(h.told, LOG.cluster_id, *[each - MINUTE_MS for each in moments])
    evidence = Evidence(spark, tmp_path)
    verdicts = Verdicts(spark, evidence.root)
    runs, standing = [], []
    seen_ms = 0
    for at_ms in moments:
        evidence.add(each for each in said if seen_ms < each.observed_at_ms <= at_ms)
        seen_ms = at_ms
        runs.append(evidence.audit().next(at_ms))
        standing.append({each["finding_id"]: each["status"] for each in verdicts.findings()})

    fault, *quiet, restored = runs
    assert {each.verdict for each in (fault, *quiet)} == {Verdict.VIOLATION}
    assert all(each.changes == {} for each in quiet)
    assert "open" in standing[0].values()
    assert standing[1:-1] == [standing[0]] * DAYS
    outbox = spark.read.format("delta").load(f"{evidence.root}/{OUTBOX}").collect()
    paged = sorted((row["run"], row["incident"]) for row in outbox)
    roots = {each["incident"] for each in verdicts.findings() if each["rule_id"] == "START-02"}
    assert len(roots) == 1
    assert [run for run, _ in paged] in ([1], [1, restored.run])
    assert {incident for _, incident in paged} == roots
    assert (restored.verdict, restored.changes.get("restored")) == (Verdict.PASS, 1)
    changed = spark.read.format("delta").load(f"{evidence.root}/{FINDINGS}").where("rule_id = 'START-02'")
    assert [row["change"] for row in changed.orderBy("run").collect()] == ["opened", "restored"]
    assert evidence.audit().again(restored.run).content_hash == restored.content_hash
