"""`one_log` and `one_emitter` over all logs and emitters: grouped, where the data is, Arrow in and out.

Owns the columns that go in and come out. Invariant: one row a log, and one an emitter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from audit_engine.run.evidence.spark import KEY
from audit_engine.run.one_emitter import HeardBefore, listen_to
from audit_engine.run.one_log import Judged, Late, Task, judge, judge_again
from audit_engine.tables.results import CALM
from rules.identity import LogId

EMITTER = ("cluster_id", "broker_id", "component")
_JUDGED = (
    "cluster_id STRING, topic_id STRING, partition INT, topic STRING, late_ms BIGINT, state BINARY,"
    " position_ms BIGINT, findings STRING, verdict STRING, statement STRING, statement_hash STRING,"
    f" has_blast BOOLEAN, is_again BOOLEAN, words STRING, calm {CALM}"
)
_HEARD = (
    "cluster_id STRING, broker_id INT, component STRING, state STRING, gaps STRING, new_gaps STRING,"
    " findings STRING, is_silent BOOLEAN, watches_disks BOOLEAN"
)


def each_emitter(
    rows: DataFrame, known: DataFrame, task: Task, retired: frozenset[tuple[str, int, str]]
) -> DataFrame:
    """Each emitter of `rows` or `known` by itself; `known` is what is carried."""
    schema = _struct(_HEARD)
    arrow = to_arrow_schema(schema)

    def listened(key: tuple[Any, ...], told: pa.Table, before: pa.Table) -> pa.Table:
        return pa.Table.from_pylist([_of_emitter(key, told, before, task, retired)], schema=arrow)

    told = rows.groupBy("cluster_id", "emitter_broker_id", "emitter_component")
    return told.cogroup(
        _renamed(known, "known").groupBy(*[f"known_{name}" for name in EMITTER])
    ).applyInArrow(listened, schema)


def _of_emitter(
    key: tuple[Any, ...],
    told: pa.Table,
    known: pa.Table,
    task: Task,
    retired: frozenset[tuple[str, int, str]],
) -> dict[str, Any]:
    cluster_id, broker_id, component = (each.as_py() for each in key)
    rows = known.rename_columns([name.removeprefix("known_") for name in known.column_names]).to_pylist()
    before = None
    if rows:
        [row] = rows
        before = HeardBefore(state=row["state"], gaps=row["gaps"], findings=row["findings"])
    heard = listen_to(
        cluster_id,
        f"{broker_id}/{component}",
        told.to_pylist(),
        before,
        task,
        is_retired=(cluster_id, broker_id, component) in retired,
    )
    place = {"cluster_id": cluster_id, "broker_id": broker_id, "component": component}
    return place | {name: getattr(heard, name) for name in heard.__slots__}


def each_log(rows: DataFrame, tasks: DataFrame, task: Task) -> DataFrame:
    """Each log of `tasks` by itself, with its rows; runs where the data is."""
    schema = _struct(_JUDGED)
    arrow = to_arrow_schema(schema)

    def judged(key: tuple[Any, ...], told: pa.Table, asked: pa.Table) -> pa.Table:
        return pa.Table.from_pylist(list(_of_log(told, asked, task)), schema=arrow)

    asked = _renamed(tasks, "asked")
    told = rows.groupBy(*[f"log_{name}" for name in KEY])
    return told.cogroup(asked.groupBy(*[f"asked_{name}" for name in KEY])).applyInArrow(judged, schema)


def _of_log(told: pa.Table, asked: pa.Table, task: Task) -> Iterator[dict[str, Any]]:
    """One row, or none for rows of a log that nobody asked about."""
    names = [name.removeprefix("asked_") for name in asked.column_names]
    for each in asked.rename_columns(names).to_pylist():
        log = LogId(each["cluster_id"], each["topic_id"], each["partition"])
        rows = told.to_pylist()
        found: Judged | Late
        if each["is_again"]:
            found = judge_again(log, each["topic"], rows, each["base"], task)
        else:
            found = judge(log, each["topic"], rows, each["carried"], task)
        yield {**{name: each[name] for name in (*KEY, "topic", "is_again")}, **_columns(found)}


def _columns(found: Judged | Late) -> dict[str, Any]:
    if isinstance(found, Late):
        return {"late_ms": found.observed_at_ms}
    return {
        "state": found.state,
        "position_ms": found.position_ms,
        "findings": found.findings,
        "verdict": found.statement.verdict.value,
        "statement": found.statement_json,
        "statement_hash": found.statement.hash,
        "has_blast": found.has_blast,
        "words": found.words,
        "calm": None if found.calm is None else asdict(found.calm),
    }


def _renamed(frame: DataFrame, prefix: str) -> DataFrame:
    """Both sides of a group come from the same tables, which Spark refuses to tell apart by name."""
    return frame.select(*[F.col(name).alias(f"{prefix}_{name}") for name in frame.columns])


def _struct(spelled: str) -> T.StructType:
    schema = T._parse_datatype_string(spelled)
    assert isinstance(schema, T.StructType)
    return schema
