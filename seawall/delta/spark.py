"""Puts the LogStore of s3a:// into a session: its settings before the start, its class just after.

Invariant: a session that writes to s3a:// either has the class, or fails at its first look at a table there.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("ConditionalLogStore.java")
CLASS = "io.seawall.delta.ConditionalLogStore"
SETTINGS = {"spark.delta.logStore.s3a.impl": CLASS}


def compile_into(spark: SparkSession, folder: Path) -> None:
    """Write the class under `folder`, which was on the driver's class path when the driver started."""
    jvm = spark._jvm
    assert jvm is not None
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(str(SOURCE), jvm.java.io.StringReader(SOURCE.read_text(encoding="utf-8")))
    for each in compiler.getClassFiles():
        path = folder / f"{each.getThisClassName().replace('.', '/')}.class"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(each.toByteArray()))
