"""A run on a real standalone master with two workers, one executor of which is killed: the same as here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.reading.spark import Verdicts
from audit_engine.tables.results import FINDINGS, STATE, STATEMENTS
from bench.audit_evidence import Fleet, add_day
from tests.audit_engine.run.evidence import NOW_MS, Evidence
from tests.audit_engine.run.test_run import ALL, END_MS, TERMS
from tests.cluster.standalone import Executor, StandaloneCluster

JUDGE_ON = Path(__file__).with_name("judge_on.py")


def rows_of(spark: SparkSession, root: str, name: str) -> set[tuple[object, ...]]:
    """What the last run left in a table, but the attempt's name."""
    rows = Verdicts(spark, root).rows_of(name, Verdicts(spark, root).runs(1)[0])
    return {tuple(row) for row in rows.drop("attempt", "calm").collect()}


@pytest.mark.long  # a cluster of three JVMs beside the session
@pytest.mark.timeout(1800)
def test_an_executor_that_is_killed_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The seventeen faults and a log that has most of the events, judged here and on a cluster that loses an
    executor while it folds: the same hash, states, statements and findings, byte for byte."""
    evidence = Evidence(spark, tmp_path / "here")
    evidence.add(told for each in ALL for told in each.said)
    dominant = Fleet(logs=1, turns=2_000, faulty_every=1)
    add_day(spark, evidence.root, dominant, 0)
    end_ms = max(END_MS, add_day(spark, evidence.root, dominant, 1))
    there = tmp_path / "there" / "tables"
    shutil.copytree(evidence.root, there)
    here = evidence.audit(TERMS).next(end_ms)

    killed: list[Executor] = []
    with StandaloneCluster(tmp_path, environ={"PYSPARK_PYTHON": sys.executable}) as cluster:
        command = [sys.executable, str(JUDGE_ON), cluster.master, str(there), str(end_ms)]
        environ = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as judging:
            assert judging.stdout is not None
            lines = []
            for line in judging.stdout:
                lines.append(line.strip())
                if line.strip() == "step fold":
                    killed = cluster.executors()[:1]
                    for each in killed:
                        each.kill()
        assert judging.returncode == 0, lines

    assert len(killed) == 1
    assert json.loads(lines[-1])["content_hash"] == here.content_hash
    assert here.verdicts["VIOLATION"] > 10
    assert end_ms < NOW_MS
    for name in (STATE, STATEMENTS, FINDINGS):
        assert rows_of(spark, str(there), name) == rows_of(spark, evidence.root, name), name
