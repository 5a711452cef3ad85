"""The one place that makes a SparkSession: Delta tables, Kafka as a source, S3A, all local and small.

Owns the session's settings and nothing that runs on it: transforms take DataFrames and make no session.
pyspark is imported here and in modules named spark, nowhere else. Jars come from the pinned classpaths, on
the driver's class path, so that nothing is fetched and nothing is copied at start.

Spark keeps everything it writes for itself under the folder it is given: <work>/spark.log, classes, local,
tmp, warehouse.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from audit_engine.jvm.spark import CLASSES
from audit_engine.tables.spark import PARQUET
from seawall.delta import spark as conditional
from seawall.jvm.classpath import jars
from seawall.jvm.java import find_java

# Tables here have a few files; Spark's 200 and Delta's 50 partitions would make each write wait for
# hundreds of empty tasks.
FEW_PARTITIONS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "10",
}
TASKS_A_CORE = 3  # at least, of a large table: so that no core is long without one while another has its last
# Plans over a hundred columns take longer to spell out for the log than to run.
TERSE = {
    "spark.sql.maxPlanStringLength": "4096",
    "spark.sql.debug.maxToStringFields": "4",
    "spark.sql.ui.explainMode": "simple",
}
# There is no UI, and nobody looks at what has ended; Spark would keep a thousand of each in a service.
FORGETFUL = {
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
}
# What the JVM would choose works beside the program, and makes each write to memory dearer: a run of the
# audit takes a tenth longer with it, and the first one in a JVM a fifth. Of two that are asked for, no JVM
# starts.
COLLECTOR = "-XX:+UseParallelGC"
# Of classes, what Spark has loaded after some seconds: the JVM would stop five times on its way there.
ROOM_FOR_CLASSES = "-XX:MetaspaceSize=256m"
# A plan runs through thousands of methods a few hundred times, which is when HotSpot would compile them, for
# as much processor as the first audit in a JVM needs itself: it waits until they were called thrice as often.
PATIENT = "-XX:CompileThresholdScaling=3"
_JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_IS_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
QUICK = {
    # HotSpot compiles no method of more bytes; Spark would go up to 65,535 and leave it to the interpreter.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # A run of the audit needs some 270 classes: of the 100 that Spark would keep, the next one found none.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # A table that is partitioned by the day gets one day at a time: no need to sort all rows by it first.
    "spark.sql.maxConcurrentOutputFileWriters": "4",
    # Histograms of lengths in each page: nothing that reads our tables asks for them.
    "spark.hadoop.parquet.size.statistics.enabled": "false",
    **{f"spark.hadoop.{name}": value for name, value in PARQUET.items()},
}
GATEWAY = "PYSPARK_GATEWAY_PORT"  # spark-submit's word to the Python that it starts
OF_THE_JVM = frozenset(
    {
        "spark.driver.extraClassPath",
        "spark.driver.memory",
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraJavaOptions",
        "spark.driver.host",
        "spark.driver.bindAddress",
        "spark.local.dir",
        "spark.jars",
    }
)
ON_THIS_MACHINE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
SOCKET_BYTES = 60  # of a folder for sockets: with Spark's names in it, a path has at most 107
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
LOG_SETTINGS = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS}}{{UTC}}Z %p %c: %m%n%ex
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Access:
    """How s3a:// paths are reached; without keys by whatever the AWS SDK finds by itself."""

    endpoint_url: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)


