"""A run on a real standalone master with two workers, one executor of which is killed: the same as here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from audit_engine.run.reading.spark import Verdicts
from audit_engine.tables.results import FINDINGS, STATE, STATEMENTS
from bench.audit_evidence import Fleet, add_day
from seawall.jvm.java import find_java
from seawall.local.waiting import wait_until
from tests.audit_engine.run.evidence import NOW_MS, Evidence
from tests.audit_engine.run.test_run import ALL, END_MS, TERMS

DEADLINE_S = 240.0
JUDGE_ON = Path(__file__).with_name("judge_on.py")


@contextmanager
def process(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    """One of Spark's own servers; its log. Ended at the end."""
    jars = Path(pyspark.__file__).parent / "jars"
    log = folder / f"{name}.log"
    found = {"SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13"}  # by Spark's scripts, elsewhere
    environ = {**os.environ, **found, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [str(find_java().path), "-Xmx256m", "-cp", f"{jars}/*", *arguments]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environ) as running:
        try:
            yield log
        finally:
            running.kill()


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each: where the master is."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    at = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    server = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as running:
        log = running.enter_context(
            process(folder, "master", f"{deploy}.master.Master", *server, "--port", str(port))
        )
        for number in (1, 2):
            place = ["--cores", "1", "--memory", "900m", "--work-dir", str(folder / f"worker-{number}")]
            running.enter_context(
                process(folder, f"worker-{number}", f"{deploy}.worker.Worker", *server, *place, at)
            )
        wait_until(
            lambda: log.read_text(errors="replace").count("Registering worker") >= 2,
            name="the Spark master",
            wanted="two workers",
            deadline_s=DEADLINE_S,
        )
        yield at


def executors(folder: Path) -> list[int]:
    """Processes that run tasks for workers of this folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            is_ours = (each / "cwd").readlink().is_relative_to(folder)
        except OSError:  # it ended meanwhile
            continue
        if is_ours and any(word.endswith(b"CoarseGrainedExecutorBackend") for word in words):
            found.append(int(each.name))
    return sorted(found)


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

    killed: list[int] = []
    with spark_cluster(tmp_path) as master:
        command = [sys.executable, str(JUDGE_ON), master, str(there), str(end_ms)]
        environ = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as judging:
            assert judging.stdout is not None
            lines = []
            for line in judging.stdout:
                lines.append(line.strip())
                if line.strip() == "step fold":
                    killed = executors(tmp_path)[:1]
                    for each in killed:
                        os.kill(each, signal.SIGKILL)
        assert judging.returncode == 0, lines

    assert len(killed) == 1
    assert json.loads(lines[-1])["content_hash"] == here.content_hash
    assert here.verdicts["VIOLATION"] > 10
    assert end_ms < NOW_MS
    for name in (STATE, STATEMENTS, FINDINGS):
        assert rows_of(spark, str(there), name) == rows_of(spark, evidence.root, name), name
