"""PlainEvents as a column of Spark: its rows are pieces of the value, without a copy and without Python.

    read_by     an event, out of the bytes that came
    reader_of   a PlainEvents, for other classes of ours

Owns the call. Invariant: of one value it is made once, however many columns come of it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession

from audit_engine.ingest.rows.plain import PIECES, Pieces, plain_events
from audit_engine.jvm.spark import compile_into, invoked

SOURCE = Path(__file__).parents[1] / "PlainEvents.java"
_spelled = cache(plain_events)


def read_by(spark: SparkSession, value: str) -> Column:
    """A struct of PIECES for a column of bytes, null for what is not plain."""
    return read_as(spark, reader_of(spark, _spelled()), PIECES, "read", value)


def reader_of(spark: SparkSession, spelled: str) -> Any:
    """What reads what is spelled so (`rows.plain`)."""
    return compile_into(spark, SOURCE).PlainEvents(spelled)


def read_as(spark: SparkSession, reader: Any, pieces: Pieces, method: str, *columns: str) -> Column:
    """What a method of such a reader gives for each row: a struct of `pieces`, or null."""
    fields = ", ".join(f"`{name}`: {sql_type}" for name, (sql_type, _) in pieces.items())
    return invoked(spark, reader, method, f"STRUCT<{fields}>", *columns)
