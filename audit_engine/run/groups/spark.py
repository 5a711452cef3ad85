"""`one_log` and `one_emitter` over all logs and emitters, where the data is, Arrow in and out.

    each_emitter  grouped: of an emitter a worker sees ranges of its numbers
    each_log      streamed: of a log a worker holds one batch of its rows, and its state. Rows come sorted:

                      what is asked of the log | its facts, by their own clocks | all that was said, in order

Owns the columns that go in and come out. Invariant: one row a log, and one an emitter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from audit_engine.ingest.rows.pieces.spark import read_as, reader_of
from audit_engine.ingest.rows.plain import plain_bodies
from audit_engine.run.evidence.spark import KEY
from audit_engine.run.lines import READ, Row, rows_in
from audit_engine.run.listening import said_of
from audit_engine.run.one_emitter import HeardBefore, Slice, listen_to
from audit_engine.run.one_log import Judged, Late, Line, Task, judge, judge_again
from audit_engine.run.told import told_of
from audit_engine.tables.results import CALM
from rules.events import HighWatermark, Source
from rules.identity import LogId
from rules.machine import Reading, Told
from rules.machine.emitters import Around
from rules.machine.told import KRAFT_FACTS, TIER_FACTS, has_own_clock

EMITTER = ("cluster_id", "broker_id", "component")
LOG_KEY = tuple(f"log_{name}" for name in KEY)
_TOLD_BY_DISKS = ("read.directory_id", "read.replica_incarnation")
LOGS_AT_ONCE = 64  # judged logs, to a batch that goes out
_ASKED, _FACT, _SAID = 0, 1, 2
_ORDER = ("observed_at_ms", "emitter_broker_id", "emitter_component", "emitter_incarnation", "emitter_seq")
_JUDGED = (
    "cluster_id STRING, topic_id STRING, partition INT, topic STRING, late_ms BIGINT, state BINARY,"
    " position_ms BIGINT, findings STRING, verdict STRING, statement STRING, statement_hash STRING,"
    f" has_blast BOOLEAN, is_again BOOLEAN, words STRING, calm {CALM}"
)
_HEARD = (
    "cluster_id STRING, broker_id INT, component STRING, state STRING, gaps STRING, new_gaps STRING,"
    " findings STRING, is_silent BOOLEAN, watches_disks BOOLEAN,"
    " holes ARRAY<STRUCT<incarnation: BIGINT, first: BIGINT, end: BIGINT>>"
)
Emitter = tuple[str, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """What listening takes beside numbers: by emitter, rows that came twice, and what borders on holes."""

    task: Task
    retired: frozenset[Emitter] = frozenset()
    doubled: Mapping[Emitter, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    around: Mapping[Emitter, Mapping[int, Around]] = field(default_factory=dict)

    def knowing(self, around: Mapping[Emitter, Mapping[int, Around]]) -> Listeners:
        return replace(self, around=around)


def each_emitter(numbers: DataFrame, known: DataFrame, listeners: Listeners) -> DataFrame:
    """Each emitter of `numbers` or `known` by itself; `known` is what is carried."""
    schema = _struct(_HEARD)
    arrow = to_arrow_schema(schema)

    def listened(key: tuple[Any, ...], told: pa.Table, before: pa.Table) -> pa.Table:
        return pa.Table.from_pylist([_of_emitter(key, told, before, listeners)], schema=arrow)

    carried = known.select(*[F.col(name).alias(f"known_{name}") for name in known.columns])
    own = numbers.groupBy(*EMITTER)
    return own.cogroup(carried.groupBy(*[f"known_{name}" for name in EMITTER])).applyInArrow(listened, schema)


def _of_emitter(
    key: tuple[Any, ...], numbers: pa.Table, known: pa.Table, listeners: Listeners
) -> dict[str, Any]:
    cluster_id, broker_id, component = (each.as_py() for each in key)
    rows = known.rename_columns([name.removeprefix("known_") for name in known.column_names]).to_pylist()
    before = None
    if rows:
        [row] = rows
        before = HeardBefore(state=row["state"], gaps=row["gaps"], findings=row["findings"])
    name = (cluster_id, broker_id, component)
    of_it = Slice(
        said=said_of(broker_id, component, numbers.to_pylist()),
        doubled=listeners.doubled.get(name, ()),
        around=listeners.around.get(name, {}),
        is_retired=name in listeners.retired,
    )
    heard = listen_to(*name, of_it, before, listeners.task)
    place = dict(zip(EMITTER, name, strict=True))
    return place | {name: getattr(heard, name) for name in heard.__slots__}


def each_log(rows: DataFrame, tasks: DataFrame, task: Task) -> DataFrame:
    """Each log of `tasks` by itself, with its rows; those of a log that nobody asked about go nowhere."""
    schema = _struct(_JUDGED)
    arrow = to_arrow_schema(schema)

    def judged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        logs = judged_logs(batches, task)
        while some := list(islice(logs, LOGS_AT_ONCE)):
            yield pa.RecordBatch.from_pylist(some, schema=arrow)

    return _lined_up(rows.where(F.col("observed_at_ms") <= task.as_of_ms), tasks).mapInArrow(judged, schema)


def _lined_up(rows: DataFrame, tasks: DataFrame) -> DataFrame:
    """Each log's task, facts and events side by side, in this order."""
    has_clock = F.col("kind").isin(*[each.kind for each in (*TIER_FACTS, *KRAFT_FACTS)]) & F.col("is_read")
    offset = F.when(has_clock, F.get_json_object("body", "$.metadata_offset").cast("bigint"))
    both = F.array(F.lit(_FACT), F.lit(_SAID))
    said = rows.withColumn("clock", offset)
    said = said.withColumn(
        "part", F.explode(F.when(F.col("clock").isNull(), F.array(F.lit(_SAID))).otherwise(both))
    )
    asked = tasks.select(
        *[F.col(name).alias(f"log_{name}") for name in (*KEY, "topic")],
        *("carried", "base", "is_again"),
        F.lit(_ASKED).alias("part"),
    )
    clock = F.when(F.col("part") == _FACT, F.col("clock"))
    line = said.unionByName(asked, allowMissingColumns=True).repartition(*LOG_KEY)
    return _read(line.sortWithinPartitions(*LOG_KEY, "part", clock, *_ORDER, F.xxhash64("body")))