def spark_session(
    work: Path,
    *,
    app_name: str = "seawall",
    cores: int = 2,
    master: str | None = None,
    driver_memory_mib: int = 1024,
    is_batch: bool = False,
    s3: S3Access | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session here, or on the cluster of `master`, whose workers have this Seawall under the same path and
    are sent the jars. `settings` are Spark's own, over ours. One process has one: the first wins. A batch has
    its memory from the start, instead of as much as it cannot do without.

    Under spark-submit the JVM is there already: where it runs, its memory and jars are what was said there.
    """
    for folder in ("classes", "local", "tmp", "warehouse"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    is_submitted = GATEWAY in os.environ
    if not is_submitted:
        _use_this_pyspark(is_local=master is None)
    own = [] if is_submitted else [*jars("spark"), *(jars("s3a") if s3 is not None else [])]
    paths = [*own, work / "classes"]
    chosen = {
        "spark.driver.extraClassPath": os.pathsep.join(map(str, paths)),
        "spark.driver.memory": f"{driver_memory_mib}m",
        "spark.driver.defaultJavaOptions": _heap(driver_memory_mib if is_batch else None),
        "spark.driver.extraJavaOptions": _java_options(work),
        **_settings(work),
        **(ON_THIS_MACHINE if master is None else {"spark.jars": ",".join(map(str, own))}),
        **DELTA,
        **(_of_few_cores(work, cores) if master is None and not is_submitted else {}),
        **TERSE,
        **({} if is_submitted else FORGETFUL),
        **QUICK,
        CLASSES: str(work / "classes"),
        **(s3a_settings(s3) | conditional.SETTINGS if s3 is not None else {}),
        **(settings or {}),
    }
    builder = SparkSession.builder.appName(app_name)
    if not is_submitted:
        builder = builder.master(master or f"local[{cores}]")
    for name, value in chosen.items():
        if not (is_submitted and name in OF_THE_JVM):
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    if s3 is not None:
        conditional.compile_into(session)
    return session


def _of_few_cores(work: Path, cores: int) -> dict[str, str]:
    return {
        **FEW_PARTITIONS,
        "spark.sql.files.minPartitionNum": str(TASKS_A_CORE * cores),
        **_own_workers(work),
    }


def _own_workers(work: Path) -> dict[str, str]:
    """Python workers that begin a task at once. By loopback, each word to a task waits for the last one's
    acknowledgement: 15 ms a task."""
    sockets = work / "tmp"
    is_short = len(os.fsencode(sockets)) <= SOCKET_BYTES
    return {
        "spark.python.daemon.module": "seawall.spark_workers.spark",
        "spark.python.unix.domain.socket.enabled": str(is_short).lower(),
        "spark.python.unix.domain.socket.dir": str(sockets),
    }


def _settings(work: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.local.dir": str(work / "local"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }


def _heap(at_once_mib: int | None) -> str:
    """With our collector, unless the environment asks for one."""
    asked = " ".join(os.environ.get(name, "") for name in _JAVA_OPTIONS)
    own = [] if _IS_COLLECTOR.search(asked) else [COLLECTOR]
    room = [] if at_once_mib is None else [f"-Xms{at_once_mib}m"]
    return " ".join([*own, ROOM_FOR_CLASSES, PATIENT, *room])


def _java_options(work: Path) -> str:
    log_settings = work / "log4j2.properties"
    log_settings.write_text(LOG_SETTINGS.format(log=work / "spark.log"), encoding="utf-8")
    options = {
        "user.timezone": "UTC",
        "java.io.tmpdir": str(work / "tmp"),
        "log4j2.configurationFile": str(log_settings),
    }
    return " ".join(f'"-D{name}={value}"' for name, value in options.items())


def _use_this_pyspark(*, is_local: bool) -> None:
    """Our jars are pinned against the Spark inside the installed wheel; another Spark of the user's, its
    defaults, or other Python workers would be something that nobody has tried."""
    find_java()  # says what to do where there is none; Spark's own scripts only say that something failed
    for name in ("SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "PYSPARK_SUBMIT_ARGS"):
        os.environ.pop(name, None)
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if is_local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # a host name that does not resolve would stop the start


def s3a_settings(s3: S3Access) -> dict[str, str]:
    """Hadoop's names for how the bucket is reached."""
    prefix = "spark.hadoop.fs.s3a."
    settings = {
        f"{prefix}path.style.access": str(s3.endpoint_url is not None).lower(),
        # Sent with every object, and the store refuses an object that does not match.
        f"{prefix}create.checksum.algorithm": "CRC32C",
    }
    if s3.endpoint_url is not None:
        settings[f"{prefix}endpoint"] = s3.endpoint_url
        settings[f"{prefix}connection.ssl.enabled"] = str(s3.endpoint_url.startswith("https:")).lower()
    if s3.region is not None:
        settings[f"{prefix}endpoint.region"] = s3.region
    if s3.access_key_id is not None and s3.secret_access_key is not None:
        settings[f"{prefix}access.key"] = s3.access_key_id
        settings[f"{prefix}secret.key"] = s3.secret_access_key
        settings[f"{prefix}aws.credentials.provider"] = (
            "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
        )
    return settings
