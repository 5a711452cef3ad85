"""From real tables to the page: what two runs left behind, read as it was at each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.report.incidents import incidents
from audit_engine.report.page import page
from audit_engine.report.spark import gather
from audit_engine.report.values import Gathered, Row, log_of
from audit_engine.run.errors import NoSuchRun
from audit_engine.run.one_log import canonical
from audit_engine.run.results.spark import Results
from audit_engine.tables.results import EMITTERS, FINDINGS, RESULTS, RUNS, STATE, STATEMENTS
from rules.identity import LogId
from rules.machine import encode
from tests.audit_engine.report.fleets import fault, gathered, of_faults, passing


def written(spark: SparkSession, results: Results, run: Gathered, *, is_finished: bool = True) -> None:
    """As a run puts it down; without its last row it is a run that was killed."""
    number, attempt = run.run["run"], run.run["attempt"]
    rows: dict[str, list[dict[str, Any]]] = {
        STATEMENTS: [
            {
                **_named(each),
                **{name: each[name] for name in ("verdict", "statement_hash")},
                "statement": _unhashed(each),
            }
            for each in run.statements
        ],
        FINDINGS: [
            {**each, "detail": canonical({k: v for k, v in each.items() if k != "change"})}
            for each in run.changes
        ],
        EMITTERS: [{**each, "state": "{}", "gaps": "[]", "findings": "[]"} for each in run.emitters],
    }
    for name, every in rows.items():
        columns = {each.name: None for each in RESULTS[name]}
        results.append_rows(
            name,
            number,
            attempt,
            [{k: v for k, v in (columns | row).items() if k in columns} for row in every],
        )
    states = [(*log, state.topic, encode(state)) for log, state in run.states.items()]
    if states:
        frame = spark.createDataFrame(
            states, "cluster_id string, topic_id string, partition int, topic string, state binary"
        )
        unsaid = {each.name: F.lit(None) for each in RESULTS[STATE] if each.name not in frame.columns}
        results.append(STATE, number, attempt, frame.withColumns(unsaid))
    if is_finished:
        as_json = {name: canonical(run.run[name]) for name in ("cut", "terms", "gate", "counts")}
        results.finish({**dict.fromkeys(each.name for each in RESULTS[RUNS]), **run.run, **as_json})


def _named(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("cluster_id", "topic_id", "partition", "topic")}


def _unhashed(row: Row) -> str:
    return canonical({name: value for name, value in row.items() if name != "statement_hash"})


def test_a_run_is_reported_from_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    """The second run as it stands, the first as it was; a state from the run that carried it last; nothing of
    an attempt that was killed. A run that never was is refused; without tables none is made."""
    assert gather(spark, str(tmp_path / "none")) is None
    with pytest.raises(NoSuchRun):
        gather(spark, str(tmp_path / "none"), 1)
    assert not (tmp_path / "none").exists()
    was, others = passing(["orders"], 1), passing(["payments"], 2)
    statements, findings, states = of_faults(fault(7, "kip405"))
    first = gathered([*was, *others], states=states)
    second = gathered(
        [*statements, *others], findings=findings, before=[*was, *others], past=[dict(first.run)]
    )
    killed = gathered(others, past=[dict(first.run)], attempt="killed")
    results = Results(spark, str(tmp_path))
    written(spark, results, first)
    written(spark, results, killed, is_finished=False)
    written(spark, results, second)

    last, before = gather(spark, str(tmp_path)), gather(spark, str(tmp_path), 1)

    assert last is not None
    assert before is not None
    assert (before.run["run"], before.before, before.findings, before.changes) == (1, None, [], [])
    assert [each["run"] for each in last.runs] == [1, 2]
    assert sorted(map(log_of, last.statements)) == sorted(map(log_of, second.statements))
    assert last.before == {log_of(each): "PASS" for each in first.statements}
    assert _by_id(last.findings) == _by_id(second.findings)
    assert _by_id(last.changes) == _by_id(second.changes)
    assert list(last.emitters) == [dict(each) for each in second.emitters]
    assert last.states == {LogId("c1", "T1", 0): states[0]}
    assert [each.root["rule_id"] for each in incidents(last.findings)] == ["RET-03"]
    [moment] = last.courses[LogId("c1", "T1", 0)]
    stated = next(each for each in second.statements if log_of(each) == LogId("c1", "T1", 0))
    assert (moment.run, moment.watermark) == (2, stated["high_watermark"])
    text = page(last)
    assert "9,000 offsets with no known copy" in text
    assert "retention.ms went from 7 d to 1 h" in text
    assert 'id="i0-0-w-title"' in text
    with pytest.raises(NoSuchRun):
        gather(spark, str(tmp_path), 3)


def _by_id(rows: Any) -> list[dict[str, Any]]:
    told = json.loads(json.dumps(list(rows)))
    return sorted(told, key=lambda each: str(each["finding_id"]))
