"""Every record of the topic is in the tables once by its position, whatever ends a run and wherever."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

from audit_engine.ingest.position import TopicReach
from audit_engine.ingest.spark import Ingest
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.errors import CommitSkipped, TopicEndsEarlier, TopicReplaced
from audit_engine.tables.marks import Mark
from audit_engine.tables.spark import APP_ID, ASKED_BY, EvidenceTable, EvidenceTables
from seawall.local.broker import LocalCluster
from tests.audit_engine.events import LOG, OTHER_LOG, stalled
from tests.audit_engine.ingest.topics import DAY, EventTopic, Stopped, stopping_at, value_of

STEPS = ("audit_quarantine written", "quarantined", "settled", "audit_events written")
EACH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the tables hold after a run was stopped at each step, and one went to its end."""

    topic: EventTopic
    tables: EvidenceTables
    events: list[Row]
    quarantine: list[Row]
    stopped_at: list[str]
    counted: list[int]  # in quarantine, as each run says
    ends: dict[int, int]


@pytest.fixture(scope="module")
def told(spark: SparkSession, broker: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Each run has a checkpoint of its own, so that batch numbers begin at 0 again under one txnAppId."""
    topic = EventTopic(broker=broker, name="ingest-steps", folder=tmp_path_factory.mktemp("steps")).make(2)
    tables = topic.tables(spark)
    again = value_of(1)
    topic.produce(again, again, again.replace(b'"stalled_ms":1', b'"stalled_ms":2'))
    stopped_at, counted = [], []
    for run, step in enumerate(STEPS):
        first = run * EACH
        topic.publish(stalled(n, (LOG, OTHER_LOG)[n % 2]) for n in range(first, first + EACH))
        topic.produce(f"garbage {run}".encode())
        ingest = topic.run(spark, tables, at=stopping_at(step))
        try:
            ingest.once()
        except Stopped as stopped:
            stopped_at.append(str(stopped))
        counted.append(ingest.so_far.quarantined)
    topic.produce(value_of(2).replace(b"upload_stalled", b"not_known_yet"), None)
    counted.append(topic.ingest(spark, tables).quarantined)
    return Told(
        topic=topic,
        tables=tables,
        events=tables.events.rows().collect(),
        quarantine=tables.quarantine.rows().collect(),
        stopped_at=stopped_at,
        counted=counted,
        ends=dict(topic.source().reach.reach(topic.name).ends),
    )


def test_each_position_is_in_one_of_the_tables_once(told: Told) -> None:
    """Killed after each write, and before what was written was known: nothing lost, nothing twice."""
    positions = Counter(
        (row["kafka_partition"], row["kafka_offset"]) for row in [*told.events, *told.quarantine]
    )

    assert told.stopped_at == list(STEPS)
    assert sum(told.ends.values()) > len(STEPS) * EACH
    assert positions == Counter((p, offset) for p, end in told.ends.items() for offset in range(end))


def test_sequences_have_no_hole(told: Told) -> None:
    """Each run of the emitter, and each log in it, counts from 0 to its last."""
    spooled = [row for row in told.events if row["emitter_broker_id"] == 1]
    runs = {row["emitter_incarnation"] for row in spooled}

    assert len(runs) == len(STEPS)
    for run in runs:
        of_run = [row for row in spooled if row["emitter_incarnation"] == run]
        assert sorted(row["emitter_seq"] for row in of_run) == list(range(EACH))
        for log in (LOG, OTHER_LOG):
            of_log = [row["log_seq"] for row in of_run if row["log_id"] == f"{log.topic_id}:{log.partition}"]
            assert sorted(of_log) == list(range(EACH // 2))


def test_commits_name_ranges_without_a_hole_and_the_next_offsets(told: Told) -> None:
    """What the table says of itself leads to where its rows end, and so do the rows alone."""
    marks = sorted(told.tables.events._marks(), key=lambda mark: mark.number)

    held: dict[int, int] = {}
    for number, mark in enumerate(marks):
        assert mark.number == number
        for partition, (start, end) in mark.ranges.items():
            assert start == held.get(partition, 0)
            held[partition] = end
    assert held == dict(marks[-1].next_offsets) == told.ends
    assert told.tables.events.standing().next_offsets == told.ends
    by_rows = told.tables.events.offsets_by_rows()
    assert by_rows[1] == told.ends[1]


def test_a_second_delivery_is_kept_and_can_be_told_apart(told: Told) -> None:
    """One number three times, twice the same and once not: three rows by position, two payloads."""
    twice = [row for row in told.events if (row["emitter_broker_id"], row["emitter_seq"]) == (2, 1)]

    assert len({row["kafka_offset"] for row in twice}) == 3
    assert sorted(Counter(row["payload_hash"] for row in twice).values()) == [1, 2]
    assert sorted(json.loads(row["body"])["stalled_ms"] for row in twice) == [1, 1, 2]


def test_what_is_no_event_is_kept_in_quarantine(told: Told) -> None:
    """With its bytes, its position and why."""
    found = {row["value"] and bytes(row["value"]): row for row in told.quarantine}

    assert set(found) == {None, *(f"garbage {run}".encode() for run in range(len(STEPS)))}
    assert found[b"garbage 0"]["reason"] == "not_json"
    assert found[None]["reason"] == "no_value"
    assert bytes(found[b"garbage 0"]["key"]) == b"key"
    assert all(row["kafka_end_offset"] == row["kafka_offset"] + 1 for row in told.quarantine)


def test_a_run_says_what_one_before_it_was_killed_with(told: Told) -> None:
    """The first two had put a record into quarantine and were killed before audit_events was past it: the
    third says so of both and of its own. Of what audit_events was past before, none says it again."""
    assert told.counted == [0, 0, 3, 0, 1]


def test_an_unknown_kind_is_an_event_with_its_body_as_it_came(told: Told) -> None:
    """So that its emitter's sequence stays whole."""
    [row] = [row for row in told.events if row["kind"] == "not_known_yet"]

    assert (row["emitter_seq"], row["is_read"]) == (2, False)
    assert json.loads(row["body"])["frontier"] == 2


def test_a_number_that_delta_knows_is_an_error_and_not_a_silent_loss(told: Told, spark: SparkSession) -> None:
    """The trap itself: Delta drops new rows under a reused or a lower txnVersion and says nothing."""
    table = told.tables.events
    before = table.rows().count()
    rows = table.rows().limit(1).cache()
    standing = table.standing()

    def mark(number: int) -> Mark:
        return Mark(
            token=f"another {number}",
            number=number,
            topic=told.topic.name,
            topic_id="x",
            ranges={0: (0, 1)},
            next_offsets={0: 1},
        )

    for number in (standing.number, 0):
        options = {"txnAppId": APP_ID, "txnVersion": str(number)}
        rows.write.format("delta").mode("append").options(**options).save(table.path)
        with pytest.raises(CommitSkipped):
            table.append(rows, mark(number))

    assert table.rows().count() == before
    assert table.standing() == standing


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"topic_id": "another"}, TopicReplaced),
        ({"ends": {0: 1, 1: 1}}, TopicEndsEarlier),
    ],
)
def test_a_topic_that_is_not_the_table_s_is_refused(
    told: Told, spark: SparkSession, said: dict[str, Any], error: type[Exception]
) -> None:
    """Made anew, or with its end lost: to go on would pass over events. Nothing is read, nothing written."""
    source = told.topic.source()
    before = told.tables.events.standing()

    class Changed:
        def reach(self, topic: str) -> TopicReach:
            return replace(source.reach.reach(topic), **said)

    with pytest.raises(error):
        Ingest(spark, told.tables, replace(source, reach=Changed()), day=lambda: DAY).once()

    assert told.tables.events.standing() == before


