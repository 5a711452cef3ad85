"""The two tables in Delta: made, checked, added to, and asked how far they go.

What Delta 4.4 does that has to be known: a write whose (txnAppId, txnVersion) is not above the last one of
that application is skipped *without an error*, whatever it holds. So the number of each commit is the
table's last plus one, and after each write the commit with our random token is looked for: if it is not
there, it was skipped, and no offset moves. Two writers that overlap are told apart by Delta itself, since
both raise the same application's number.

Owns the commits. Refuses to go on from anything but what the table says.

Invariant: when `append` has returned, the rows and their ranges are in the table, by exactly one commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, cast

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import StructField, StructType

from audit_engine.tables.columns import COLUMNS, EVENTS, QUARANTINE, STRUCTURE, Column
from audit_engine.tables.errors import CommitSkipped, OtherWriter, TableBehind, TableUnfit
from audit_engine.tables.marks import Mark, Range, read, written

APP_ID = "seawall.audit.ingest"
PROPERTIES = {
    "delta.appendOnly": "true",
    "delta.enableChangeDataFeed": "true",
    # Of an audit: what was there on a day must be readable as long as the day may be asked about.
    "delta.logRetentionDuration": "interval 400 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
# What a run, a replay and a person ask by: of others, least and most cost every row and leave out no file.
ASKED_BY = {
    EVENTS: ("kafka_partition", "kafka_offset", "log_id", "observed_at_ms"),
    QUARANTINE: ("kafka_partition", "kafka_offset"),
}
# Of events no value of these comes twice: a dictionary of them is given up once it is full.
NEVER_ALIKE = (
    "body",
    "emitter_seq",
    "event_id",
    "kafka_offset",
    "kafka_timestamp_ms",
    "observed_at_ms",
    "occurred_at_ms",
    "payload_hash",
)
# How a session is to write them; nobody asks from where to where the most of them go. Who reads holds as much
# of a file as lies together.
PARQUET = {"parquet.block.size": str(32 << 20)}
PARQUET |= {f"parquet.enable.dictionary#{name}": "false" for name in NEVER_ALIKE}
PARQUET |= {
    f"parquet.column.statistics.enabled#{column.name}": "false"
    for column in COLUMNS[EVENTS]
    if column.name not in ASKED_BY[EVENTS]
}
CONSTRAINT = "structure"
POSITION = ("kafka_topic", "kafka_partition", "kafka_offset")
# What Delta raises when another's commit came first. In its Python none of them is a kind of the last.
CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
    DeltaConcurrentModificationException,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a table goes: the number of its last commit of ours, -1 for none, and that commit's mark."""

    number: int
    mark: Mark | None
    next_offsets: dict[int, int]


