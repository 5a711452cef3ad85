"""The past judged anew: the same as the runs judged, by other rules otherwise, and explained to the event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.history.difference import difference, in_period
from audit_engine.run.history.spark import History
from audit_engine.run.reading.spark import Verdicts
from rules.ruleset import read_rule_set
from tests.audit_engine.run.evidence import Evidence
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import DAY_MS, HOUR_MS, T0_MS


def _told(finding_id: str, **own: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "finding_id": finding_id,
        "status": "open",
        "severity": "C",
        "ranges": [[0, 1]],
        "suppressed_by": None,
        "opened_ms": 5,
        "ended_ms": None,
    }
    return told | own


def test_two_judgements_differ_by_what_only_one_found_or_weighs_otherwise() -> None:
    """What is withdrawn counts as not found."""
    here = [_told("a"), _told("b", severity="W"), _told("c")]
    there = [_told("b"), _told("c"), _told("d"), _told("a", status="withdrawn")]

    found = difference(here, there)

    assert [each["finding_id"] for each in found.only_here] == ["a"]
    assert [each["finding_id"] for each in found.only_there] == ["d"]
    assert [each["finding_id"] for each, _ in found.otherwise] == ["b"]
    assert difference(here, here).is_none


def test_a_period_has_what_stood_in_it() -> None:
    """Not what ended before or opened after."""
    listed = [_told("before", ended_ms=9), _told("in"), _told("after", opened_ms=21)]

    assert [each["finding_id"] for each in in_period(listed, 10, 20)] == ["in"]


@pytest.mark.long  # four runs
def test_the_past_comes_to_the_same_and_by_other_rules_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs, then the whole once more: the findings that stand. As of before the fault: none. A rule set
    without START-02 lacks it and nothing else. A finding names its events, each at its place in Kafka."""
    h = trimmed_prefix("none")
    evidence = Evidence(spark, tmp_path)
    evidence.add(h.told)
    evidence.audit().next(T0_MS + HOUR_MS // 60)
    evidence.audit().next(h.now_ms)
    live = [
        each for each in Verdicts(spark, evidence.root).findings() if not each["rule_id"].startswith("AUD")
    ]
    history = History(spark, evidence.root)
    terms = history.live_terms()

    whole = history.replay(terms, from_ms=0, to_ms=h.now_ms)
    before = history.replay(terms, from_ms=0, to_ms=T0_MS - HOUR_MS)
    trial = read_rule_set({"rules": {"START-02": {"disabled": True}}}).on(terms)
    shadow = history.replay(trial, from_ms=0, to_ms=h.now_ms)
    [root] = [each for each in live if each["rule_id"] == "START-02"]
    explained, places = history.explain(root)

    of_logs = [each for each in whole.findings if not each["rule_id"].startswith("AUD")]
    assert difference(of_logs, live).is_none
    assert [each for each in before.findings if not each["rule_id"].startswith("AUD")] == []
    changed = difference(shadow.findings, whole.findings)
    assert [each["rule_id"] for each in changed.only_there] == ["START-02"]
    assert changed.only_here == ()
    assert explained.is_derived
    assert all(places[each.event_id] for each in explained.cited)
    assert Verdicts(spark, evidence.root).runs(9)[0]["run"] == 2
    assert h.now_ms - T0_MS < DAY_MS
