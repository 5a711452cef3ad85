"""A log's line as it comes from Spark: readings are told by their numbers alone, and come to the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run import lines
from audit_engine.run.evidence.spark import KEY, about_logs, distinct_logs, keyed, told
from audit_engine.run.groups import spark as groups
from audit_engine.run.lines import READ
from audit_engine.run.one_log import Task
from audit_engine.run.told import told_of
from audit_engine.tables.columns import EVENTS
from rules.events import HighWatermark, Source
from rules.machine import Reading, Told
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import moved
from tests.rules.machine.histories import HOUR_MS, TERMS
from tests.rules.machine.random_days import random_history
from tests.rules.machine.test_quiet import with_more_readings

HISTORIES = 40


def said_of_all() -> list[Told]:
    """Random histories with faults, each of a cluster of its own, strewn with readings. Of some it is not
    said off which disk, or somebody else told them."""
    found = []
    for seed in range(HISTORIES):
        h = random_history(seed)
        own = with_more_readings(h.told, seed, until_ms=h.now_ms + 3 * HOUR_MS)
        for at, each in enumerate(own):
            event: Any = each.event
            if isinstance(event, HighWatermark) and at % 29 == 0:
                changed = {"directory_id": None} if at % 2 else {"source": Source.LIST_OFFSETS}
                own[at] = replace(each, event=replace(event, **changed))
        found += [moved(each, f"cluster-{seed:02}") for each in own]
    return found


@contextmanager
def small_batches(spark: SparkSession) -> Iterator[None]:
    """So that a log's rows lie in many."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "37")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def whole(line: DataFrame) -> DataFrame:
    """Each row as what it is, and none as a reading."""
    fields = ", ".join(f"{name}: {sql_type}" for name, (sql_type, _) in READ.items())
    return line.withColumn("read", F.lit(None).cast(f"STRUCT<{fields}>"))


@pytest.mark.slow
def test_readings_by_their_numbers_come_to_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, said = Evidence(spark, tmp_path), said_of_all()
    evidence.add(said)
    as_of_ms = max(each.observed_at_ms for each in said) + HOUR_MS
    rows = keyed(about_logs(told(spark.read.format("delta").load(f"{evidence.root}/{EVENTS}"))))
    named = rows.select(*[F.col(f"log_{name}").alias(name) for name in (*KEY, "topic")])
    none = F.lit(None).cast("binary")
    tasks = distinct_logs(named).select(
        *KEY, "topic", none.alias("carried"), none.alias("base"), F.lit(False).alias("is_again")
    )
    task = Task(terms=TERMS, from_ms=0, as_of_ms=as_of_ms)

    def judged() -> list[Row]:
        found = groups.each_log(rows, tasks, task).collect()
        return sorted(found, key=lambda row: str(row["cluster_id"]))

    with small_batches(spark):
        by_numbers = judged()
        with monkeypatch.context() as patched:
            patched.setattr(groups, "_read", whole)
            by_rows = judged()

    assert len(by_rows) == HISTORIES
    assert by_numbers == by_rows
    assert sum(row["verdict"] == "VIOLATION" for row in by_rows) > 5


@pytest.mark.slow
def test_what_a_reading_tells_is_what_its_row_says(spark: SparkSession, tmp_path: Path) -> None:
    """Every row of every kind: it is told as a reading exactly where its event is one, off a known disk."""
    evidence = Evidence(spark, tmp_path)
    evidence.add(said_of_all())
    rows = keyed(about_logs(told(spark.read.format("delta").load(f"{evidence.root}/{EVENTS}"))))
    read = groups._read(rows)
    readings = others = 0
    for batch in read.toArrow().to_batches(max_chunksize=100):
        plain = batch.to_pylist()
        for row, (_, told_so) in zip(plain, lines.rows_in(batch, groups.LOG_KEY), strict=True):
            one = told_of(row)
            event = one.event
            if isinstance(event, HighWatermark) and event.source is Source.LOG_DIR and event.directory_id:
                assert isinstance(told_so, Reading)
                assert told_so.whole() == one
                assert told_so[:6] == (
                    *(one.speaker, one.seq, one.log_seq, one.observed_at_ms),
                    *(event.occurred_at_ms, event.leader_epoch),
                )
                own = {name: getattr(event, name) for name in lines._OWN}
                assert {name: getattr(told_so, name) for name in lines._OWN} == own
                readings += 1
            else:
                assert told_so == row
                others += 1
    assert min(readings, others) > 500