class EvidenceTable:
    """One table. Made where there is none; one that lacks columns is for who adds them, `may_be_behind`."""

    def __init__(self, spark: SparkSession, root: str, name: str, *, may_be_behind: bool = False) -> None:
        self.name = name
        self.path = path_of(root, name)
        self._spark = spark
        self._columns = COLUMNS[name]
        self._make()
        self._check(may_be_behind=may_be_behind)

    def rows(self) -> DataFrame:
        return self._spark.read.format("delta").load(self.path)

    def standing(self) -> Standing:
        """From the table alone: its last mark, or where none is left in the history, its rows.

        While ingest goes on, the mark may be of a commit behind the one whose number was read.
        """
        number = self._last_number()
        mark = self._last_mark() if number >= 0 else None
        if mark is not None:
            return Standing(number=max(number, mark.number), mark=mark, next_offsets=dict(mark.next_offsets))
        if number < 0:
            return Standing(number=number, mark=None, next_offsets={})
        return Standing(number=number, mark=None, next_offsets=self.offsets_by_rows())

    def replayed_after(self, number: int, last: int) -> dict[int, list[Range]]:
        """What commits behind that one up to the last took up from the quarantine: offsets below where the
        table stood."""
        found: dict[int, list[Range]] = {}
        behind = takewhile(lambda mark: mark.number > number, self._marks())
        for mark in (each for each in behind if each.number <= last):
            for partition, each in mark.replayed.items():
                found.setdefault(partition, []).extend(each)
        return {partition: sorted(each) for partition, each in sorted(found.items())}

    def rows_after(self, number: int, last: int) -> int | None:
        """How many rows the commits behind that one up to the last added; None where their files are gone."""
        found, oldest = 0, None
        for mark, rows in self._commits():
            if mark.number <= number:
                return found
            if rows is None:
                return None
            found += rows if mark.number <= last else 0
            oldest = mark.number
        return found if number < 0 and oldest == 0 else None

    def offsets_by_rows(self) -> dict[int, int]:
        """Behind the last row of each partition: below what a mark says by transaction markers at most."""
        found = self.rows().groupBy("kafka_partition").agg(F.max("kafka_offset").alias("last")).collect()
        return {row["kafka_partition"]: row["last"] + 1 for row in found}

    def append(
        self, rows: DataFrame, mark: Mark, *, before_reading_back: Callable[[], None] = lambda: None
    ) -> None:
        """Raises OtherWriter, CommitSkipped; then the table is as it was."""
        try:
            (
                rows.select(*[column.name for column in self._columns])
                .write.format("delta")
                .mode("append")
                .option("txnAppId", APP_ID)
                .option("txnVersion", str(mark.number))
                .option("userMetadata", written(mark))
                .save(self.path)
            )
        except CONFLICTS as refused:
            raise OtherWriter(table=self.path) from refused
        before_reading_back()
        if not self._holds(mark):
            raise CommitSkipped(table=self.path, number=mark.number)

    def _holds(self, mark: Mark) -> bool:
        return mark in takewhile(lambda found: found.number >= mark.number, self._marks())

    def _last_mark(self) -> Mark | None:
        return next(self._marks(), None)

    def _marks(self) -> Iterator[Mark]:
        return (mark for mark, _ in self._commits())

    def _commits(self) -> Iterator[tuple[Mark, int | None]]:
        """Newest first, with ever lower numbers; and how many rows each added, where it says so.

        What others commit, such as OPTIMIZE, has no mark.

        Out of the commits' own files: Delta's history is a job of Spark's, which takes longer than a commit.
        """
        _, snapshot = log_and_snapshot(self._spark, self.path)
        for _, lines in commits(self._spark, self.path, range(snapshot.version(), -1, -1)):
            if (mark := read(_commit_info(lines).get("userMetadata"))) is not None:
                yield mark, _rows_added(lines)

    def _last_number(self) -> int:
        """Delta keeps it in every checkpoint, so that it outlives the history.

        It is beside the last commit, too. Were that too low, Delta would skip the next commit, and its token
        would not be found.
        """
        _, snapshot = log_and_snapshot(self._spark, self.path)
        beside = snapshot.checksumOpt()  # its setTransactionsIfKnown would read all that is in force
        known = beside.get().setTransactions() if beside.isDefined() else beside
        found = (known.get() if known.isDefined() else snapshot.setTransactions()).iterator()
        while found.hasNext():
            if (each := found.next()).appId() == APP_ID:
                return int(each.version())
        return -1

    def _make(self) -> None:
        if DeltaTable.isDeltaTable(self._spark, self.path):
            return
        columns = ", ".join(
            f"`{column.name}` {column.sql_type}"
            + (" NOT NULL" if column.is_needed else "")
            + (f" COMMENT {_literal(column.comment)}" if column.comment else "")
            for column in self._columns
        )
        wanted = properties_of(self.name).items()
        properties = ", ".join(f"{_literal(name)} = {_literal(value)}" for name, value in wanted)
        # One statement: column by column, by the builder, it took seconds.
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.quoted} ({columns}) USING delta"
            f" PARTITIONED BY (ingest_day) TBLPROPERTIES ({properties})"
        )

    def _check(self, *, may_be_behind: bool) -> None:
        found = {each.name: each for each in self.rows().schema}
        for wanted in schema_of(self._columns):
            there, kind = found.get(wanted.name), wanted.dataType.simpleString()
            if there is not None and there.dataType.simpleString() != kind:
                why = f"{wanted.name} is {there.dataType.simpleString()}, not {kind}"
                raise TableUnfit(table=self.path, why=why)
        missing = self.missing()
        if needed := [column.name for column in missing if column.is_needed]:
            raise TableUnfit(table=self.path, why=f"it has no {', '.join(needed)}")
        if missing and not may_be_behind:
            raise TableBehind(table=self.path, columns=", ".join(column.name for column in missing))
        properties = self.properties()
        if f"delta.constraints.{CONSTRAINT}" not in properties:  # after a kill between the two commits
            self._spark.sql(
                f"ALTER TABLE {self.quoted} ADD CONSTRAINT {CONSTRAINT} CHECK ({STRUCTURE[self.name]})"
            )
        if properties.get("delta.appendOnly") != "true":
            raise TableUnfit(
                table=self.path, why="delta.appendOnly is not true: somebody may change its rows"
            )

    def missing(self) -> list[Column]:
        """Columns that are known here and not there."""
        there = set(self.rows().columns)
        return [column for column in self._columns if column.name not in there]

    def add_columns(self) -> None:
        """Those that are missing, at the end; null in every row that there is."""
        added = ", ".join(f"`{column.name}` {column.sql_type}" for column in self.missing())
        if added:
            self._spark.sql(f"ALTER TABLE {self.quoted} ADD COLUMNS ({added})")

    @property
    def quoted(self) -> str:
        return f"delta.`{self.path.replace('`', '``')}`"

    def properties(self) -> dict[str, str]:
        _, snapshot = log_and_snapshot(self._spark, self.path)
        return dict(json.loads(snapshot.metadata().json())["metaData"]["configuration"])


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTables:
    events: EvidenceTable
    quarantine: EvidenceTable


