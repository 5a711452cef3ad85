"""The auditor judged: its tables' history, its cadence, what came too late, and a fault that it must find."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.auditor import CADENCE_MS, Commit, Tardy, blind, out_of_cadence, tampered, tardy
from audit_engine.run.canary import CLUSTER, FAULTS, TOPIC, canary, carried
from audit_engine.run.one_log import Judged, Line, Task, canonical
from audit_engine.run.one_log import judge as judge_log
from audit_engine.run.outcomes import told
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.screen import excuse
from audit_engine.run.told import COLUMNS, row_of, told_of
from audit_engine.tables.marks import Mark, written
from audit_engine.tables.results import FINDINGS, STATE, STATEMENTS
from rules.machine import Terms, fold, newborn
from rules.machine.told import has_own_clock
from rules.machine.verdict import Verdict, judge
from tests.audit_engine.run.evidence import Evidence
from tests.rules.machine.histories import fixture

AS_OF_MS = 1_900_000_000_000
MARK = written(Mark(token="t", number=1, topic="a", topic_id="i", ranges={}, next_offsets={}))
APPENDED = Commit(version=3, operation="WRITE", parameters={"mode": "Append"}, user_metadata=MARK)


@pytest.mark.parametrize("run", range(len(FAULTS)))
def test_each_fault_of_the_canary_is_found_and_nothing_else(run: int) -> None:
    """By the machine, to the last range, at once and over what is carried; a run later it is another fault in
    another log. Before it happens, the log is one that the screen excuses."""
    now = canary(run, AS_OF_MS)
    task = Task(terms=Terms(), from_ms=0, as_of_ms=AS_OF_MS)
    left = carried(now, task)
    said = (*now.before, *now.since)
    at_once = fold(newborn(now.log, TOPIC), said, Terms(), as_of_ms=AS_OF_MS)
    found = [told(each) for each in judge(at_once, Terms(), from_ms=0).findings]
    facts = [each for each in now.since if has_own_clock(each)]
    later = judge_log(now.log, TOPIC, Line(facts=facts, said=now.since), left.state, task)
    own = [each for each in now.since if each.log_seq is not None]

    assert list(blind(now, found)) == []
    assert isinstance(later, Judged)
    assert json.loads(later.findings) == found
    assert left.calm is not None
    assert excuse(left.calm, [], as_of_ms=AS_OF_MS) is not None
    assert not own or excuse(left.calm, own, as_of_ms=AS_OF_MS) is None
    assert canary(run, AS_OF_MS) == now
    assert canary(run + 1, AS_OF_MS).log != now.log


def test_a_judge_that_finds_too_little_or_too_much_is_blind() -> None:
    """Or that does not judge the canary at all; one finding, whichever it is."""
    now = canary(0, AS_OF_MS)
    other: dict[str, Any] = {"rule_id": "SEG-02", "severity": "C", "ranges": [[1, 2]], "status": "open"}

    [nothing] = blind(now, [])
    [both] = blind(now, [other])
    [unjudged] = blind(now, None)

    assert "not found START-02 C [0, 3000)" in nothing["note"]
    assert "found and not there SEG-02 C [1, 2)" in both["note"]
    assert len({each["finding_id"] for each in (nothing, both, unjudged)}) == 1
    assert (nothing["rule_id"], nothing["severity"]) == ("AUD-07", "C")


def test_an_event_put_down_as_a_row_is_read_back_as_it_was() -> None:
    """What the canary says takes the way of what is ingested."""
    now = canary(2, AS_OF_MS)
    for each in (*now.before, *now.since):
        row = row_of(each)
        assert set(row) == {*COLUMNS, "body"}
        assert told_of(row) == each
        assert canonical(row) == canonical(row_of(told_of(row)))


@pytest.mark.parametrize(
    "commit",
    [
        APPENDED,
        replace(APPENDED, operation="CREATE TABLE", user_metadata=None),
        replace(APPENDED, operation="OPTIMIZE"),
        replace(APPENDED, operation="VACUUM END"),
        replace(
            APPENDED, operation="SET TBLPROPERTIES", parameters={"properties": '{"delta.appendOnly":"true"}'}
        ),
    ],
)
def test_what_seawall_does_to_its_tables_is_no_tampering(commit: Commit) -> None:
    """Appending by an ingest, and upkeep."""
    assert list(tampered("audit_events", [commit])) == []


@pytest.mark.parametrize(
    ("commit", "why"),
    [
        (replace(APPENDED, operation="DELETE"), "DELETE, which Seawall never does"),
        (replace(APPENDED, operation="RESTORE"), "RESTORE"),
        (replace(APPENDED, parameters={"mode": "Overwrite"}), "replaced rows (Overwrite)"),
        (replace(APPENDED, user_metadata=None), "no ingest of Seawall added"),
        (
            replace(
                APPENDED,
                operation="SET TBLPROPERTIES",
                parameters={"properties": '{"delta.appendOnly":"false"}'},
            ),
            "delta.appendOnly was turned off",
        ),
        (
            replace(
                APPENDED, operation="UNSET TBLPROPERTIES", parameters={"properties": '["delta.appendOnly"]'}
            ),
            "unset: delta.appendOnly",
        ),
        (
            replace(APPENDED, operation="SET TBLPROPERTIES", parameters={"properties": '{"x":"1"}'}),
            "properties were set: x",
        ),
    ],
)
def test_any_other_commit_is_named(commit: Commit, why: str) -> None:
    """AUD-04 by its version; the same commit seen again is the same finding."""
    [found] = tampered("audit_events", [commit])
    [again] = tampered("audit_events", [commit])

    assert (found["rule_id"], found["anchor"]) == ("AUD-04", "3")
    assert why in found["note"]
    assert again["finding_id"] == found["finding_id"]


def test_a_run_that_came_late_or_judged_fewer_logs_is_said() -> None:
    """AUD-05; a first run, and one that judged as many as the last, is in order."""
    in_order = out_of_cadence(as_of_ms=CADENCE_MS, since_ms=0, logs=2, logs_before=2)
    late, fewer = out_of_cadence(as_of_ms=CADENCE_MS + 1, since_ms=0, logs=1, logs_before=2)

    assert list(in_order) == []
    assert list(out_of_cadence(as_of_ms=AS_OF_MS, since_ms=None, logs=0, logs_before=None)) == []
    assert (late["anchor"], fewer["anchor"]) == ("cadence", "logs")
    assert "1 logs were judged, and 2 by the run before" in fewer["note"]


def test_what_comes_behind_the_horizon_is_counted() -> None:
    """AUD-06, by emitter and the first number that came so late."""
    [found] = tardy([Tardy(cluster_id="c1", emitter="1/agent/7", first_seq=41, events=3)], Terms())

    assert (found["rule_id"], found["subject"], found["anchor"]) == ("AUD-06", "c1/emitter 1/agent/7", "41")
    assert "3 events came more than 4 days after" in found["note"]


@pytest.mark.long  # three runs
def test_a_table_that_somebody_changed_makes_no_run_believable(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """appendOnly is turned off and on between two runs: AUD-04, and INDETERMINATE from then on. A run
    whose screen excuses too much finds no canary, says so, and pages; the next that sees resolves it."""
    h = fixture("none")
    evidence = Evidence(spark, tmp_path)
    evidence.add(h.told)
    first = evidence.audit().next(h.now_ms)
    table = f"delta.`{evidence.root}/audit_events`"
    for value in ("false", "true"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.appendOnly' = '{value}')")
    monkeypatch.setattr("audit_engine.run.screen.spark._agrees", lambda *_: F.lit(True))
    second = evidence.audit().next(h.now_ms)
    blind_now = {each["rule_id"] for each in _open(spark, evidence)}
    monkeypatch.undo()
    third = evidence.audit().next(h.now_ms)

    assert first.changes.get("opened", 0) == len(
        [e for e in _open(spark, evidence) if e["rule_id"] == "AUD-03"]
    )
    assert {"AUD-04", "AUD-07"} <= blind_now
    assert (second.verdict, third.verdict) == (Verdict.INDETERMINATE, Verdict.INDETERMINATE)
    [tampering] = [each for each in _open(spark, evidence) if each["rule_id"] == "AUD-04"]
    assert "appendOnly was turned off" in tampering["note"]
    assert third.changes == {"resolved": 1}
    for name in (STATE, STATEMENTS, FINDINGS):
        rows = spark.read.format("delta").load(f"{evidence.root}/{name}")
        column = "subject" if name == FINDINGS else "cluster_id"
        assert rows.where(F.col(column).startswith(CLUSTER) & (F.col(column) != CLUSTER)).count() == 0
        assert name == FINDINGS or rows.where(F.col(column) == CLUSTER).count() == 0


def _open(spark: SparkSession, evidence: Evidence) -> list[dict[str, Any]]:
    return [each for each in Verdicts(spark, evidence.root).findings() if each["status"] == "open"]
