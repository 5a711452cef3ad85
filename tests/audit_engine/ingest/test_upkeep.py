"""What was quarantined is taken up once it can be read, and the tables are kept in order meanwhile."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.ingest.replay.spark import Replayed, replay, stretches
from audit_engine.ingest.rows import plain
from audit_engine.ingest.rows import spark as rows_of
from audit_engine.ingest.rows.pieces import spark as pieces
from audit_engine.ingest.spark import Ingest
from audit_engine.tables import columns
from audit_engine.tables.columns import EVENTS, QUARANTINE, Column
from audit_engine.tables.errors import TableBehind
from audit_engine.tables.maintenance import FILE_BYTES, DayFiles, drifted, due
from audit_engine.tables.maintenance.spark import carry_out, needed
from audit_engine.tables.spark import EvidenceTable, EvidenceTables, properties_of
from seawall.local.broker import LocalCluster
from tests.audit_engine.ingest.topics import DAY, EventTopic, Stopped, stopping_at, value_of
from tests.seawall.cli.calling import call

BEFORE = "2026-01-30"
READ, REFUSED = 6, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    topic: EventTopic
    tables: EvidenceTables

    def ingest(self, spark: SparkSession, day: str) -> None:
        Ingest(spark, self.tables, self.topic.source(), day=lambda: day).once()

    def offsets(self) -> Counter[int]:
        return Counter(row["kafka_offset"] for row in self.tables.events.rows().collect())

    def call(self, *arguments: str) -> tuple[int, list[dict[str, object]] | dict[str, object]]:
        environ = {"SEAWALL_AUDIT__TABLES": self.topic.root}
        ended = call("audit", *arguments, "--json", environ=environ)
        assert ended.stdout, ended.stderr
        return ended.status, json.loads(ended.stdout)


@pytest.fixture(scope="module")
def kept(spark: SparkSession, broker: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A closed day in three commits: events, records that were above the limit of then, and a torn one."""
    topic = EventTopic(broker=broker, name="ingest-upkeep", folder=tmp_path_factory.mktemp("upkeep")).make(1)
    kept = Kept(topic=topic, tables=topic.tables(spark))
    topic.produce(*[value_of(n) for n in range(READ)])
    kept.ingest(spark, BEFORE)
    made = (rows_of._steps, pieces._spelled)  # with the limit in them
    with pytest.MonkeyPatch.context() as patch:
        for each in (rows_of, plain):
            patch.setattr(each, "EVENT_BYTES_MAX", 10)
        for cached in made:
            cached.cache_clear()
        topic.produce(*[value_of(n) for n in range(READ, READ + REFUSED)])
        kept.ingest(spark, BEFORE)
    for cached in made:
        cached.cache_clear()
    topic.produce(b"torn", value_of(READ + REFUSED))
    kept.ingest(spark, BEFORE)
    return kept


def test_what_can_be_read_by_now_is_replayed_once(kept: Kept, spark: SparkSession) -> None:
    """Not by a dry run; not twice after a kill just behind the commit; and ingest goes on where it was."""
    refused = set(range(READ, READ + REFUSED))
    torn = READ + REFUSED
    standing = kept.tables.events.standing().next_offsets

    seen = replay(spark, kept.tables, day=DAY, is_dry_run=True)
    with_none = kept.offsets()
    with pytest.raises(Stopped):
        replay(spark, kept.tables, day=DAY, at=stopping_at("replayed"))
    status, done = kept.call("quarantine", "replay")
    listed_status, listed = kept.call("quarantine", "list")

    assert seen == Replayed(looked_at=REFUSED + 1, replayed=REFUSED, replayed_before=0, unreadable=1)
    assert not refused & set(with_none)
    assert (status, done) == (
        1,
        {
            "looked_at": REFUSED + 1,
            "replayed": 0,
            "replayed_before": REFUSED,
            "unreadable": 1,
            "is_dry_run": False,
        },
    )
    assert kept.offsets() == Counter(set(range(READ + REFUSED + 2)) - {torn})
    assert kept.tables.events.standing().next_offsets == standing
    mark = kept.tables.events.standing().mark
    assert mark is not None
    assert mark.replayed == {0: ((READ, READ + REFUSED),)}
    assert isinstance(listed, list)
    assert {row["kafka_offset"]: row["is_replayed"] for row in listed} == {
        **dict.fromkeys(refused, True),
        torn: False,
    }
    assert listed_status == 1