def open_tables(spark: SparkSession, root: str) -> EvidenceTables:
    """Both tables under `root`. Raises TableUnfit, TableBehind."""
    return EvidenceTables(
        events=EvidenceTable(spark, root, EVENTS),
        quarantine=EvidenceTable(spark, root, QUARANTINE),
    )


def properties_of(name: str) -> dict[str, str]:
    """What `maintain` keeps true of the table of that name."""
    return {**PROPERTIES, "delta.dataSkippingStatsColumns": ",".join(ASKED_BY[name])}


def log_and_snapshot(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Delta's own log of a table, and the table as it stands now."""
    jvm: Any = spark._jvm
    found = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(spark._jsparkSession, path)
    return found._1(), found._2()


def path_of(root: str, name: str) -> str:
    return f"{root.rstrip('/')}/{name}"


def commits(spark: SparkSession, path: str, versions: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    """The actions of each of these commits of a table, up to the first whose file is not there any more.

    Out of the commits' own files: Delta's history is a job of Spark's, which takes longer than a commit.
    """
    log, _ = log_and_snapshot(spark, path)
    jvm: Any = spark._jvm
    settings = log.newDeltaHadoopConf()
    for version in versions:
        file = jvm.org.apache.hadoop.fs.Path(log.logPath(), f"{version:020d}.json")
        try:
            lines = log.store().read(file, settings).mkString("\n").split("\n")
        except Py4JJavaError as failed:
            if "FileNotFoundException" in str(failed):  # gone from the log, as all before it
                return
            raise
        yield version, lines


def commit_infos(
    spark: SparkSession, path: str, first: int, last: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """What each of these commits says of itself; those that are gone from the log say nothing."""
    for version, lines in commits(spark, path, range(last, first - 1, -1)):
        yield version, _commit_info(lines)


def _commit_info(lines: Iterable[str]) -> dict[str, Any]:
    for line in lines:
        if "commitInfo" in (action := json.loads(line)):
            return cast("dict[str, Any]", action["commitInfo"])
    return {}


def _rows_added(lines: Iterable[str]) -> int | None:
    """By one commit; None where one of its files does not say."""
    added = [action["add"] for line in lines if "add" in (action := json.loads(line))]
    told = [json.loads(each.get("stats") or "{}").get("numRecords") for each in added]
    return None if None in told else sum(told)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quarantine_rows(spark: SparkSession, root: str, *, limit: int) -> list[dict[str, Any]]:
    """The quarantine's newest rows, by day and position, and of each whether it is in audit_events by now.

    TableUnfit where there is no quarantine.
    """
    path, events = path_of(root, QUARANTINE), path_of(root, EVENTS)
    if not DeltaTable.isDeltaTable(spark, path):
        raise TableUnfit(table=path, why="there is none; `seawall audit ingest` makes it")
    newest = [F.desc(name) for name in ("ingest_day", "kafka_partition", "kafka_offset")]
    rows = spark.read.format("delta").load(path).orderBy(*newest).limit(limit).collect()
    offsets = [row["kafka_offset"] for row in rows if row["value"] is not None]
    replayed = set()
    if offsets and DeltaTable.isDeltaTable(spark, events):
        within = F.col("kafka_offset").between(min(offsets), max(offsets))
        there = spark.read.format("delta").load(events).where(within & F.col("kafka_offset").isin(offsets))
        replayed = {tuple(row) for row in there.select(*POSITION).collect()}
    return [row.asDict() | {"is_replayed": tuple(row[name] for name in POSITION) in replayed} for row in rows]


def schema_of(columns: tuple[Column, ...]) -> StructType:
    """Parsed as a whole: each asking of the JVM costs as much as all of them together."""
    parsed = StructType.fromDDL(", ".join(f"`{column.name}` {column.sql_type}" for column in columns))
    assert isinstance(parsed, StructType)
    pairs = zip(columns, parsed.fields, strict=True)
    return StructType([StructField(c.name, each.dataType, not c.is_needed) for c, each in pairs])


def following(standing: Standing, mark: Mark) -> Standing:
    """The standing once `mark` is in the table."""
    return replace(standing, number=mark.number, mark=mark, next_offsets=dict(mark.next_offsets))
