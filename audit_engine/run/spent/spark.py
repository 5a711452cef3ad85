"""States of logs that no later run goes on from, found and removed.

    kept     of each log the newest, what the last run went on from, so that it can be judged again, and of
             that all down to the newest that has nothing of what lies inside the lateness horizon: whatever
             comes late is folded over one of them
    spent    what is older; and what attempts wrote that no run's row names, of runs that were finished

Owns the choice and the removal. Refuses to touch a run that is not finished: another may be at it.

Invariant: the next run, and the last one judged again, come over what is left to what they come to over all.
"""

from __future__ import annotations

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.evidence.spark import KEY
from audit_engine.tables.errors import OtherWriter
from audit_engine.tables.results import RUNS, STATE
from audit_engine.tables.spark import CONFLICTS, path_of
from rules.machine import Terms

_ROW = ("run", "attempt", *KEY)


def spent_states(spark: SparkSession, root: str, terms: Terms) -> DataFrame | None:
    """Which rows of `audit_state`, by run, attempt and log; None where no run was ever finished."""
    if not DeltaTable.isDeltaTable(spark, path_of(root, RUNS)):
        return None
    runs = spark.read.format("delta").load(path_of(root, RUNS)).select("run", "attempt", "as_of_ms")
    last = runs.orderBy(F.desc("run")).first()
    if last is None:
        return None
    states = spark.read.format("delta").load(path_of(root, STATE)).select(*_ROW, "position_ms")
    states = states.where(F.col("run") <= last["run"])
    counted = states.join(F.broadcast(runs.select("run", "attempt")), ["run", "attempt"], "left_semi")
    horizon_ms = last["as_of_ms"] - terms.lateness_ms
    newer = Window.partitionBy(*KEY).orderBy(F.desc("run")).rowsBetween(Window.unboundedPreceding, -1)
    is_base = (F.col("position_ms") < horizon_ms) & (F.col("run") < last["run"])
    has_base = F.max(is_base).over(newer)
    older = counted.withColumn("is_spent", F.coalesce(has_base, F.lit(False))).where("is_spent")
    uncounted = states.join(F.broadcast(runs.select("run", "attempt")), ["run", "attempt"], "left_anti")
    return older.select(*_ROW).unionByName(uncounted.select(*_ROW))


def remove_spent_states(
    spark: SparkSession, root: str, terms: Terms | None = None, *, is_dry_run: bool = False
) -> int | None:
    """How many there were, or are; None where no run was ever finished. Raises OtherWriter."""
    spent = spent_states(spark, root, terms or Terms())
    if spent is None:
        return None
    held = spent.persist()
    try:
        runs = [row["run"] for row in held.select("run").distinct().collect()]
        count = held.count()
        if not count or is_dry_run:
            return count
        same = " AND ".join(f"kept.{name} = spent.{name}" for name in _ROW)
        within = f"kept.run IN ({', '.join(map(str, sorted(runs)))})"
        table = DeltaTable.forPath(spark, path_of(root, STATE)).alias("kept")
        table.merge(held.alias("spent"), f"{within} AND {same}").whenMatchedDelete().execute()
    except CONFLICTS as refused:
        raise OtherWriter(table=path_of(root, STATE)) from refused
    finally:
        held.unpersist()
    return count
