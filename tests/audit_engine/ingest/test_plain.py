"""What is told to be in order by its looks is, and what our writers write looks so."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.errors import EventError
from audit_engine.ingest.rows.pieces.spark import read_by
from audit_engine.ingest.rows.spark import events, examined, plain_events
from audit_engine.wire import decode
from audit_engine.wire.codec import BODIES
from tests.audit_engine.ingest.test_rows import DAMAGED, GOOD, READABLE, SCHEMA
from tests.audit_engine.ingest.topics import DAY

VECTORS = Path(__file__).parents[2] / "vectors" / "events"
LONG = 50_000  # members of a list, which a matcher that went down a level for each would not outlive
# Said in a text of the body as `canonical` writes it; the first is what makes such an event not rare.
ESCAPES = [b'\\"', b"\\\\", b"\\n", b"\\t", b'\\",\\"cluster_id\\":\\"']
NO_ESCAPES = [b"\\x", b"\\", b"\n", b'"', b"\\u12"]


def _plain(spark: SparkSession, values: list[bytes]) -> list[bool]:
    """Of each value whether it is plain."""
    rows = list(enumerate(values))
    frame = spark.createDataFrame(rows, "at INT, value BINARY")
    told = frame.select("at", read_by(spark, "value").isNotNull().alias("is_plain"))
    found = {row["at"]: row["is_plain"] for row in told.collect()}
    return [found[at] for at in range(len(values))]


def test_each_kind_as_our_writers_write_it_is_plain(spark: SparkSession) -> None:
    """The checked-in vectors, every kind: none of them is read the long way."""
    vectors = {each.stem: each.read_bytes().removesuffix(b"\n") for each in VECTORS.glob("*.json")}

    told = dict(zip(vectors, _plain(spark, list(vectors.values())), strict=True))

    assert set(told) == set(BODIES)
    assert [kind for kind, is_plain in told.items() if not is_plain] == []


def test_what_is_plain_is_known_whole(spark: SparkSession) -> None:
    """Of damaged and of odd values those that wire reads with nothing left over; any list."""
    leader = (VECTORS / "leader_changed.json").read_bytes().removesuffix(b"\n")
    start = leader.index(b'"isr":[') + len(b'"isr":[')
    end = leader.index(b"]", start)
    lists = [leader[:start] + b",".join([b"1"] * count) + leader[end:] for count in (0, 1, LONG)]
    odd = [value for value in (*DAMAGED, *READABLE) if value]

    told = _plain(spark, odd)

    assert _plain(spark, lists) == [True] * 3
    for value, is_plain in zip(odd, told, strict=True):
        if is_plain:
            assert not decode(value).unrecognised, value
    assert told[odd.index(GOOD)]
    readable = [value for value, is_plain in zip(odd, told, strict=True) if is_plain]
    assert len(readable) == 2, "the event, and the event that says that it is the first"


def test_nothing_that_wire_refuses_is_plain(spark: SparkSession) -> None:
    """Each byte of an event left out, doubled or replaced: what still looks right can be read, whole."""
    changed = [
        each
        for at in range(len(GOOD))
        for each in (GOOD[:at] + GOOD[at + 1 :], GOOD[:at] + GOOD[at : at + 1] + GOOD[at:], _replaced(at))
    ]

    told = _plain(spark, changed)

    for value, is_plain in zip(changed, told, strict=True):
        if not is_plain:
            continue
        try:
            envelope = decode(value)
        except EventError as refused:
            raise AssertionError(value) from refused
        assert (envelope.kind, dict(envelope.unrecognised)) == ("upload_stalled", {})
    assert 0 < sum(told) < len(changed)


def _replaced(at: int) -> bytes:
    other = b"0" if GOOD[at : at + 1] != b"0" else b'"'
    return GOOD[:at] + other + GOOD[at + 1 :]


def test_an_escape_in_the_body_is_plain(spark: SparkSession) -> None:
    """An error that quotes something is an event like any other; what JSON does not know is not."""
    said = [GOOD.replace(b'"reason":"nothing"', b'"reason":"' + each + b'"') for each in ESCAPES]
    wrong = [GOOD.replace(b'"reason":"nothing"', b'"reason":"' + each + b'"') for each in NO_ESCAPES]

    assert _plain(spark, [*said, *wrong]) == [True] * len(said) + [False] * len(wrong)
    for value in said:
        assert not decode(value).unrecognised


def test_what_is_plain_comes_to_the_row_of_the_long_way(spark: SparkSession) -> None:
    """Every kind, as our writers write it and with a blank behind: but for the hash the same columns."""
    values = [each.read_bytes().removesuffix(b"\n") for each in sorted(VECTORS.glob("*.json"))]
    values += [value for value in READABLE if value.startswith(b"{")]
    rows = spark.createDataFrame(
        [(None, value, "t", 0, at, datetime(2026, 1, 1), 0) for at, value in enumerate(values)],  # noqa: DTZ001
        SCHEMA,
    )
    spaced = rows.withColumn("value", F.concat("value", F.lit(b" ")))
    plain, long = (_by_offset(events(examined(each), DAY)) for each in (rows, spaced))

    assert plain.keys() == set(range(len(values)))
    assert plain == long
    assert _by_offset(plain_events(rows.where(F.col("offset") == 0), DAY)) == {0: plain[0]}


def _by_offset(frame: DataFrame) -> dict[int, dict[str, object]]:
    return {row["kafka_offset"]: _but_the_value(row) for row in frame.collect()}


def _but_the_value(row: Row) -> dict[str, object]:
    """`unrecognised` is the whole value, and only whether it is there is compared."""
    return row.asDict() | {"payload_hash": None, "unrecognised": row["unrecognised"] is not None}