def _read(line: DataFrame) -> DataFrame:
    """With what is asked of a reading in columns (`run.lines`): most rows are no more than that."""
    spark = line.sparkSession
    reader = reader_of(spark, plain_bodies((HighWatermark.kind,), READ))
    found = line.withColumn("read", read_as(spark, reader, READ, "readOf", "kind", "body"))
    is_whole = F.col("is_read") & (F.col("read.source") == Source.LOG_DIR.value)
    for name in ("log_seq", "topic_id", "topic", "partition", "leader_epoch", *_TOLD_BY_DISKS):
        is_whole &= F.col(name).isNotNull()
    return found.withColumn("read", F.when(is_whole, F.col("read")))


def judged_logs(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[dict[str, Any]]:
    """One row a log. No more is held than a batch, and the facts and the state of one log."""
    rows = (row for batch in batches for row in rows_in(batch, LOG_KEY))
    for _, of_log in groupby(rows, key=itemgetter(0)):
        line = (row for _, row in of_log)
        asked = next(line)
        if not isinstance(asked, Reading) and asked["part"] == _ASKED:
            yield _of_log(asked, line, task)


def _of_log(asked: Row, own: Iterator[Row | Reading], task: Task) -> dict[str, Any]:
    log, topic = LogId(*(asked[name] for name in LOG_KEY)), asked["log_topic"]
    facts, first = list[Told](), list[Row | Reading]()
    for row in own:
        if isinstance(row, Reading) or row["part"] != _FACT:
            first.append(row)
            break
        facts.append(told_of(row))
    line = Line(facts=[*filter(has_own_clock, facts)], said=map(_told, chain(first, own)))
    found: Judged | Late
    if asked["is_again"]:
        found = judge_again(log, topic, line, asked["base"], task)
    else:
        found = judge(log, topic, line, asked["carried"], task)
    place = dict(zip(KEY, log, strict=True))
    return {**place, "topic": topic, "is_again": asked["is_again"], **_columns(found)}


def _told(row: Row | Reading) -> Told | Reading:
    return row if isinstance(row, Reading) else told_of(row)


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


def _struct(spelled: str) -> T.StructType:
    schema = T._parse_datatype_string(spelled)
    assert isinstance(schema, T.StructType)
    return schema
