"""Puts the LogStore of s3a:// into a session: its settings before the start, its class just after.

Invariant: a session that writes to s3a:// either has the class, or fails at its first look at a table there.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from audit_engine.jvm import spark as jvm

SOURCE = Path(__file__).with_name("ConditionalLogStore.java")
CLASS = "io.seawall.delta.ConditionalLogStore"
SETTINGS = {"spark.delta.logStore.s3a.impl": CLASS}


def compile_into(spark: SparkSession) -> None:
    jvm.compile_into(spark, SOURCE)
