"""A day's run of the audit on a standalone cluster: by two workers of one core each, against by one.

The peer is ourselves with half the cluster: the same run, judged again over the same cut and tables, by a
driver of its own. In each session the first run is not counted, as a JVM that was just started compiles more
than it works: on a machine of two cores that alone makes two workers slower than one. All come to one hash,
which is checked. The driver has no core of its own there either: what it plans and commits is part of the
ratio, and no worker makes it quicker; `steps_s` and `their_steps_s`, the medians of the run's steps, tell.

    SEAWALL_BENCH_EVENTS   300,000 unless told; a thousand a log
    SEAWALL_BENCH_FAULTY   one log in so many is folded in full: all of them, unless told
    SEAWALL_BENCH_SESSIONS  of each side, in turn: 3 unless told
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from audit_engine.run.spark import AuditRun, Means
from bench.audit_evidence import Fleet, add_day
from bench.harness import report, say
from rules.machine import Terms
from seawall.spark import spark_session

EVENTS = int(os.environ.get("SEAWALL_BENCH_EVENTS", "300000"))
FAULTY = int(os.environ.get("SEAWALL_BENCH_FAULTY", "1"))
TURNS = 333
NOW_MS = 1_900_000_000_000
SHUFFLE_PARTITIONS = 16
EXECUTOR_MIB = 900
SESSIONS = int(os.environ.get("SEAWALL_BENCH_SESSIONS", "3"))
TIMED = 2  # runs of each session that count


def main() -> None:
    from tests.cluster.standalone import StandaloneCluster  # not for the process that is measured

    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
        root = Path(name) / "tables"
        fleet = Fleet(logs=EVENTS // (TURNS * 3), turns=TURNS, faulty_every=FAULTY)
        made = [sys.executable, "-m", "bench.spark_workers", "make", str(root), str(fleet.logs)]
        say(f"making {fleet.events} events of {fleet.logs} logs, and judging them once, here")
        subprocess.run(made, check=True)
        with StandaloneCluster(Path(name), environ={"PYSPARK_PYTHON": sys.executable}) as cluster:
            two: list[dict[str, Any]] = []
            one: list[dict[str, Any]] = []
            for number in range(1, SESSIONS + 1):
                say(f"session {number} of {SESSIONS}")
                two += _judged(cluster.master, root, cores=2)
                one += _judged(cluster.master, root, cores=1)
    hashes = {each["content_hash"] for each in two + one}
    assert len(hashes) == 1, hashes
    runs = [(ours["took_s"], theirs["took_s"]) for ours, theirs in zip(two, one, strict=True)]
    more = {
        "events": fleet.events,
        "logs": fleet.logs,
        "faulty": -(-fleet.logs // FAULTY),
        "steps_s": _medians(two),
        "their_steps_s": _medians(one),
    }
    report("spark_workers", "one worker instead of two", runs, more=more)


def _judged(master: str, root: Path, *, cores: int) -> list[dict[str, Any]]:
    """Each run that counts, by a driver of its own; a master spreads cores: each is another worker's."""
    command = [sys.executable, "-m", "bench.spark_workers", "judge", str(root), master, str(cores)]
    environ = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environ)
    told: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    assert all(each["executors"] == cores for each in told), told
    say(f"workers: {cores}; " + ", ".join(f"{each['took_s']:.1f} s" for each in told))
    return told


def _medians(rounds: list[dict[str, Any]]) -> dict[str, float]:
    return {step: round(median(each["steps_s"][step] for each in rounds), 2) for step in rounds[0]["steps_s"]}


# Processes of their own: who makes the tables, and who is measured.


def _make(root: str, logs: int) -> None:
    fleet = Fleet(logs=logs, turns=TURNS, faulty_every=FAULTY)
    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
        spark = spark_session(Path(name), driver_memory_mib=2048)
        run = AuditRun(spark, root, _means())
        run.next(add_day(spark, root, fleet, 0))
        run.next(add_day(spark, root, fleet, 1))
        spark.stop()


def _judge(root: str, master: str, cores: int) -> None:
    marks: list[tuple[str, float]] = []
    settings = {
        "spark.cores.max": str(cores),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{EXECUTOR_MIB}m",
        "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
        "spark.databricks.delta.snapshotPartitions": "2",
        # All are waited for: a run that begins with one of two would be neither's.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    }
    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
        spark = spark_session(Path(name), master=master, settings=settings)
        spark.range(cores).count()  # returns when all are there
        run = AuditRun(spark, root, _means(marks))
        told = [_timed(run, marks) for _ in range(1 + TIMED)][1:]
        context: Any = spark.sparkContext
        executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is among them
        spark.stop()
    print(json.dumps([each | {"executors": executors} for each in told]))  # noqa: T201 for who measures


def _timed(run: AuditRun, marks: list[tuple[str, float]]) -> dict[str, Any]:
    marks.clear()
    began = time.perf_counter()
    summary = run.again(2)
    ended = time.perf_counter()
    ends = [*marks, ("end", ended)]
    return {
        "took_s": ended - began,
        "steps_s": {step: at - before for (step, before), (_, at) in pairwise(ends)},
        "content_hash": summary.content_hash,
    }


def _means(marks: list[tuple[str, float]] | None = None) -> Means:
    def at(step: str) -> None:
        if marks is not None:
            marks.append((step, time.perf_counter()))

    return Means(terms=Terms(), now_ms=lambda: NOW_MS, version="bench", has_gate=False, at=at)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        _make(sys.argv[2], int(sys.argv[3]))
    else:
        _judge(sys.argv[2], sys.argv[3], int(sys.argv[4]))
