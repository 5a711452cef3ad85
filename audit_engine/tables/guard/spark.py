"""Asks an object store, by the LogStore that will write the commits, whether it refuses to replace an object.

A store that does not know `If-None-Match` takes the second of two writers' commits and loses the first's
without a word. So a small object is created twice before anything is written to tables on S3.

Owns the question. Refuses to take silence for a yes.
"""

from __future__ import annotations

import uuid
from functools import reduce
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from audit_engine.tables.errors import UnguardedStore
from audit_engine.tables.place import S3A

LOG_STORE = "spark.delta.logStore.s3a.impl"
PROBES = "_seawall_probes"
REFUSED = "java.nio.file.FileAlreadyExistsException"


def require_exclusive_commits(spark: SparkSession, root: str) -> None:
    """Raises UnguardedStore. A folder of this machine needs no question: there Delta renames."""
    if not root.startswith(S3A):
        return
    jvm: Any = spark._jvm
    name = spark.conf.get(LOG_STORE, None)
    if name is None:
        raise UnguardedStore(tables=root, why=f"this session has no {LOG_STORE}")
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    store = reduce(getattr, name.split("."), jvm)(hadoop)
    path = jvm.org.apache.hadoop.fs.Path(f"{root}/{PROBES}/{uuid.uuid4().hex}")

    def create(line: str) -> None:
        store.write(path, jvm.java.util.List.of(line).iterator(), False, hadoop)

    try:
        create("the first")
        try:
            create("the second")
        except Py4JJavaError as refused:
            if refused.java_exception.getClass().getName() == REFUSED:
                return
            raise
        raise UnguardedStore(tables=root, why="it replaced an object that it was asked to create")
    except Py4JJavaError as failed:
        why = str(failed.java_exception).splitlines()[0]
        raise UnguardedStore(tables=root, why=f"it cannot be told: {why}") from failed
    finally:
        path.getFileSystem(hadoop).delete(path, False)
