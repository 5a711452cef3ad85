"""Frames of Spark's that are looked at more than once, held until a run ends. A lost one is made again.

What is handed back is a leaf: how it was made is no part of the plans over it. Plans that hold all those
before them took Spark longer to analyse, anew with each step, than all else that a small run does.

Owns how long they are held. Invariant: none is held after the run.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession


class Kept:
    """`with Kept() as kept`: `kept(frame)` is held until the end."""

    def __init__(self) -> None:
        self._held: list[Any] = []  # frames, and RDDs of the JVM

    def __enter__(self) -> Kept:
        return self

    def __call__(self, frame: DataFrame) -> DataFrame:
        held = frame.persist()  # in memory, and on disk what finds no room there
        self._held.append(held)
        return apart(held.sparkSession, held)

    def as_they_are(self, spark: SparkSession, rows: Any) -> Any:
        """The same of an RDD of the JVM, of rows that are an object each and stay as they are: no columns are
        made of them, and no rows of these again."""
        jvm: Any = spark._jvm
        held = rows.persist(jvm.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK())
        self._held.append(held)
        return held

    def __exit__(self, *_: object) -> None:
        for each in reversed(self._held):
            each.unpersist(False)


def apart(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The same rows as they are now, without how they came to be. Delta would have all that is kept of a
    table made again with each commit to it."""
    jvm_rows: Any = rows._jdf
    session: Any = spark._jsparkSession
    found = session.internalCreateDataFrame(jvm_rows.queryExecution().toRdd(), jvm_rows.schema(), False)
    return DataFrame(found, spark)