def test_a_closed_day_is_rewritten_once_and_ingest_goes_on(kept: Kept, spark: SparkSession) -> None:
    """Few files instead of many, the same rows, in the order of the logs; the open day is left alone."""
    root, before = kept.topic.root, kept.offsets()
    status, planned = kept.call("maintain", "--dry-run")
    assert isinstance(planned, list)
    wanted = needed(spark, root, EVENTS, today=DAY)

    done = carry_out(spark, root, wanted)
    again = needed(spark, root, EVENTS, today=DAY)
    kept.topic.produce(value_of(99))
    kept.ingest(spark, DAY)

    assert (status, [each["table"] for each in planned]) == (0, [EVENTS, QUARANTINE])
    assert [(each.day, each.files > 1) for each in wanted.days] == [(BEFORE, True)]
    assert [(each.day, each.files) for each in done.days] == [(BEFORE, 1)]
    assert (again.days, again.columns, again.properties) == ((), (), {})
    assert set(kept.offsets()) == set(before) | {max(before) + 1}
    assert set(kept.offsets().values()) == {1}
    history = spark.sql(f"DESCRIBE HISTORY {kept.tables.events.quoted}").where("operation = 'OPTIMIZE'")
    assert [row["operationParameters"]["zOrderBy"] for row in history.collect()] == ['["log_id"]']


def test_columns_and_windows_are_maintain_s(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest that knows more than its table says so and adds nothing; a shortened window is long again."""
    table = EvidenceTable(spark, str(tmp_path), QUARANTINE)
    shorter = "'delta.deletedFileRetentionDuration' = 'interval 8 days'"
    spark.sql(f"ALTER TABLE {table.quoted} SET TBLPROPERTIES ({shorter})")
    added = Column(name="added_later", sql_type="BIGINT")
    monkeypatch.setitem(columns.COLUMNS, QUARANTINE, (*columns.QUARANTINE_COLUMNS, added))

    with pytest.raises(TableBehind, match="added_later"):
        EvidenceTable(spark, str(tmp_path), QUARANTINE)
    wanted = needed(spark, str(tmp_path), QUARANTINE, today=DAY)
    carry_out(spark, str(tmp_path), wanted)

    assert wanted.columns == ("added_later",)
    assert list(wanted.properties) == ["delta.deletedFileRetentionDuration"]
    after = EvidenceTable(spark, str(tmp_path), QUARANTINE)
    assert after.rows().columns[-1] == "added_later"
    assert drifted(after.properties(), properties_of(QUARANTINE)) == {}


def test_an_open_day_and_a_finished_one_are_let_be() -> None:
    """As many files as its bytes want are enough; the day of commits made now is never touched."""
    big = 3 * FILE_BYTES + 1
    days = [
        DayFiles(day="2026-01-31", files=9, size_bytes=9),
        DayFiles(day="2026-01-30", files=1, size_bytes=9),
        DayFiles(day="2026-01-29", files=4, size_bytes=big),
        DayFiles(day="2026-01-28", files=5, size_bytes=big),
        DayFiles(day="2026-01-27", files=2, size_bytes=9),
    ]

    assert [each.day for each in due(days, today="2026-01-31")] == ["2026-01-27", "2026-01-28"]


def test_positions_are_told_as_ranges() -> None:
    """Half-open, each partition's own."""
    assert stretches([(0, 3), (0, 4), (0, 6), (1, 7)]) == {0: ((3, 5), (6, 7)), 1: ((7, 8),)}
    assert stretches([]) == {}
