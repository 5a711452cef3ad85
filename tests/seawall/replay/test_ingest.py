"""`seawall replay ingest`: a topic of events on a real broker, executed again, and tables held against it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.tables.columns import EVENTS
from seawall.local.broker import LocalCluster
from seawall.replay.ingest.against import EVENT, QUARANTINE, Executions, Row, against
from tests.audit_engine.events import LOG, OTHER_LOG, stalled
from tests.audit_engine.ingest.topics import EventTopic, value_of
from tests.seawall.cli.calling import Called, call
from workers.proof import Divergence, Equal

EACH = 6
ROWS = EACH + 3  # with what is no event, and a kind that is not known


def replayed(topic: EventTopic, *more: str, tables: str | None = None) -> Called:
    environ = {"SEAWALL_KAFKA__BOOTSTRAP": topic.broker.bootstrap, "SEAWALL_AUDIT__TOPIC": topic.name}
    place = ("--tables", tables or topic.root)
    return call("replay", "ingest", "--json", *place, *more, environ=environ)


@pytest.fixture
def topic(spark: SparkSession, broker: LocalCluster, tmp_path: Path) -> EventTopic:
    """Events, an unknown kind and what is no event; all but the last record are ingested."""
    made = EventTopic(broker=broker, name=f"events-{tmp_path.name}", folder=tmp_path).make(2)
    tables = made.tables(spark)
    made.publish(stalled(n, (LOG, OTHER_LOG)[n % 2]) for n in range(EACH))
    made.produce(b"garbage", None, value_of(1).replace(b"upload_stalled", b"not_known_yet"))
    made.ingest(spark, tables)
    made.produce(value_of(99))
    return made


def test_the_topic_and_the_tables_come_to_the_same(topic: EventTopic, tmp_path: Path) -> None:
    """Twice by itself and against what ingest wrote: equal, and what is not ingested yet is counted."""
    equal = replayed(topic, "--compare")
    absent = replayed(topic, "--compare", tables=str(tmp_path / "nowhere"))

    assert (equal.status, absent.status) == (0, 3), equal.stdout + equal.stderr
    told = json.loads(equal.stdout)
    assert told["again"]["steps"] == ROWS + 1
    assert (told["live"]["rows"], told["live"]["not_yet"], told["live"]["read_since"]) == (ROWS, 1, 0)
    assert told["again"]["equal"] is told["live"]["first"]["equal"] is True
    assert json.loads(absent.stdout)["live"] is None
    assert not (tmp_path / "nowhere").exists()  # to ask makes no table


@pytest.mark.long
def test_a_row_that_says_something_else_is_named_by_its_place(spark: SparkSession, topic: EventTopic) -> None:
    """Whoever changed a table: the first offset of which the topic says otherwise, and exit code 1."""
    table = f"delta.`{topic.root}/{EVENTS}`"
    for is_append_only, statement in (
        ("false", f"UPDATE {table} SET body = '{{}}' WHERE kafka_partition = 0 AND emitter_broker_id = 2"),
        ("true", "SELECT 1"),
    ):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.appendOnly' = '{is_append_only}')")
        spark.sql(statement)
    [changed] = spark.sql(f"SELECT kafka_offset FROM {table} WHERE body = '{{}}'").collect()

    found = replayed(topic, "--compare")

    assert found.status == 1, found.stdout + found.stderr
    assert json.loads(found.stdout)["live"]["first"]["at"] == f"0@{changed[0]}"


def test_a_row_too_many_or_too_few_is_the_first_divergence() -> None:
    """Wherever it is, and on whichever side."""
    rows = [Row(0, offset, EVENT, json.dumps({"body": offset})) for offset in range(4)]

    for without in range(4):
        fewer = rows[:without] + rows[without + 1 :]
        for found in (against(fewer, rows).first, against(rows, fewer).first):
            assert isinstance(found, Divergence)
            assert (found.number, found.at) == (without, f"0@{without}")
    assert isinstance(against(rows, rows).first, Equal)
    assert isinstance(against(rows, [*rows, rows[-1]]).first, Divergence)  # one of them twice


def test_two_executions_are_compared_to_their_end() -> None:
    """Whoever takes the rows may stop: the hash is of all; where they part no more rows are had, on either
    side."""
    rows = [Row(0, offset, EVENT, json.dumps({"body": offset})) for offset in range(4)]
    stopped, whole = Executions(rows, rows), Executions(rows, iter(rows))
    assert next(iter(stopped)) == rows[0]
    assert list(whole) == rows

    for parted in (Executions(rows, rows[:2]), Executions(rows[:2], rows)):
        assert list(parted) == rows[:2]
        found = parted.compared()
        assert isinstance(found, Divergence)
        assert (found.number, found.at) == (2, "0@2")
    assert stopped.compared() == whole.compared()
    assert isinstance(whole.compared(), Equal)


@pytest.mark.parametrize(
    ("now", "then", "is_read_since"),
    [
        (Row(0, 1, EVENT, '{"is_read":true}'), Row(0, 1, QUARANTINE, '{"reason":"too_new"}'), True),
        (Row(0, 1, EVENT, '{"is_read":true,"a":1}'), Row(0, 1, EVENT, '{"is_read":false,"a":1}'), True),
        (Row(0, 1, EVENT, '{"is_read":true,"a":1}'), Row(0, 1, EVENT, '{"is_read":false,"a":2}'), False),
        (Row(0, 1, EVENT, '{"is_read":false}'), Row(0, 1, EVENT, '{"is_read":true}'), False),
        (Row(0, 1, QUARANTINE, '{"reason":"too_new"}'), Row(0, 1, EVENT, '{"is_read":true}'), False),
    ],
)
def test_only_a_newer_reader_may_say_more(now: Row, then: Row, is_read_since: bool) -> None:
    """What could not be read and can be by now is counted; anything else that differs is a divergence."""
    found = against([now], [then])

    assert isinstance(found.first, Equal) is is_read_since
    assert found.read_since == int(is_read_since)


def test_what_was_taken_up_from_quarantine_counts_as_its_event() -> None:
    """A replay of the quarantine leaves a row in both tables."""
    event, kept = Row(0, 7, EVENT, "{}"), Row(0, 7, QUARANTINE, '{"reason":"too_new"}')

    for held in ([event, kept], [kept, event]):
        found = against([event], held)
        assert (found.rows, found.read_since) == (1, 0)
        assert isinstance(found.first, Equal)
