"""What is told to be in order by its looks is, and what our writers write looks so."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from audit_engine.errors import EventError
from audit_engine.ingest.rows.plain import LIST_MAX, plain_values
from audit_engine.wire import decode
from tests.audit_engine.ingest.test_rows import DAMAGED, GOOD, READABLE

VECTORS = Path(__file__).parents[2] / "vectors" / "events"
LONG = 50_000  # members of a list, which a matcher that goes down a level for each would not outlive


def _plain(spark: SparkSession, values: list[tuple[str, bytes]]) -> list[bool]:
    """Of each value whether it looks like the kind beside it, by Spark's own matcher."""
    patterns = plain_values()
    rows = [(at, kind, value) for at, (kind, value) in enumerate(values)]
    frame = spark.createDataFrame(rows, "at INT, kind STRING, value BINARY")
    patterns_of = spark.createDataFrame(list(patterns.items()), "kind STRING, pattern STRING")
    told = frame.join(patterns_of, "kind").selectExpr("at", "CAST(value AS STRING) RLIKE pattern AS is_plain")
    found = {row["at"]: row["is_plain"] for row in told.collect()}
    return [found[at] for at in range(len(values))]


def test_each_kind_as_our_writers_write_it_is_plain(spark: SparkSession) -> None:
    """The checked-in vectors, every kind: none of them is read the long way."""
    vectors = {each.stem: each.read_bytes().removesuffix(b"\n") for each in VECTORS.glob("*.json")}

    told = dict(zip(vectors, _plain(spark, list(vectors.items())), strict=True))

    assert set(told) == set(plain_values())
    assert [kind for kind, is_plain in told.items() if not is_plain] == []


def test_what_is_plain_is_known_whole(spark: SparkSession) -> None:
    """Of damaged and of odd values those that wire reads with nothing left over; a long list is not."""
    leader = (VECTORS / "leader_changed.json").read_bytes().removesuffix(b"\n")
    start = leader.index(b'"isr":[') + len(b'"isr":[')
    end = leader.index(b"]", start)
    lists = [leader[:start] + b",".join([b"1"] * count) + leader[end:] for count in (LIST_MAX, LONG)]
    odd = [value for value in (*DAMAGED, *READABLE) if value]

    told = _plain(spark, [("upload_stalled", value) for value in odd])
    told_of_lists = _plain(spark, [("leader_changed", value) for value in lists])

    assert told_of_lists == [True, False]
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

    told = _plain(spark, [("upload_stalled", value) for value in changed])

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
