"""What people decide: kept in order, taken into account by number, ended by time, closing nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.decisions import Decision, Sort, decision_of, latest, suppressions
from audit_engine.run.decisions.spark import Decisions
from audit_engine.run.errors import NoSuchFinding
from audit_engine.run.fleet import standing
from audit_engine.run.outcomes import Change, changes, pages
from audit_engine.run.reading.spark import Verdicts
from audit_engine.tables.results import OUTBOX
from rules.machine import Suppression, Terms
from rules.machine.verdict import Verdict
from tests.audit_engine.run.evidence import Evidence
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import DAY_MS, HOUR_MS

NOW_MS = 1_000_000
SEEN = Decision(
    sort=Sort.ACK,
    finding_id="f1",
    rule_id="RET-05",
    subject="s",
    owner="bob",
    reason="on it",
    decided_at_ms=1,
)
LET_BE = Decision(
    sort=Sort.SUPPRESS,
    finding_id="f1",
    rule_id="RET-05",
    subject="s",
    owner="bob",
    reason="known",
    decided_at_ms=1,
    expires_at_ms=NOW_MS,
)


def test_the_last_word_about_a_finding_counts_until_its_end() -> None:
    """Of each sort; what has ended by the run's moment is not among its terms."""
    longer = replace(LET_BE, expires_at_ms=NOW_MS + 9, number=2)
    decided = [longer, replace(LET_BE, number=1), replace(SEEN, number=3)]

    [counts] = suppressions(decided, NOW_MS)
    assert (counts.finding_id, counts.expires_at_ms) == ("f1", NOW_MS + 9)
    assert suppressions(decided, NOW_MS + 9) == ()
    assert latest(decided, Sort.ACK)["f1"].number == 3


@pytest.mark.parametrize(
    "wrong",
    [{"reason": " "}, {"owner": ""}, {"expires_at_ms": None}, {"expires_at_ms": 1}, {"sort": Sort.ACK}],
)
def test_a_suppression_has_an_owner_a_reason_and_an_end(wrong: dict[str, Any]) -> None:
    """And an acknowledgement has no end."""
    with pytest.raises(ValueError, match=r"needs|ends"):
        replace(LET_BE, **wrong)


def test_a_decision_is_read_back_as_it_was_written() -> None:
    """Its id follows from its words, not from when they were said."""
    assert decision_of(LET_BE.as_row()) == LET_BE
    assert replace(LET_BE, decided_at_ms=2, number=7).decision_id == LET_BE.decision_id
    assert replace(LET_BE, reason="other").decision_id != LET_BE.decision_id


def _finding(**own: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "finding_id": "f1",
        "status": "open",
        "severity": "C",
        "ranges": [],
        "incident": "f1",
        "suppressed_by": None,
        "recoverable_offsets": 0,
    }
    return told | own


def test_nobody_is_paged_for_what_somebody_answers_for() -> None:
    """Neither when it opens nor when it is let be; when the time is over, once."""
    let_be = _finding(suppressed_by="bob")

    assert pages(changes([], [let_be])) == []
    assert pages(changes([_finding()], [let_be])) == []
    assert [each.change for each in changes([_finding()], [let_be])] == [Change.CHANGED]
    assert pages(changes([let_be], [{**let_be, "status": "resolved"}])) == []
    assert len(pages(changes([let_be], [_finding()]))) == 1


def test_what_is_about_an_emitter_can_be_let_be_too() -> None:
    """And is not any more when its time is over, although it is carried."""
    about = {
        "finding_id": "f1",
        "rule_id": "AUD-01",
        "severity": "E",
        "subject": "c1/emitter 1/agent",
        "anchor": "7",
        "note": "",
    }
    said = Suppression(
        rule_id="AUD-01", topic_pattern="", owner="bob", reason="x", expires_at_ms=5, finding_id="f1"
    )
    terms = Terms(suppressions=(said,))

    [now] = standing([], [], [about], [], as_of_ms=4, terms=terms)
    [later] = standing([], [], [about], [now], as_of_ms=5, terms=terms)
    assert str(now["suppressed_by"]).startswith("bob, until")
    assert later["suppressed_by"] is None


def test_a_run_takes_what_was_decided_before_it(spark: SparkSession, tmp_path: Path) -> None:
    """Counted, unpaged, no PASS; judged again it comes to the same, whatever was decided since; nothing is
    said twice; when the time is over it pages again."""
    h = trimmed_prefix("none")
    evidence = Evidence(spark, tmp_path)
    evidence.add(h.told)
    first = evidence.audit().next(h.now_ms)
    verdicts = Verdicts(spark, evidence.root)
    root = next(each for each in verdicts.findings() if each["parent"] is None)
    decisions = Decisions(spark, evidence.root)
    until_ms = h.now_ms + DAY_MS
    for each in verdicts.findings():
        decided = replace(
            LET_BE, finding_id=each["finding_id"], decided_at_ms=h.now_ms, expires_at_ms=until_ms
        )
        kept = decisions.append(decided)
        assert decisions.append(replace(decided, decided_at_ms=h.now_ms + 1)) == kept

    second = evidence.audit().next(h.now_ms + HOUR_MS)
    decisions.append(replace(SEEN, finding_id=root["finding_id"], decided_at_ms=h.now_ms))
    again = evidence.audit().again(2)
    last = evidence.audit().next(until_ms)

    assert first.open_findings > 0
    assert (second.open_findings, second.suppressed_findings) == (0, first.open_findings)
    assert second.verdict is Verdict.VIOLATION
    assert again.content_hash == second.content_hash
    assert last.suppressed_findings == 0
    paged = spark.read.format("delta").load(f"{evidence.root}/{OUTBOX}").select("run").distinct().collect()
    assert sorted(row["run"] for row in paged) == [1, 3]
    [_, second_row, _] = verdicts.runs(3)
    assert len(second_row["terms"]["suppressions"]) == first.open_findings
    assert [each.number for each in verdicts.decisions()] == list(range(1, first.open_findings + 2))
    assert verdicts.finding(root["finding_id"][:10]) == verdicts.finding(root["finding_id"])
    with pytest.raises(NoSuchFinding):
        verdicts.finding("")
