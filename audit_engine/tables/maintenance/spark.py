"""Carries the upkeep of one table out: ALTER, OPTIMIZE, VACUUM, a checkpoint.

OPTIMIZE changes no row and conflicts with no append; two of them at once conflict, and Delta refuses one.
VACUUM goes by the table's own window, and Delta itself refuses a shorter one.

Owns these statements. Invariant: each is one commit of Delta's, so that it may be killed and begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.tables.columns import EVENTS
from audit_engine.tables.errors import OtherWriter, TableUnfit
from audit_engine.tables.maintenance import FILE_BYTES, DayFiles, Upkeep, drifted, due
from audit_engine.tables.spark import CONFLICTS, EvidenceTable, log_and_snapshot, path_of, properties_of

# Into so many tasks VACUUM divides its listing of the files: 10,000 unless told, minutes of doing nothing.
LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
LISTING_TASKS = 8
FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
NOTE = "spark.databricks.delta.commitInfo.userMetadata"
NOTED = '{"seawall_maintain":1}'
ORDER = {EVENTS: "log_id"}  # how a run asks: one log, or all logs of a day

Say = Callable[[str], None]


def needed(spark: SparkSession, root: str, name: str, *, today: str) -> Upkeep:
    """What there is to do, and nothing done. Raises TableUnfit where there is no such table."""
    path = path_of(root, name)
    if not DeltaTable.isDeltaTable(spark, path):
        raise TableUnfit(table=path, why="there is none; `seawall audit ingest` makes it")
    table = EvidenceTable(spark, root, name, may_be_behind=True)
    with setting(spark, {LISTING: str(LISTING_TASKS)}):
        unneeded = spark.sql(f"VACUUM {table.quoted} DRY RUN").count()
    return Upkeep(
        table=name,
        columns=tuple(column.name for column in table.missing()),
        properties=drifted(table.properties(), properties_of(name)),
        days=due(_days(spark, path), today=today),
        unneeded_files=unneeded,
    )


def carry_out(spark: SparkSession, root: str, upkeep: Upkeep, *, say: Say = lambda _: None) -> Upkeep:
    """What was done, with the files that each day has now. Raises OtherWriter where another did it too."""
    table = EvidenceTable(spark, root, upkeep.table, may_be_behind=True)
    try:
        if upkeep.columns:
            say(f"{upkeep.table}: adding {len(upkeep.columns)} columns")
            table.add_columns()
        if upkeep.properties:
            say(f"{upkeep.table}: setting {', '.join(upkeep.properties)}")
            wanted = ", ".join(f"'{name}' = '{value}'" for name, value in upkeep.properties.items())
            spark.sql(f"ALTER TABLE {table.quoted} SET TBLPROPERTIES ({wanted})")
        for each in upkeep.days:
            say(f"{upkeep.table}: {each.day}, {each.files} files, {each.size_bytes} bytes")
            _optimize(spark, table, each.day)
    except CONFLICTS as refused:
        raise OtherWriter(table=table.path) from refused
    if upkeep.unneeded_files:
        say(f"{upkeep.table}: removing files that no kept version names")
        with setting(spark, {LISTING: str(LISTING_TASKS)}):
            spark.sql(f"VACUUM {table.quoted}")
    log_and_snapshot(spark, table.path)[0].checkpoint()
    now = {each.day: each for each in _days(spark, table.path)}
    return replace(upkeep, days=tuple(now.get(each.day, each) for each in upkeep.days))


def _optimize(spark: SparkSession, table: EvidenceTable, day: str) -> None:
    column = ORDER.get(table.name)
    by = f" ZORDER BY ({column})" if column else ""
    with setting(spark, {FILE_SIZE: str(FILE_BYTES), NOTE: NOTED}):
        spark.sql(f"OPTIMIZE {table.quoted} WHERE ingest_day = DATE '{day}'{by}")


@contextmanager
def setting(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Of the session, and as they were behind it."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _days(spark: SparkSession, path: str) -> list[DayFiles]:
    _, snapshot = log_and_snapshot(spark, path)
    files = DataFrame(snapshot.allFiles().toDF(), spark)
    sizes = files.select(F.col("partitionValues")["ingest_day"].alias("day"), "size")
    found = sizes.groupBy("day").agg(F.count("*").alias("files"), F.sum("size").alias("bytes")).collect()
    return [DayFiles(day=row["day"], files=row["files"], size_bytes=row["bytes"]) for row in found]
