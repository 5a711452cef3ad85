"""Puts a Java source of ours on a session's class path, compiled by the Janino that Spark has with it.

A session that is to have such classes says in CLASSES which folder of its class path may be written to.

Owns the compiling. Invariant: what is there once is not compiled again, and no half of a class is to be seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

CLASSES = "spark.seawall.classes"


def compile_into(spark: SparkSession, source: Path) -> Any:
    """Py4j's name for the package of `source`, whose classes are there from now on."""
    jvm: Any = spark._jvm
    folder = spark.conf.get(CLASSES)
    assert folder is not None, f"a session without {CLASSES} is not ours"
    text = source.read_text(encoding="utf-8")
    package = text.split("package ", 1)[1].split(";", 1)[0]
    target = Path(folder, *package.split("."))
    if not (target / f"{source.stem}.class").exists():
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
        compiler.cook(str(source), jvm.java.io.StringReader(text))
        target.mkdir(parents=True, exist_ok=True)
        # The outer class, which is asked for above, last.
        for each in sorted(compiler.getClassFiles(), key=lambda found: -len(found.getThisClassName())):
            name = each.getThisClassName().rpartition(".")[2]
            part = target / f"{name}.part"
            part.write_bytes(bytes(each.toByteArray()))
            part.rename(target / f"{name}.class")
    found = jvm
    for name in package.split("."):
        found = getattr(found, name)
    return found
