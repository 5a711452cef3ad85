"""What is missing, as logs must know of it: silent emitters, what never came, what the gate found amiss.

Owns the way from emitters and the gate to logs. Invariant: a doubt is about each log that may miss something.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.evidence.spark import told_to
from audit_engine.run.gate import Expected
from audit_engine.run.one_log import Doubt
from audit_engine.run.told import COLUMNS
from audit_engine.tables.columns import ENVELOPE

_TYPES = {column.name: column.sql_type for column in ENVELOPE}
_GAPS = f"ARRAY<STRUCT<{', '.join(f'{name}: {_TYPES[name]}' for name in COLUMNS)}, body: STRING>>"


def silent(heard: Iterable[Row]) -> tuple[Doubt, ...]:
    """Logs that a silent emitter may have something to say of; one that tells of no disk, of any."""
    found = (
        Doubt(
            why=f"silent: {row['broker_id']}/{row['component']}",
            cluster_id=row["cluster_id"],
            broker_id=row["broker_id"] if row["watches_disks"] else None,
        )
        for row in heard
        if row["is_silent"]
    )
    return tuple(sorted(found, key=lambda each: (each.cluster_id or "", each.why)))


def unmet(expected: tuple[Expected, ...]) -> tuple[Doubt, ...]:
    failed = [each for each in expected if not each.is_met]
    whole = [Doubt(why=f"gate: {each.detail}") for each in failed if not each.emitters]
    some = [
        Doubt(why=f"gate: {each.detail}", cluster_id=cluster_id, broker_id=broker_id)
        for each in failed
        for cluster_id, broker_id, _ in each.emitters
    ]
    return (*whole, *some)


def gaps(emitters: DataFrame, column: str, logs: DataFrame) -> DataFrame:
    """What never came, told to the logs that may miss it."""
    return told_to(emitters.select(F.inline(F.from_json(column, _GAPS))), logs)
