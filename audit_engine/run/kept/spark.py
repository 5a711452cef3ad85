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
        self._frames: list[DataFrame] = []

    def __enter__(self) -> Kept:
        return self

    def __call__(self, frame: DataFrame) -> DataFrame:
        held = frame.persist()  # in memory, and on disk what finds no room there
        self._frames.append(held)
        return apart(held.sparkSession, held)

    def __exit__(self, *_: object) -> None:
        for frame in reversed(self._frames):
            frame.unpersist()


def apart(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The same rows as they are now, without how they came to be. Delta would have all that is kept of a
    table made again with each commit to it."""
    jvm_rows: Any = rows._jdf
    session: Any = spark._jsparkSession
    found = session.internalCreateDataFrame(jvm_rows.queryExecution().toRdd(), jvm_rows.schema(), False)
    return DataFrame(found, spark)
