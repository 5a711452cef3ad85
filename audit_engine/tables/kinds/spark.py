"""The views of the kinds, in a session.

Owns their registration. Invariant: they go with the session, and change nothing of the table.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from audit_engine.tables.columns import OWN_FIELDS
from audit_engine.tables.kinds import view_of
from audit_engine.tables.spark import EvidenceTable


def of_kind(spark: SparkSession, events: EvidenceTable, kind: str) -> DataFrame:
    """The events of one kind with its own fields as columns."""
    return spark.sql(view_of(kind, events.quoted))


def make_views(spark: SparkSession, events: EvidenceTable) -> tuple[str, ...]:
    """A temporary view for each kind, under its name; the names."""
    for kind in OWN_FIELDS:
        of_kind(spark, events, kind).createOrReplaceTempView(kind)
    return tuple(OWN_FIELDS)
