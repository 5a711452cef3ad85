"""Spark's reading of a record against `audit_engine.wire`, which wrote it."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from audit_engine.errors import EventError
from audit_engine.ingest.rows.spark import events, examined, quarantined
from audit_engine.tables.columns import EVENT_COLUMNS, OWN_FIELDS
from audit_engine.tables.kinds import view_of
from audit_engine.tables.spark import schema_of
from audit_engine.wire import Envelope, Unread, decode, encode
from audit_engine.wire.codec import BODIES
from rules.events import KINDS
from tests.audit_engine.events import envelopes
from tests.audit_engine.ingest.topics import DAY, value_of

SCHEMA = (
    "key binary, value binary, topic string, partition int, "
    "offset long, timestamp timestamp, timestampType int"
)
GOOD = value_of(1)
DAMAGED = [
    None,
    b"",
    b"[]",
    b"null",
    b"no json",
    b"\xff\xfe",
    GOOD[:-1],
    GOOD[:-20],
    GOOD.replace(b'"kind"', b'"kin"'),
    GOOD.replace(b'"emitter_seq":1', b'"emitter_seq":"1"'),
    GOOD.replace(b'"emitter_seq":1', b'"emitter_seq":-1'),
    GOOD.replace(b'"emitter_seq":1', b'"emitter_seq":1.5'),
    GOOD.replace(b'"emitter_seq":1', b'"emitter_seq":99999999999999999999'),
    GOOD.replace(b'"incarnation":7', b'"incarnation":null'),
    GOOD.replace(b'"min_reader":1', b'"min_reader":2'),
    GOOD.replace(b'"partition":3', b'"partition":2147483648'),
    GOOD.replace(b'"body":{', b'"body":3,"more":{'),
]
READABLE = [
    GOOD,
    GOOD.replace(b"upload_stalled", b"not_known_yet"),
    GOOD.replace(b'"frontier":1', b'"frontier":"one"'),
    GOOD.replace(b'"frontier":1,', b""),
    GOOD.replace(b'"frontier":1', b'"added":[1],"frontier":1'),
    GOOD.replace(b'"kind"', b'"added":{"a":1},"kind"'),
    GOOD.replace(b'"partition":3', b'"partition":null'),
    GOOD.replace(b'"frontier":1,', b' "frontier" : 1 ,\n'),
    GOOD.replace(b'"reason":"nothing"', '"reason":"n\u00f6thing \\u0041"'.encode()),
    GOOD.replace(b'"frontier":1', b'"frontier":9223372036854775807'),
    GOOD.replace(b'"kind"', b'"follows":null,"kind"'),
    GOOD.replace(b'"kind"', b'"\\u0066ollows":{"incarnation":1,"last_seq":2},"kind"'),
    GOOD + b"\n",
    GOOD.replace(b'"version":1', b'"version":2,"x":null'),
]


def _records(spark: SparkSession, values: list[bytes | None]) -> list[tuple[Row | None, Row | None]]:
    """The row of each in audit_events, and the one in audit_quarantine."""
    at = datetime(2026, 1, 1)  # noqa: DTZ001  # the session's own zone is UTC
    rows = [(None, value, "t", 0, offset, at, 0) for offset, value in enumerate(values)]
    seen = examined(spark.createDataFrame(rows, SCHEMA)).persist()
    found = {row["kafka_offset"]: row for row in events(seen, DAY).collect()}
    bad = {row["kafka_offset"]: row for row in quarantined(seen, DAY).collect()}
    seen.unpersist()
    return [(found.get(offset), bad.get(offset)) for offset in range(len(values))]


def test_what_wire_cannot_read_is_quarantined_and_nothing_else(spark: SparkSession) -> None:
    """An event has its body, and its whole value as it came where wire knows its envelope only in part."""
    values = [*DAMAGED, *READABLE]

    for value, (event, bad) in zip(values, _records(spark, values), strict=True):
        try:
            envelope = decode(value)
        except EventError:
            assert event is None
            assert bad is not None
            assert (None if bad["value"] is None else bytes(bad["value"])) == value
            continue
        assert bad is None, (value, bad)
        assert event is not None
        assert value is not None
        assert event["is_first"] == envelope.is_first
        assert event["is_read"] == (not isinstance(envelope.event, Unread)), value
        has_more = bool(envelope.unrecognised.keys() - {"body"})
        assert event["unrecognised"] == (value.decode() if has_more else None)
        assert value != GOOD or f'{{"body":{event["body"]},"cluster_id":' in value.decode(), "byte for byte"
        assert json.loads(event["body"]) == json.loads(value)["body"]


@pytest.mark.timeout(250)
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(said=st.tuples(*[envelopes(kind.kind) for kind in KINDS]))
def test_each_kind_s_fields_are_in_its_view(spark: SparkSession, said: tuple[Envelope, ...]) -> None:
    """As `wire` has them, every kind that there is, whatever is in its texts."""
    rows = []
    for envelope, (row, bad) in zip(said, _records(spark, [encode(each) for each in said]), strict=True):
        assert bad is None
        assert row is not None
        assert row["is_read"], row
        assert (row["kind"], row["emitter_seq"]) == (envelope.kind, envelope.emitter_seq)
        assert (row["is_first"], row["replica"]) == (envelope.is_first, envelope.replica)
        rows.append(row)
    spark.createDataFrame(rows, schema_of(EVENT_COLUMNS)).createOrReplaceTempView("said")
    for envelope in said:
        [row] = spark.sql(view_of(envelope.kind, "said")).collect()
        written = BODIES[envelope.kind].write(envelope.event)  # type: ignore[arg-type]
        for field in OWN_FIELDS[envelope.kind]:
            assert _plain(row[field.column]) == written[field.name], field


def _plain(value: object) -> object:
    if isinstance(value, Row):
        return {name: _plain(each) for name, each in value.asDict().items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
