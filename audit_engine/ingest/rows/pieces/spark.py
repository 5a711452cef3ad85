"""PlainEvents as a column of Spark: its rows are pieces of the value, without a copy and without Python.

    read_by         an event, out of the bytes that came
    own_fields_by   some of an event's own fields, out of the body that was put down

Owns the call. Invariant: of one value it is made once, however many columns come of it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pyspark.sql import Column, SparkSession

from audit_engine.ingest.rows.plain import PIECES, Pieces, plain_bodies, plain_events
from audit_engine.jvm.spark import compile_into, invoked

SOURCE = Path(__file__).parents[1] / "PlainEvents.java"
_spelled = cache(plain_events)


def read_by(spark: SparkSession, value: str) -> Column:
    """A struct of PIECES for a column of bytes, null for what is not plain."""
    return _called(spark, _spelled(), PIECES, "read", value)


def own_fields_by(
    spark: SparkSession, kinds: tuple[str, ...], pieces: Pieces, kind: str, body: str
) -> Column:
    """A struct of `pieces` for two columns of text, null for another kind, and for a body that is not spelled
    as our own writers do."""
    return _called(spark, plain_bodies(kinds, pieces), pieces, "readOf", kind, body)


def _called(spark: SparkSession, spelled: str, pieces: Pieces, method: str, *columns: str) -> Column:
    reader = compile_into(spark, SOURCE).PlainEvents(spelled)
    fields = ", ".join(f"`{name}`: {sql_type}" for name, (sql_type, _) in pieces.items())
    return invoked(spark, reader, method, f"STRUCT<{fields}>", *columns)