def test_a_history_without_a_mark_is_made_up_for_by_the_rows(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's window may let every commit of ours go: what is in the table is not read again."""
    monkeypatch.setattr(EvidenceTable, "_marks", lambda _: iter(()))

    standing = told.tables.events.standing()

    assert standing.mark is None
    assert standing.next_offsets == told.tables.events.offsets_by_rows()
    assert standing.next_offsets[1] == told.ends[1]


def test_where_a_table_stands_is_asked_without_a_job(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """Each start asks both tables, and nearly always one of them holds nothing."""
    tables = EventTopic(broker=broker, name="ingest-standing", folder=tmp_path).tables(spark)
    spark.sparkContext.setJobGroup("standing", "")

    standing = tables.quarantine.standing()

    assert standing.number == -1
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("standing")) == []


def test_a_commit_has_few_files_with_bounds_of_what_is_asked_by(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """No more files than the session has cores, however many partitions the topic has."""
    topic = EventTopic(broker=broker, name="ingest-files", folder=tmp_path).make(5)
    for partition in range(5):
        topic.produce(value_of(partition), partition=partition)

    done = topic.ingest(spark, topic.tables(spark))

    files = list(tmp_path.glob(f"tables/{EVENTS}/ingest_day={DAY}/*.parquet"))
    assert done.offsets == 5
    assert 0 < len(files) <= spark.sparkContext.defaultParallelism
    assert {name for file in files for name in _bounded(file)} == set(ASKED_BY[EVENTS])


def _bounded(file: Path) -> Iterator[str]:
    """The columns whose least and most the file says."""
    group = pq.ParquetFile(file).metadata.row_group(0)
    for column in map(group.column, range(group.num_columns)):
        if column.statistics is not None and column.statistics.has_min_max:
            yield column.path_in_schema


def test_a_row_cannot_be_changed_and_a_day_can_be_read_alone(told: Told, spark: SparkSession) -> None:
    """appendOnly, the change feed, partitions by the commit's day, and a structure that Delta keeps."""
    [detail] = spark.sql(f"DESCRIBE DETAIL delta.`{told.tables.events.path}`").collect()

    assert detail["partitionColumns"] == ["ingest_day"]
    assert detail["properties"]["delta.appendOnly"] == "true"
    assert detail["properties"]["delta.enableChangeDataFeed"] == "true"
    assert "emitter_seq >= 0" in detail["properties"]["delta.constraints.structure"]
    assert {row["ingest_day"].isoformat() for row in told.events} == {DAY}
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        spark.sql(f"DELETE FROM delta.`{told.tables.events.path}` WHERE kafka_offset = 0")
