"""Carries the upkeep of the tables of results out: windows, OPTIMIZE, VACUUM, a checkpoint.

OPTIMIZE conflicts with no append; with a run that is judged again and replaces its row it does, and one of
the two is refused by Delta.

Owns these statements. Refuses to touch rows of a run that is not finished. Invariant: each is one commit of
Delta's, so that it may be killed and begun again.
"""

from __future__ import annotations

from dataclasses import replace

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.tables.errors import OtherWriter
from audit_engine.tables.maintenance import FILE_BYTES, DayFiles, Upkeep, drifted
from audit_engine.tables.maintenance.results import BY_RUN, TABLES, WHOLE, WINDOWS, due, named
from audit_engine.tables.maintenance.spark import (
    FILE_SIZE,
    LISTING,
    LISTING_TASKS,
    NOTE,
    NOTED,
    Say,
    setting,
)
from audit_engine.tables.results import RUNS
from audit_engine.tables.spark import CONFLICTS, log_and_snapshot, path_of


def tables_of_results(spark: SparkSession, root: str) -> tuple[str, ...]:
    """Those that there are; none before the first run."""
    return tuple(name for name in TABLES if DeltaTable.isDeltaTable(spark, path_of(root, name)))


def needed(spark: SparkSession, root: str, name: str) -> Upkeep:
    """What there is to do, and nothing done."""
    path = path_of(root, name)
    with setting(spark, {LISTING: str(LISTING_TASKS)}):
        unneeded = spark.sql(f"VACUUM delta.`{path}` DRY RUN").count()
    return Upkeep(
        table=name,
        properties=drifted(_properties(spark, path), WINDOWS),
        days=due(_parts(spark, path, name), _last_run(spark, root)),
        unneeded_files=unneeded,
    )


def carry_out(spark: SparkSession, root: str, upkeep: Upkeep, *, say: Say = lambda _: None) -> Upkeep:
    """What was done, with the files that each part has now. Raises OtherWriter where another did it too."""
    path = path_of(root, upkeep.table)
    quoted = f"delta.`{path}`"
    try:
        if upkeep.properties:
            say(f"{upkeep.table}: setting {', '.join(upkeep.properties)}")
            wanted = ", ".join(f"'{name}' = '{value}'" for name, value in upkeep.properties.items())
            spark.sql(f"ALTER TABLE {quoted} SET TBLPROPERTIES ({wanted})")
        if upkeep.days:
            say(f"{upkeep.table}: {sum(each.files for each in upkeep.days)} files")
            runs = [each.day.removeprefix("run ") for each in upkeep.days if each.day != WHOLE]
            where = f" WHERE run IN ({', '.join(runs)})" if runs else ""
            with setting(spark, {FILE_SIZE: str(FILE_BYTES), NOTE: NOTED}):
                spark.sql(f"OPTIMIZE {quoted}{where}")
    except CONFLICTS as refused:
        raise OtherWriter(table=path) from refused
    if upkeep.unneeded_files:
        say(f"{upkeep.table}: removing files that no kept version names")
        with setting(spark, {LISTING: str(LISTING_TASKS)}):
            spark.sql(f"VACUUM {quoted}")
    if upkeep.days or upkeep.properties:
        log_and_snapshot(spark, path)[0].checkpoint()
    now = {
        named(run): DayFiles(day=named(run), files=files, size_bytes=size_bytes)
        for run, files, size_bytes in _parts(spark, path, upkeep.table)
    }
    return replace(upkeep, days=tuple(now.get(each.day, each) for each in upkeep.days))


def _last_run(spark: SparkSession, root: str) -> int:
    path = path_of(root, RUNS)
    if not DeltaTable.isDeltaTable(spark, path):
        return 0
    [row] = spark.read.format("delta").load(path).agg(F.max("run").alias("run")).collect()
    return int(row["run"] or 0)


def _properties(spark: SparkSession, path: str) -> dict[str, str]:
    [row] = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("properties").collect()
    return dict(row["properties"])


def _parts(spark: SparkSession, path: str, name: str) -> list[tuple[str | None, int, int]]:
    _, snapshot = log_and_snapshot(spark, path)
    files = DataFrame(snapshot.allFiles().toDF(), spark)
    run = F.col("partitionValues")["run"] if name in BY_RUN else F.lit(None).cast("string")
    found = (
        files.select(run.alias("run"), "size")
        .groupBy("run")
        .agg(F.count(F.lit(1)).alias("files"), F.sum("size").alias("bytes"))
        .collect()
    )
    return [(row["run"], row["files"], row["bytes"]) for row in found]
