"""The tables of results are kept in order, as those of the evidence are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.tables.maintenance.results import BY_RUN, TABLES, WINDOWS, due, named
from audit_engine.tables.maintenance.results.spark import carry_out, needed, tables_of_results
from audit_engine.tables.results import DECISIONS, RUNS, STATEMENTS
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import LOG


def files_of(spark: SparkSession, root: str, name: str) -> int:
    return spark.sql(f"DESCRIBE DETAIL delta.`{root}/{name}`").collect()[0]["numFiles"]  # type: ignore[no-any-return]


@pytest.mark.long  # two runs
def test_the_tables_of_results_are_kept_in_order(spark: SparkSession, tmp_path: Path) -> None:
    """Windows as declared, one file where there were several, and nothing left that no version of the window
    names; nothing to do the second time; what lies there of a run at work is left alone."""
    h = trimmed_prefix("none")
    evidence = Evidence(spark, tmp_path)
    evidence.add(beats(h.told, LOG.cluster_id, h.now_ms))
    first = evidence.audit().next(h.now_ms)
    evidence.audit().next(h.now_ms)
    orphan = Path(evidence.root) / STATEMENTS / "part-of-a-killed-run.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (1, 1))
    rows = spark.read.format("delta").load(f"{evidence.root}/{RUNS}").orderBy("run").collect()

    there = tables_of_results(spark, evidence.root)
    wanted = {name: needed(spark, evidence.root, name) for name in (RUNS, STATEMENTS)}
    for each in wanted.values():
        carry_out(spark, evidence.root, each)
    again = [needed(spark, evidence.root, name) for name in wanted]

    assert set(there) == set(TABLES) - {DECISIONS}
    assert all(dict(each.properties) == WINDOWS for each in wanted.values())
    [of_runs] = wanted[RUNS].days
    assert of_runs.files >= 2
    assert (wanted[STATEMENTS].unneeded_files, orphan.exists()) == (1, False)
    assert files_of(spark, evidence.root, RUNS) == 1
    assert spark.read.format("delta").load(f"{evidence.root}/{RUNS}").orderBy("run").collect() == rows
    assert all((each.days, each.properties, each.unneeded_files) == ((), {}, 0) for each in again)
    assert evidence.audit().again(1).content_hash == first.content_hash


def test_files_of_a_run_at_work_are_left_alone() -> None:
    """And those of a finished one where there are no more than its bytes want."""
    parts = [("7", 9, 9), ("6", 9, 9), ("10", 2, 9), ("9", 1, 9)]

    assert [(each.day, each.files) for each in due(parts, last_run=9)] == [("run 6", 9), ("run 7", 9)]
    assert [each.day for each in due([(None, 2, 9)], last_run=0)] == [named(None)]
    assert RUNS not in BY_RUN
