"""The outbox in Delta, as runs leave it: what counts of it, and nothing that no run committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.alerts.message import State
from audit_engine.alerts.news import LEADER
from audit_engine.alerts.outbox.spark import Finished
from audit_engine.alerts.threads import Standing, take
from audit_engine.run.one_log import canonical
from audit_engine.run.outcomes import changes, pages
from audit_engine.run.results.spark import Results
from audit_engine.tables.results import FINDINGS, OUTBOX, RESULTS, RUNS, STATE
from rules.identity import LogId
from rules.machine import encode, newborn
from tests.audit_engine.alerts.news import T0_MS, finding

LEADS = 3
GATE = '[{"name": "not empty", "is_met": true, "detail": ""}]'
FAILED_GATE = GATE.replace("true", "false")


def put_down(
    results: Results, run: int, attempt: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    """What a run says of findings, as `AuditRun` does."""
    outcomes = changes(before, after)
    rows = [
        {
            "change": each.change.value,
            **{name: each.finding[name] for name in ("finding_id", "rule_id", "severity", "subject")},
            "detail": canonical(each.finding),
        }
        for each in outcomes
    ]
    results.append_rows(FINDINGS, run, attempt, rows)
    results.append_rows(OUTBOX, run, attempt, pages(outcomes))


def carry(spark: SparkSession, results: Results, run: int, attempt: str, leader_id: int) -> None:
    """The state of a log, as a run that folded it carries it."""
    state = newborn(LogId("c1", "T1", 0), "orders")
    state.leader_id = leader_id
    names = "cluster_id string, topic_id string, partition int, topic string, state binary"
    frame = spark.createDataFrame([(*state.log, state.topic, encode(state))], names)
    unsaid = {each.name: F.lit(None) for each in RESULTS[STATE] if each.name not in frame.columns}
    results.append(STATE, run, attempt, frame.withColumns(unsaid))


def run_row(run: int, attempt: str, gate: str = GATE) -> Mapping[str, Any]:
    """A row of `audit_runs` in which only what matters here is filled."""
    row: dict[str, Any] = {each.name: 0 if each.sql_type == "BIGINT" else "{}" for each in RESULTS[RUNS]}
    return {**row, "run": run, "attempt": attempt, "as_of_ms": T0_MS + run, "gate": gate, "verdict": "PASS"}


def test_what_finished_runs_left_is_read_and_folded(spark: SparkSession, tmp_path: Path) -> None:
    """By attempts that count; an end is told though somebody answers for it; a failed gate is known. What is
    critical and open names who led its log as of that run; of no log, or of one not folded then, nobody."""
    root = str(tmp_path / "tables")
    outbox = Finished(spark, root)
    assert outbox.since({}) == []

    results = Results(spark, root)
    a, b, c = finding("a"), finding("b", subject="c1/T9/0"), finding("c", subject="c1/T1")
    put_down(results, 1, "killed", [], [a])
    put_down(results, 1, "first", [], [a, b, c])
    carry(spark, results, 1, "killed", LEADS + 1)
    carry(spark, results, 1, "first", LEADS)
    results.finish(dict(run_row(1, "first")))
    let_be = {**a, "suppressed_by": "bob"}
    put_down(results, 2, "second", [a, b, c], [let_be, b, c])
    results.finish(dict(run_row(2, "second", FAILED_GATE)))
    ended = {**let_be, "status": "resolved", "ended_ms": T0_MS}
    put_down(results, 3, "third", [let_be, b, c], [ended, b, c])
    results.finish(dict(run_row(3, "third")))

    runs = outbox.since({})
    standing = Standing()
    told = [(each.run, each.thread, each.state) for news in runs for each in take(standing, news)]

    assert [(each.run, each.attempt, each.is_complete) for each in runs] == [
        (1, "first", True),
        (2, "second", False),
        (3, "third", True),
    ]
    every = [(1, each, State.OPENED) for each in ("a", "b", "c")]
    assert told == [*every, (3, "a", State.ENDED)]
    first = (each.finding for page in runs[0].pages for each in page.changes)
    leaders = {each["finding_id"]: each.get(LEADER) for each in first}
    assert leaders == {"a": LEADS, "b": None, "c": None}
    assert [each.run for each in outbox.since({1: "first", 2: "other"})] == [2, 3]
    assert outbox.since({1: "first", 2: "second", 3: "third"}) == []
