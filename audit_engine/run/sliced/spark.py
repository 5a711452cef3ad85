"""The slice of a run: its rows, and what one pass over them comes to.

Held against what ingest's commits added and what the run before left: by a clock that lags, ingest puts rows
under a day that would not be opened; then every day is.

Owns how many rows there must be. Refuses to go on with fewer. Invariant: a row of the cut is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from audit_engine.run.cut import Cut
from audit_engine.run.errors import SliceIncomplete
from audit_engine.run.evidence.spark import of_some, since, told
from audit_engine.run.kept.spark import Kept
from audit_engine.run.listening.spark import Digested, digested

HELD_ROWS = 200_000  # a larger slice is read again instead, each time only what is asked of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliced:
    """`rows_of` some logs, as events call them: of others, no row is made. `by_day`: whether ingest's days
    could be gone by."""

    rows: DataFrame
    rows_of: Callable[[list[str]], DataFrame]
    digested: Digested
    by_day: bool


def sliced(
    spark: SparkSession, table: str, cut: Cut, wanted: int | None, kept: Kept, *, with_bodies: bool
) -> Sliced:
    """`wanted`: how many rows it must have, None where that is not on record, and every day is opened.
    Raises SliceIncomplete."""
    is_small = _rows_at_most(cut) <= HELD_ROWS
    seen = 0
    for by_day in (True, False) if wanted is not None else (False,):
        lying = since(spark.read.format("delta").load(table), cut, by_day=by_day)
        rows = told(lying)
        if is_small:
            lying = rows = kept(rows)
        found = digested(lying, cut.as_of_ms, kept, with_bodies=with_bodies)
        seen = found.seen.events
        if wanted in (None, seen):
            of_logs = partial(_of_held, rows) if is_small else partial(_of_table, spark, table, cut, by_day)
            return Sliced(rows=rows, rows_of=of_logs, digested=found, by_day=by_day)
    assert wanted is not None
    raise SliceIncomplete(table=table, wanted=wanted, found=seen)


def _of_held(rows: DataFrame, ids: list[str]) -> DataFrame:
    return of_some(ids, rows)


def _of_table(spark: SparkSession, table: str, cut: Cut, by_day: bool, ids: list[str]) -> DataFrame:
    """Asked for their logs before all else: nearly no row is one of these."""
    return told(since(of_some(ids, spark.read.format("delta").load(table)), cut, by_day=by_day))


def _rows_at_most(cut: Cut) -> int:
    """Without those that the run before left."""
    return sum(end - cut.begin_offsets.get(partition, 0) for partition, end in cut.end_offsets.items())
