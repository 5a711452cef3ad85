"""The upkeep of all tables, one after the other.

Owns the order: columns are needed by an ingest that waits for them, so that the events come first; the
results of runs last, where there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from audit_engine.tables.columns import EVENTS, QUARANTINE
from audit_engine.tables.maintenance import Upkeep
from audit_engine.tables.maintenance.results import spark as results
from audit_engine.tables.maintenance.spark import carry_out, needed


def upkeep(
    spark: SparkSession,
    root: str,
    *,
    is_dry_run: bool = False,
    say: Callable[[str], None] = lambda _: None,
    today: str | None = None,
) -> list[tuple[Upkeep, Upkeep]]:
    """What each table needed, and what it has then; the same twice where nothing was to be done."""
    day = today or datetime.now(timezone.utc).date().isoformat()
    found = []
    for name in (EVENTS, QUARANTINE):
        say(f"{name}: looking")
        wanted = needed(spark, root, name, today=day)
        found.append((wanted, wanted if is_dry_run else carry_out(spark, root, wanted, say=say)))
    for name in results.tables_of_results(spark, root):
        say(f"{name}: looking")
        wanted = results.needed(spark, root, name)
        found.append((wanted, wanted if is_dry_run else results.carry_out(spark, root, wanted, say=say)))
    return found
