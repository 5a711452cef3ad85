"""`seawall replay outbox|audit` over tables of results and evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.alerts.news import RunNews
from audit_engine.alerts.outbox.spark import Finished
from audit_engine.alerts.record import Record
from audit_engine.run.history.spark import History
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.results.spark import Results
from audit_engine.tables.results import FINDINGS
from seawall.replay.audit.spark import prove
from tests.audit_engine.alerts.news import finding
from tests.audit_engine.alerts.test_outbox import put_down, run_row
from tests.audit_engine.run.evidence import Evidence
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import HOUR_MS, T0_MS
from tests.seawall.cli.calling import call
from workers.proof import Equal


def test_what_people_were_told_is_made_again(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs, told as they came: equal. A record that was told otherwise: its first message, exit 1."""
    root, state = str(tmp_path / "tables"), tmp_path / "alerts"
    results, a, b = Results(spark, root), finding("a"), finding("b")
    put_down(results, 1, "first", [], [a])
    results.finish(dict(run_row(1, "first")))
    put_down(results, 2, "second", [a], [a, b])
    results.finish(dict(run_row(2, "second")))
    news = Finished(spark, root).since({})
    _tell(state, news)
    other = tmp_path / "other"
    _tell(other, [news[1], news[0]])

    arguments = ("replay", "outbox", "--compare", "--json", "--tables", root, "--state-dir")
    equal, diverges, absent = (call(*arguments, str(each)) for each in (state, other, tmp_path / "nobody"))

    assert (equal.status, diverges.status, absent.status) == (0, 1, 3), diverges.stdout + diverges.stderr
    told = json.loads(equal.stdout)
    assert told["runs"] == 2
    assert told["again"]["equal"] is told["live"]["first"]["equal"] is True
    assert json.loads(diverges.stdout)["live"]["first"]["at"].startswith("run ")
    assert json.loads(absent.stdout)["live"] is None


def _tell(folder: Path, news: list[RunNews]) -> None:
    record = Record(folder)
    for each in news:
        record.take(each, now_ms=each.as_of_ms)
    record.close()


@pytest.mark.long  # two runs and six replays: a minute where nobody else works, many where others do
@pytest.mark.timeout(1800)
def test_runs_one_after_another_come_to_what_the_whole_comes_to(spark: SparkSession, tmp_path: Path) -> None:
    """Twice by itself, divided otherwise, and against the chain; a finding too many names its first event.
    The verb says the same, and where the runs' findings are others it ends with 1."""
    h = trimmed_prefix("none")
    evidence = Evidence(spark, tmp_path)
    evidence.add(h.told)
    evidence.audit().next(T0_MS + HOUR_MS // 60)
    evidence.audit().next(h.now_ms)
    history, live = History(spark, evidence.root), Verdicts(spark, evidence.root).findings()

    found = prove(spark, history, live)
    lacking = prove(spark, history, [each for each in live if each["rule_id"] != "START-02"])

    verb = ("replay", "audit", "--compare", "--json", "--tables", evidence.root)
    equal = call(*verb)
    table = f"delta.`{evidence.root}/{FINDINGS}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    spark.sql(f"DELETE FROM {table} WHERE rule_id = 'START-02'")
    diverges = call(*verb)

    assert (equal.status, diverges.status) == (0, 1), equal.stderr + diverges.stderr
    assert json.loads(equal.stdout)["live"]["first"] is None
    assert json.loads(equal.stdout)["again"]["equal"] is True
    assert json.loads(diverges.stdout)["live"]["first"]["finding"]["rule_id"] == "START-02"
    assert isinstance(found.again, Equal)
    assert found.live.is_none
    assert (found.first, found.event) == (None, None)
    assert lacking.first is not None
    assert lacking.first["rule_id"] == "START-02"
    assert lacking.event is not None
