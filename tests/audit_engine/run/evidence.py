"""Puts what histories say into `audit_events`, as ingest does: encoded, read, committed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from audit_engine.ingest.rows.spark import events, examined
from audit_engine.run.spark import AuditRun, Means
from audit_engine.run.told import value_of
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.marks import Mark, Range, furthest, ranges
from audit_engine.tables.spark import EvidenceTable
from rules.machine import Terms, Told

DAY = "2025-11-18"
TOPIC = "__seawall_audit"
NOW_MS = 1_900_000_000_000
KAFKA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
    " timestampType INT"
)


class Evidence:
    """The table of events of one test, filled as often as it likes."""

    def __init__(self, spark: SparkSession, folder: Path, *, at_ms: int = NOW_MS) -> None:
        """`at_ms`: when the broker took the records."""
        self._spark = spark
        self._at = datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
        self.root = str(folder / "tables")
        self._table = EvidenceTable(spark, self.root, EVENTS)

    def add(self, said: Iterable[Told], *, quarantined: int | None = None, day: str = DAY) -> None:
        """One commit behind all that is there, in the order given, on one partition. At the offset
        `quarantined` lies a record that could not be read; `day`: of ingest's clock."""
        values = [value_of(told) for told in said]
        begin = dict(self._table.standing().next_offsets)
        first = begin.get(0, 0)
        offsets = [at for at in range(first, first + len(values) + 1) if at != quarantined]
        end = {0: first + len(values) + (quarantined is not None)}
        self._commit(
            values,
            offsets[: len(values)],
            ranges=ranges(begin, end),
            next_offsets=furthest(begin, end),
            day=day,
        )

    def replay(self, told: Told, offset: int) -> None:
        """A record of the past, taken up from the quarantine: it moves no offset."""
        begin = dict(self._table.standing().next_offsets)
        self._commit([value_of(told)], [offset], next_offsets=begin, replayed={0: ((offset, offset + 1),)})

    def _commit(
        self,
        values: list[bytes],
        offsets: list[int],
        *,
        next_offsets: dict[int, int],
        ranges: dict[int, Range] | None = None,
        replayed: dict[int, tuple[Range, ...]] | None = None,
        day: str = DAY,
    ) -> None:
        rows = [
            (None, value, TOPIC, 0, offset, self._at, 1)
            for offset, value in zip(offsets, values, strict=True)
        ]
        records = self._spark.createDataFrame(rows, KAFKA)
        mark = Mark(
            token=uuid.uuid4().hex,
            number=self._table.standing().number + 1,
            topic=TOPIC,
            topic_id="id",
            ranges=ranges or {},
            next_offsets=next_offsets,
            replayed=replayed or {},
        )
        self._table.append(events(examined(records), day), mark)

    def audit(
        self, terms: Terms | None = None, *, has_gate: bool = False, docs: Path | None = None
    ) -> AuditRun:
        means = Means(
            terms=terms or Terms(), now_ms=lambda: NOW_MS, version="test", has_gate=has_gate, docs=docs
        )
        return AuditRun(self._spark, self.root, means)
