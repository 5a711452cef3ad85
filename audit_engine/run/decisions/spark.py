"""The table of decisions: one row a decision, appended, its number under Delta's own transactions.

Two who decide at the same moment would have the same number: the second is refused by Delta, or skipped
without a word, which is found by reading back; it takes the next number then.

Owns the table. Refuses to change or remove a row. Invariant: numbers rise by one from 1.
"""

from __future__ import annotations

from dataclasses import replace

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.decisions import Decision, decision_of
from audit_engine.run.errors import DecisionNotKept
from audit_engine.tables.results import DECISIONS, DECISIONS_COLUMNS
from audit_engine.tables.spark import CONFLICTS

APP_ID = "seawall.audit.decisions"
ATTEMPTS_MAX = 5


class Decisions:
    """Under `root`; there is no table before the first decision."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._path = f"{root.rstrip('/')}/{DECISIONS}"

    def all(self, up_to: int | None = None) -> list[Decision]:
        """In the order of their numbers."""
        if not DeltaTable.isDeltaTable(self._spark, self._path):
            return []
        rows = self._spark.read.format("delta").load(self._path)
        if up_to is not None:
            rows = rows.where(F.col("number") <= up_to)
        return sorted((decision_of(row.asDict()) for row in rows.collect()), key=lambda each: each.number)

    def last(self) -> int:
        return max((each.number for each in self.all()), default=0)

    def append(self, decision: Decision) -> Decision:
        """With its number; one that was said before, as it is there. Raises DecisionNotKept."""
        self._make()
        for _ in range(ATTEMPTS_MAX):
            known = self.all()
            said = next((each for each in known if each.decision_id == decision.decision_id), None)
            if said is not None:
                return said
            self._write(replace(decision, number=max((each.number for each in known), default=0) + 1))
        raise DecisionNotKept(table=self._path)

    def _write(self, decision: Decision) -> None:
        row = decision.as_row()
        values = tuple(row[each.name] for each in DECISIONS_COLUMNS)
        schema = ", ".join(f"{each.name} {each.sql_type}" for each in DECISIONS_COLUMNS)
        writer = self._spark.createDataFrame([values], schema).write.format("delta").mode("append")
        writer = writer.option("txnAppId", APP_ID).option("txnVersion", str(decision.number))
        try:
            writer.save(self._path)
        except CONFLICTS:
            return  # another came first: the caller looks again

    def _make(self) -> None:
        if DeltaTable.isDeltaTable(self._spark, self._path):
            return
        builder = DeltaTable.createIfNotExists(self._spark).location(self._path)
        for column in DECISIONS_COLUMNS:
            builder = builder.addColumn(column.name, column.sql_type, comment=column.comment or None)
        builder.property("delta.appendOnly", "true").execute()
