"""How a day's run grows: with the days behind it, and with its events.

audit_growth_history   a day's run on top of thirty days' history, against the same day's with one day's:
                       the ratio is short over long, wanted 1 / 1.1 at the least
audit_growth_events    ten times the events, against once as many, each divided by its events: the ratio
                       is what an event costs of few over what it costs of many, wanted 10 / 11 at the least

SEAWALL_BENCH_EVENTS   events of the day, 200,000 unless told
SEAWALL_BENCH_DAYS     30
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from audit_engine.run.spark import AuditRun, Means
from bench.audit_evidence import Fleet, add_day
from bench.harness import compare, timed
from rules.machine import Terms
from seawall.spark import spark_session

DAY_EVENTS = int(os.environ.get("SEAWALL_BENCH_EVENTS", "200000"))
DAYS = int(os.environ.get("SEAWALL_BENCH_DAYS", "30"))
TURNS = 333


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
        spark = spark_session(Path(name) / "spark", driver_memory_mib=4096, is_batch=True)
        try:
            few, many = _fleet(DAY_EVENTS), _fleet(10 * DAY_EVENTS)
            short = _last_day(spark, Path(name) / "short", few, 1)
            long = _last_day(spark, Path(name) / "long", few, DAYS)
            compare(
                "audit_growth_history", "no history", ours=lambda: timed(long), theirs=lambda: timed(short)
            )
            ten = _last_day(spark, Path(name) / "ten", many, 1)
            compare(
                "audit_growth_events",
                "a tenth of the events",
                ours=lambda: timed(ten) / many.events * 1e6,
                theirs=lambda: timed(short) / few.events * 1e6,
                unit="us/event",
            )
        finally:
            spark.stop()


def _fleet(events: int) -> Fleet:
    return Fleet(logs=events // (TURNS * 3), turns=TURNS, faulty_every=0)


def _last_day(spark: SparkSession, root: Path, fleet: Fleet, days: int) -> Callable[[], object]:
    """Each day made and judged; what is handed back judges the last one again."""
    print(f"bench: {days} days of {fleet.events} events", file=sys.stderr, flush=True)  # noqa: T201 it takes long
    means = Means(terms=Terms(), now_ms=lambda: 1_900_000_000_000, version="bench", has_gate=False)
    run = AuditRun(spark, str(root), means)
    for day in range(days + 1):
        run.next(add_day(spark, str(root), fleet, day))
    return lambda: run.again(days + 1)
