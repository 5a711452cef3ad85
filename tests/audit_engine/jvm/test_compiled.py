"""Java sources of ours are compiled against all that the session has, wherever it came from."""

from __future__ import annotations

import uuid
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from audit_engine.jvm.spark import CLASSES, _compiled, _path_of, compile_into


def source(folder: Path, package: str, name: str, body: str, *, imported: str = "") -> Path:
    found = folder / f"{name}.java"
    begin = f"package {package};\n{imported}\npublic final class {name} implements java.io.Serializable"
    found.write_text(f"{begin} {{\n{body}\n}}\n", encoding="utf-8")
    return found


def packed(spark: SparkSession, of: Path) -> Path:
    """A jar of it, on no class path."""
    text = of.read_text(encoding="utf-8")
    jar = of.with_suffix(".jar")
    with zipfile.ZipFile(jar, "w") as written:
        for path, code in _compiled(spark.sparkContext._gateway, {_path_of(text, of.name): text}).items():
            written.writestr(path, code)
    return jar


def test_a_class_that_came_with_a_jar_of_spark_submit_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """Such a jar is on no class path: a loader of Spark's has it. It is made here of a class of ours."""
    unique = f"t{uuid.uuid4().hex}"
    given, own = f"io.seawall.given.{unique}", f"io.seawall.own.{unique}"
    body = "public long twice(long number) { return 2 * number; }"
    jar = packed(spark, source(tmp_path, given, "Given", body))
    jvm: Any = spark._jvm
    jvm.Thread.currentThread().getContextClassLoader().addURL(jvm.java.io.File(str(jar)).toURI().toURL())

    asks = "public long of(long number) { return new Given().twice(number) + 1; }"
    compile_into(spark, source(tmp_path, own, "Asks", asks, imported=f"import {given}.Given;"))

    folder = spark.conf.get(CLASSES)
    assert folder is not None
    assert Path(folder, *own.split("."), "Asks.class").stat().st_size > 100
