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

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

CLASSES = "spark.seawall.classes"


def compile_into(spark: SparkSession, *sources: Path) -> Any:
    """Py4j's name for the package of the first of `sources`, whose classes are there from now on; so are
    those of the others, of whatever package."""
    jvm: Any = spark._jvm
    folder = spark.conf.get(CLASSES)
    assert folder is not None, f"a session without {CLASSES} is not ours"
    texts = {
        _path_of(text, each.name): text for each in sources for text in [each.read_text(encoding="utf-8")]
    }
    package = next(iter(texts)).rpartition("/")[0]
    # A folder that was kept may have the classes of an older release.
    made = f"{package}/{package.rpartition('/')[2]}.made"
    digest = hashlib.sha256("\0".join(texts[path] for path in sorted(texts)).encode()).hexdigest()
    if not Path(folder, made).exists() or Path(folder, made).read_text(encoding="ascii") != digest:
        classes = _compiled(spark.sparkContext._gateway, texts)
        _reach(spark, Path(folder), package.replace("/", "-"), classes)
        classes[made] = digest.encode("ascii")  # the last of them
        for path, content in classes.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f"{target.name}.part")
            part.write_bytes(content)
            part.rename(target)
    found = jvm
    for name in package.split("/"):
        found = getattr(found, name)
    return found


def _path_of(text: str, name: str) -> str:
    """Of a source, as class paths have it."""
    return f"{text.split('package ', 1)[1].split(';', 1)[0].replace('.', '/')}/{name}"


def _compiled(gateway: Any, texts: Mapping[str, str]) -> dict[str, bytes]:
    """Classes by path. Folders of the class path are not looked at, ours among them: an older class would be
    taken for the one that is being compiled."""
    jvm = gateway.jvm
    class_path = jvm.java.lang.System.getProperty("java.class.path").split(os.pathsep)
    there = [
        jvm.java.io.File(each).toURI().toURL() for each in class_path if each and not Path(each).is_dir()
    ]
    # Under spark-submit, the jars that it was given lie with a loader of Spark's.
    given_later = jvm.Thread.currentThread().getContextClassLoader()
    while given_later is not None:
        if is_instance_of(gateway, given_later, jvm.java.net.URLClassLoader):
            there += [each for each in given_later.getURLs() if not each.getPath().endswith("/")]
        given_later = given_later.getParent()
    urls = gateway.new_array(jvm.java.net.URL, len(there))
    for at, each in enumerate(there):
        urls[at] = each
    loader = jvm.java.net.URLClassLoader(urls, jvm.java.lang.ClassLoader.getPlatformClassLoader())
    resources = jvm.org.codehaus.commons.compiler.util.resource
    classes = jvm.java.util.HashMap()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setClassFileCreator(resources.MapResourceCreator(classes))
    given = gateway.new_array(resources.Resource, len(texts))
    for at, (path, text) in enumerate(texts.items()):
        given[at] = resources.StringResource(path, text)
    try:
        compiler.compile(given)
    finally:
        loader.close()
    return {str(path): bytes(code) for path, code in dict(classes).items()}


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
