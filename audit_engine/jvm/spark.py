"""Puts a Java source of ours on a session's class path, compiled by the Janino that Spark has with it; and
calls what is there, as a column.

A session that is to have such classes says in CLASSES which folder may be written to. Where its JVM was
started without that folder on its class path, as by spark-submit, the class loader is told of it; and where
tasks run in other JVMs, these are sent the classes as a jar.

Owns the compiling. Invariant: what is there once is not compiled again unless its source is another, and no
half of a class is to be seen.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

CLASSES = "spark.seawall.classes"


def compile_into(spark: SparkSession, source: Path) -> Any:
    """Py4j's name for the package of `source`, whose classes are there from now on."""
    jvm: Any = spark._jvm
    folder = spark.conf.get(CLASSES)
    assert folder is not None, f"a session without {CLASSES} is not ours"
    text = source.read_text(encoding="utf-8")
    package = text.split("package ", 1)[1].split(";", 1)[0]
    target = Path(folder, *package.split("."))
    # A folder that was kept may have the classes of an older release.
    made = target / f"{source.stem}.made"
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not made.exists() or made.read_text(encoding="ascii") != digest:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
        compiler.cook(str(source), jvm.java.io.StringReader(text))
        classes = {
            f"{each.getThisClassName().rpartition('.')[2]}.class": bytes(each.toByteArray())
            for each in compiler.getClassFiles()
        }
        in_jar = {f"{package.replace('.', '/')}/{name}": code for name, code in classes.items()}
        _reach(spark, Path(folder), source.stem, in_jar)
        target.mkdir(parents=True, exist_ok=True)
        for name, content in [*classes.items(), (made.name, digest.encode("ascii"))]:
            part = target / f"{name}.part"
            part.write_bytes(content)
            part.rename(target / name)
    found = jvm
    for name in package.split("."):
        found = getattr(found, name)
    return found


def invoked(spark: SparkSession, on: Any, method: str, sql_type: str, *columns: str) -> Column:
    """What a method of an object of ours gives for each row's `columns`, which it takes as Spark has them."""
    jvm: Any = spark._jvm
    catalyst, sql = jvm.org.apache.spark.sql.catalyst, jvm.org.apache.spark.sql
    of_object = catalyst.expressions.Literal(on, sql.types.ObjectType(on.getClass()))
    given = [sql.classic.ExpressionUtils.expression(sql.functions.col(name)) for name in columns]
    arguments = jvm.org.apache.spark.api.python.PythonUtils.toSeq(given)
    none = jvm.org.apache.spark.api.python.PythonUtils.toSeq([])
    # "Not deterministic" keeps the optimizer from making the call anew for each column that it gives.
    call = catalyst.expressions.objects.Invoke(
        of_object, method, sql.types.DataType.fromDDL(sql_type), arguments, none, True, True, False
    )
    return ClassicColumn(sql.classic.ExpressionUtils.column(call))


def _reach(spark: SparkSession, folder: Path, name: str, classes: Mapping[str, bytes]) -> None:
    """Let the driver's class loader look into the folder, and other JVMs have what will be in it."""
    context = spark.sparkContext
    jvm: Any = spark._jvm
    class_path = context.getConf().get("spark.driver.extraClassPath") or ""
    if str(folder) not in class_path.split(os.pathsep):
        jvm.Thread.currentThread().getContextClassLoader().addURL(
            jvm.java.io.File(str(folder)).toURI().toURL()
        )
    if not str(context.master).startswith("local"):
        jar = folder / f"{name}.jar"
        with zipfile.ZipFile(jar, "w") as written:
            for path, content in classes.items():
                written.writestr(path, content)
        jsc: Any = context._jsc
        jsc.addJar(str(jar))
