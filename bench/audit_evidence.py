"""A day of evidence about many logs, made by Spark natively, with the columns of `audit_events`.

Three brokers hold every log. On the first day each replica is seen for the first time, with six closed
segments; on every day after it, each is read every few minutes (the high watermark, that rises; now and then
the whole state), and closes a segment now and then. Of a faulty log the leader's start jumps once, with no
cause. Nothing is left out of the envelope: numbers go on without a hole, and times never fall.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.tables.columns import COLUMNS, EVENTS
from audit_engine.tables.marks import Mark, furthest
from audit_engine.tables.spark import EvidenceTable, schema_of

BROKERS = 3
FIRST_TURNS = 8  # seen, a baseline, six closed segments
T0_MS = 1_763_424_000_000
DAY_MS = 86_400_000
FIRST_MS = T0_MS + DAY_MS - 60_000  # so late in the day that nobody counts as silent at its end
DAY = "2025-11-18"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
SEGMENT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """`faulty_every`: one log in so many; 0: none. `turns`: what each replica says on a day."""

    logs: int
    turns: int
    faulty_every: int

    @property
    def events(self) -> int:
        return self.logs * self.turns * BROKERS


def add_day(spark: SparkSession, root: str, fleet: Fleet, day: int) -> int:
    """One commit of the events of a day, 0 the first; the moment after it, in ms."""
    table = EvidenceTable(spark, root, EVENTS)
    begin = dict(table.standing().next_offsets)
    rows = _first(spark, fleet) if day == 0 else _later(spark, fleet, day)
    offset = begin.get(0, 0)
    placed = rows.withColumns(
        {
            "kafka_offset": F.col("place") + offset,
            "kafka_timestamp_ms": F.col("observed_at_ms") + 1_000,
            **{name: F.lit(value) for name, value in _ENVELOPE.items()},
            "ingest_day": F.date_add(F.lit(DAY).cast("date"), day),
        }
    )
    there = set(placed.columns)
    columns = [
        (F.col(each.name) if each.name in there else F.lit(None)).cast(each.dataType).alias(each.name)
        for each in schema_of(COLUMNS[EVENTS])
    ]
    end = {0: offset + _count(fleet, day)}
    mark = Mark(
        token=f"bench-{day}",
        number=table.standing().number + 1,
        topic="__seawall_audit",
        topic_id="id",
        ranges={0: (offset, end[0])},
        next_offsets=furthest(begin, end),
        replayed={},
    )
    table.append(placed.select(*columns), mark)
    return T0_MS + (day + 1) * DAY_MS


_ENVELOPE = {
    "kafka_topic": "__seawall_audit",
    "kafka_partition": 0,
    "emitter_incarnation": 1,
    "is_first": False,
    "cluster_id": CLUSTER_ID,
    "version": 1,
    "is_read": True,
}


def _count(fleet: Fleet, day: int) -> int:
    of_replicas = fleet.logs * BROKERS * (FIRST_TURNS if day == 0 else fleet.turns)
    return of_replicas + (fleet.logs + 1 if day == 0 else 0)


def _first(spark: SparkSession, fleet: Fleet) -> DataFrame:
    turn = F.col("turn")
    closed = turn - 2
    kind = F.when(turn == 0, "replica_started").when(turn == 1, "log_baseline").otherwise("segment_closed")
    body = F.when(turn == 0, _started()).when(turn == 1, _baseline(F.lit(6 * SEGMENT)))
    at_ms = F.lit(FIRST_MS) + turn
    of_replicas = _of_replicas(spark, fleet, FIRST_TURNS, 0, 0).withColumns(
        {"kind": kind, "occurred_at_ms": at_ms, "observed_at_ms": at_ms}
    )
    of_replicas = of_replicas.withColumn("body", body.otherwise(_closed(closed * SEGMENT, F.lit(T0_MS))))
    leaders = _of_metadata(spark, fleet)
    policy = spark.range(1).select(
        F.lit(fleet.logs * (BROKERS * FIRST_TURNS + 1)).alias("place"),
        F.lit("policy_declared").alias("kind"),
        F.lit("policy").alias("emitter_component"),
        F.lit(0).alias("emitter_broker_id"),
        F.lit(0).alias("emitter_seq"),
        F.lit(T0_MS).alias("occurred_at_ms"),
        F.lit(T0_MS).alias("observed_at_ms"),
        F.lit("policy-0").alias("event_id"),
        F.lit(0).alias("payload_hash"),
        _json(
            principal="alice",
            change_id="CHG-0",
            policy_hash="0" * 64,
            policy_offset=1,
            pattern="*",
            key="total_retention_ms",
            before=None,
            after='"400d"',
        ).alias("body"),
    )
    return of_replicas.unionByName(leaders, allowMissingColumns=True).unionByName(
        policy, allowMissingColumns=True
    )


def _later(spark: SparkSession, fleet: Fleet, day: int) -> DataFrame:
    """Read every few minutes; a baseline each 80th turn, a closed segment each 100th."""
    said_before = FIRST_TURNS + (day - 1) * fleet.turns
    rows = _of_replicas(spark, fleet, fleet.turns, said_before, fleet.logs * said_before)
    turn, log = F.col("turn"), F.col("log")
    step_ms = DAY_MS // (fleet.turns + 1)
    at_ms = F.lit(T0_MS + day * DAY_MS) + turn * step_ms
    done = F.lit(6 * SEGMENT) + (F.lit((day - 1) * fleet.turns) + turn) * 10
    is_faulty = F.lit(False)
    if fleet.faulty_every:
        is_faulty = (log % fleet.faulty_every == 0) & (turn == fleet.turns // 2) & (F.col("broker") == 0)
    is_closed, is_baseline = turn % 100 == 50, turn % 80 == 40
    kind = F.when(is_faulty, "log_start_advanced").when(is_closed, "segment_closed")
    body = F.when(is_faulty, _advanced(done)).when(is_closed, _closed(done, at_ms))
    return rows.withColumns(
        {
            "kind": kind.when(is_baseline, "log_baseline").otherwise("high_watermark"),
            "occurred_at_ms": at_ms,
            "observed_at_ms": at_ms,
            "body": body.when(is_baseline, _baseline(done)).otherwise(_reading(done)),
        }
    )


def _of_replicas(spark: SparkSession, fleet: Fleet, turns: int, said: int, numbered: int) -> DataFrame:
    """One row a turn, log and broker; `said` of each log before, `numbered` of each broker."""
    place = F.col("id")
    number = F.floor(place / BROKERS)
    log = number % fleet.logs
    return (
        spark.range(fleet.logs * BROKERS * turns)
        .select(
            place.alias("place"),
            (place % BROKERS).cast("int").alias("broker"),
            log.alias("log"),
            F.floor(number / fleet.logs).alias("turn"),
            (number + numbered).alias("emitter_seq"),
        )
        .withColumns(
            {
                **_log_columns(),
                "emitter_broker_id": F.col("broker"),
                "emitter_component": F.lit("agent"),
                "log_seq": F.col("turn") + said,
                "event_id": F.concat_ws("-", "broker", "emitter_seq"),
                "payload_hash": F.xxhash64("broker", "emitter_seq"),
                "replica": F.col("broker").cast("string"),
                "role": F.when(F.col("broker") == 0, "leader").otherwise("follower"),
            }
        )
    )


def _of_metadata(spark: SparkSession, fleet: Fleet) -> DataFrame:
    log = F.col("id")
    return (
        spark.range(fleet.logs)
        .select(log.alias("log"), (log + fleet.logs * BROKERS * FIRST_TURNS).alias("place"))
        .withColumns(
            {
                **_log_columns(),
                "kind": F.lit("leader_changed"),
                "emitter_broker_id": F.lit(0),
                "emitter_component": F.lit("metadata"),
                "emitter_seq": F.col("log"),
                "log_seq": F.lit(0),
                "event_id": F.concat(F.lit("metadata-"), F.col("log")),
                "payload_hash": F.xxhash64("log"),
                "occurred_at_ms": F.lit(FIRST_MS - 1),
                "observed_at_ms": F.lit(FIRST_MS - 1),
                "body": _json(
                    source="kraft",
                    metadata_offset=F.col("log") + 1,
                    is_coalesced=False,
                    not_before_ms=None,
                    leader_id=0,
                    isr=F.array(*[F.lit(each) for each in range(BROKERS)]),
                    replicas=F.array(*[F.lit(each) for each in range(BROKERS)]),
                    is_unclean=False,
                ),
            }
        )
    )


def _log_columns() -> dict[str, Column]:
    topic_id = F.format_string("CgkTzsXgRlOwPT%07dg", F.floor(F.col("log") / 20).cast("int"))
    partition = (F.col("log") % 20).cast("int")
    return {
        "topic_id": topic_id,
        "topic": F.format_string("topic-%d", F.floor(F.col("log") / 20).cast("int")),
        "partition": partition,
        "log_id": F.concat_ws(":", topic_id, partition),
        "leader_epoch": F.lit(5),
    }


def _json(**fields: object) -> Column:
    """With its names in order, as our writers spell it."""
    members = [
        (each if isinstance(each, Column) else F.lit(each)).alias(name)
        for name, each in sorted(fields.items())
    ]
    return F.to_json(F.struct(*members), {"ignoreNullFields": "false"})


def _replica(**fields: object) -> Column:
    return _json(
        broker_id=F.col("broker"),
        directory_id="3cVtEW_RTm2TSqxDBnRsEA",
        replica_incarnation=1,
        ordinal=F.col("log_seq"),
        source="log_dir",
        not_before_ms=None,
        **fields,
    )


def _started() -> Column:
    return _replica(
        appearance="first_seen", log_start=0, local_start=0, high_watermark=6 * SEGMENT, log_end=None
    )


def _baseline(watermark: Column) -> Column:
    return _replica(
        occasion="periodic",
        log_start=0,
        local_start=0,
        high_watermark=watermark,
        log_end=None,
        epochs=F.array(F.array(F.lit(5), F.lit(0))),
        segment_count=None,
        size_bytes=6 << 20,
        segments_digest=None,
        metadata_offset=None,
    )


def _closed(base: Column, newest_ms: Column) -> Column:
    return _replica(
        base_offset=base,
        end_offset=base + SEGMENT,
        data_end=None,
        record_count=None,
        size_bytes=1 << 20,
        max_timestamp_ms=newest_ms,
        timestamp_basis="indexed",
    )


def _reading(watermark: Column) -> Column:
    return _replica(log_start=0, high_watermark=watermark, log_end=watermark, size_bytes=6 << 20)


def _advanced(watermark: Column) -> Column:
    return _replica(
        old_start=0,
        new_start=SEGMENT,
        local_start=SEGMENT,
        checkpoint_entry=SEGMENT,
        high_watermark=watermark,
        reason_hint=None,
    )
