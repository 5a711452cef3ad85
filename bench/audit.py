"""A day of the audit against what the same rows cost to sort: by Spark itself, and in DuckDB's windows.

Both peers read the same files with two cores: Spark scans, shuffles and sorts the rows by log and time, with
the columns that the rules read; DuckDB evaluates what the screen asks of each row and of those before it, the
numbers cut out of bodies by its own reader of JSON. Ours is timed twice:

    audit_screen   the screen over all logs: from the slice to the statements of those that it excuses
    audit          a whole run, `again` over the same cut, from the slice to findings in memory; the commit
                   behind it is apart, with the seconds of each step, in `steps_s`

One log in a hundred is faulty, and once more all of them. Wanted: 1.0 against Spark; DuckDB's is printed.

    SEAWALL_BENCH_EVENTS   20,000,000 unless told; a thousand a log
    SEAWALL_BENCH_FAULTY   one log in so many, instead of both 100 and 1
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from audit_engine.run.digest.spark import digest, of_logs
from audit_engine.run.evidence.spark import KEY, told
from audit_engine.run.screen.spark import excused
from audit_engine.run.spark import AuditRun, Means
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.results import STATEMENTS
from bench.audit_evidence import Fleet, add_day
from bench.harness import ROUNDS, report, say, timed
from rules.machine import Terms
from seawall.spark import spark_session

ALL_EVENTS = int(os.environ.get("SEAWALL_BENCH_EVENTS", "20000000"))
TURNS = 333  # of each of three replicas: a thousand events a log
FAULTY = [int(each) for each in os.environ.get("SEAWALL_BENCH_FAULTY", "100,1").split(",")]
PARTITIONS = 16
MEMORY_MIB = (
    8192  # a third of the machine: with half of it, all of Spark that is timed here waits for its collector
)
ORDER = (*KEY, "observed_at_ms", "emitter_broker_id", "emitter_component", "emitter_seq")
QUESTIONS = """
SELECT count(*), sum(falls), sum(skips), sum(moves) FROM (
  SELECT mark < max(mark) OVER log AS falls,
         log_seq <> lag(log_seq) OVER emitter + 1 OR emitter_seq <= lag(emitter_seq) OVER emitter AS skips,
         start <> lag(start) OVER replica OR local_start <> lag(local_start) OVER replica AS moves
  FROM (SELECT *, CAST(own[1] AS BIGINT) AS mark, CAST(own[2] AS BIGINT) AS start,
               CAST(own[3] AS BIGINT) AS local_start, own[4:6] AS life
        FROM (SELECT * EXCLUDE (body), json_extract_string(body, {fields}) AS own
              FROM read_parquet('{files}')))
  WINDOW log AS (PARTITION BY cluster_id, topic_id, partition
                 ORDER BY observed_at_ms, emitter_broker_id, emitter_component, emitter_seq
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
         emitter AS (PARTITION BY cluster_id, topic_id, partition, emitter_broker_id, emitter_component
                     ORDER BY observed_at_ms, emitter_seq),
         replica AS (PARTITION BY cluster_id, topic_id, partition, life ORDER BY observed_at_ms, emitter_seq))
"""
FIELDS = ("high_watermark", "log_start", "local_start", "broker_id", "directory_id", "replica_incarnation")


def main() -> None:
    for faulty_every in FAULTY:
        with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
            settings = {"spark.sql.shuffle.partitions": str(PARTITIONS)}
            spark = spark_session(
                Path(name) / "spark", driver_memory_mib=MEMORY_MIB, is_batch=True, settings=settings
            )
            try:
                _one(spark, Path(name) / "tables", faulty_every)
            finally:
                spark.stop()


def _one(spark: SparkSession, root: Path, faulty_every: int) -> None:
    fleet = Fleet(logs=ALL_EVENTS // (TURNS * 3), turns=TURNS, faulty_every=faulty_every)
    marks: list[tuple[str, float]] = []
    means = Means(
        terms=Terms(),
        now_ms=lambda: 1_900_000_000_000,
        version="bench",
        has_gate=False,
        at=lambda step: marks.append((step, time.perf_counter())),
    )
    run = AuditRun(spark, str(root), means)
    say(f"one log in {faulty_every} faulty: making the first day of {fleet.logs} logs, and judging it")
    run.next(add_day(spark, str(root), fleet, 0))
    say(f"making {fleet.events} events, and judging them once")
    as_of_ms = add_day(spark, str(root), fleet, 1)
    summary = run.next(as_of_ms)
    events = spark.read.format("delta").load(f"{root}/{EVENTS}")
    lying = events.where(f"observed_at_ms >= {as_of_ms - 86_400_000}")
    day = told(lying)
    carried = spark.read.format("delta").load(f"{root}/{STATEMENTS}").where("run = 1 AND calm IS NOT NULL")

    def screened() -> None:
        _away(excused(carried, of_logs(digest(lying, as_of_ms)), from_ms=0, as_of_ms=as_of_ms))

    def judged() -> float:
        marks.clear()
        assert run.again(2).content_hash == summary.content_hash
        at = dict(marks)
        return at["commit"] - at["read"]

    more = {
        "events": fleet.events,
        "logs": fleet.logs,
        "faulty": 0 if not faulty_every else -(-fleet.logs // faulty_every),
        "verdicts": dict(summary.verdicts),
    }
    works: dict[str, Callable[[], float]] = {
        "audit_screen": partial(timed, screened),
        "audit": judged,
        "Spark, scan, shuffle and sort": lambda: timed(lambda: _away(_sorted(day))),
        "DuckDB, the screen's questions, two cores": lambda: timed(lambda: _duckdb(f"{root}/{EVENTS}")),
    }
    # Each round has all of them, one after another; the first is not counted.
    rounds = [{name: work() for name, work in works.items()} for _ in range(1 + ROUNDS)][1:]
    names = list(works)
    for bench in names[:2]:
        for peer in names[2:]:
            runs = [(each[bench], each[peer]) for each in rounds]
            report(bench, peer, runs, more={**more, "steps_s": _steps(marks)})


def _sorted(day: DataFrame) -> DataFrame:
    return day.repartition(PARTITIONS, *KEY).sortWithinPartitions(*ORDER)


def _away(rows: DataFrame) -> None:
    """All of them, to nowhere."""
    rows.write.format("noop").mode("overwrite").save()


def _duckdb(table: str) -> None:
    import duckdb

    with duckdb.connect(config={"threads": 2}) as database:
        fields = [f"$.{name}" for name in FIELDS]
        database.execute(QUESTIONS.format(files=f"{table}/**/*.parquet", fields=fields)).fetchall()


def _steps(marks: list[tuple[str, float]]) -> dict[str, float]:
    """Of a run, the seconds from each step to the next."""
    return {step: round(end - begin, 2) for (step, begin), (_, end) in pairwise(marks)}
