"""The canary laid among a run's frames: its rows beside the slice's, its past beside what is carried.

Its events are put on the wire and read by ingest's own reader; from there on it is a log as any other, to
joins, screen and fold. `Folding` takes out again what came of it.

Owns these frames. Refuses to write. Invariant: each has the columns of what it is laid beside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.spark import plain_events
from audit_engine.run.canary import TOPIC, Canary, carried
from audit_engine.run.evidence.spark import KEY, told
from audit_engine.run.one_log import Task
from audit_engine.run.results.spark import Results
from audit_engine.run.told import value_of
from audit_engine.tables.results import STATE, STATEMENTS
from rules.events import LogEvent
from rules.machine import Told

_DAY = "1970-01-01"  # the rows are in no table
_RECORDS = "ARRAY<STRUCT<value: STRING, offset: BIGINT>>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """`rows` as the slice has them, `stated` and `states` as the run before left those of every log; `shared`
    says whether a row is about more than one log."""

    rows: DataFrame
    stated: DataFrame
    states: DataFrame
    shared: bool


def laid(spark: SparkSession, results: Results, canary: Canary, task: Task, previous: int | None) -> Laid:
    """The first run hears all that was said; a later one carries what was before the fault."""
    said: Iterable[Told] = (*canary.before, *canary.since)
    stated, states = list[dict[str, Any]](), list[dict[str, Any]]()
    if previous is not None:
        left, said = carried(canary, task), canary.since
        place = {**dict(zip(KEY, canary.log, strict=True)), "topic": TOPIC, "run": previous}
        verdict = {"verdict": left.statement.verdict.value, "statement": left.statement_json}
        calm = {"calm": None if left.calm is None else asdict(left.calm), "words": left.words}
        stated = [place | verdict | calm | {"state_run": previous}]
        states = [place | {"position_ms": left.position_ms, "findings": left.findings}]
        state_of = F.lit(bytearray(left.state))
    else:
        state_of = F.lit(None).cast("binary")
    return Laid(
        rows=told(plain_events(_records(spark, said), _DAY)),
        stated=results.rows(STATEMENTS, stated),
        states=results.rows(STATE, states).withColumn("state", state_of),
        shared=any(not isinstance(each.event, LogEvent) for each in said),
    )


def _records(spark: SparkSession, said: Iterable[Told]) -> DataFrame:
    """As Kafka's source gives them, through one literal: few rows, and no Python worker."""
    values = [{"value": value_of(each).decode(), "offset": at} for at, each in enumerate(said)]
    records = spark.range(1).select(F.inline(F.from_json(F.lit(json.dumps(values)), _RECORDS)))
    return records.select(
        F.lit(None).cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        F.lit(TOPIC).alias("topic"),
        F.lit(0).alias("partition"),
        "offset",
        F.timestamp_millis(F.lit(0)).alias("timestamp"),
    )


def found_of(judged: Sequence[str]) -> list[dict[str, Any]] | None:
    """What a run found of it, told as often as it was judged; None if it was not judged at all."""
    return [each for findings in judged for each in json.loads(findings)] if judged else None
