"""The SparkSession does what Seawall needs of it: Delta tables, Kafka as a source, S3A. Smoke tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from seawall.spark import S3Access, s3a_settings
from tests.cluster import produce
from tests.cluster.produce import Writer


def test_a_delta_table_is_written_changed_and_read(spark: SparkSession, tmp_path: Path) -> None:
    """Two commits make two versions, and the first can still be read."""
    table = str(tmp_path / "table")
    spark.range(10).write.format("delta").save(table)
    spark.range(10, 15).write.format("delta").mode("append").save(table)

    now = spark.read.format("delta").load(table)
    before = spark.read.format("delta").option("versionAsOf", 0).load(table)

    assert sorted(row.id for row in now.collect()) == list(range(15))
    assert before.count() == 10


def test_a_session_starts_where_the_environment_asks_for_a_collector(tmp_path: Path) -> None:
    """Two of them in its options, and no JVM would start: in each of the ways to ask for one."""
    starts = f"""
from pathlib import Path
from seawall.spark import spark_session
spark = spark_session(Path({str(tmp_path)!r}), is_batch=True)
heap = spark._jvm.java.lang.Runtime.getRuntime().totalMemory() >> 20
options = spark.conf.get("spark.driver.defaultJavaOptions")
print("UseParallelGC" in options, heap > 900, spark.range(7).count())
"""
    for name, asked, is_ours in (
        ("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", False),
        ("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1", True),
    ):
        environment = {**os.environ, name: asked}
        found = subprocess.run(
            [sys.executable, "-c", starts], env=environment, capture_output=True, text=True, timeout=120
        )
        assert found.stdout.splitlines()[-1:] == [f"{is_ours} True 7"], found.stderr


def test_times_are_utc_whatever_the_machine_says(spark: SparkSession) -> None:
    """A timestamp's text does not depend on where the audit runs."""
    [row] = spark.range(1).select(F.date_format(F.timestamp_millis(F.lit(0)), "HH:mm").alias("at")).collect()

    assert row["at"] == "00:00"


def test_python_workers_import_what_is_installed(spark: SparkSession) -> None:
    """Not Spark's own copy in a zip, of which each task would read the table of contents anew; and what tasks
    run is there before them."""

    def seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        archives = [each for each in sys.path_importer_cache if each.endswith((".zip", ".jar"))]
        archives = [each for each in archives if not Path(each).name.startswith("python3")]
        is_there = "audit_engine.run.groups.spark" in sys.modules
        for _ in batches:
            yield pa.RecordBatch.from_pylist(
                [{"pyspark": pyspark.__file__, "archives": len(archives), "is_there": is_there}]
            )

    form = "pyspark STRING, archives BIGINT, is_there BOOLEAN"
    found = spark.range(4, numPartitions=4).mapInArrow(seen, form).collect()

    assert {(row["pyspark"], row["archives"], row["is_there"]) for row in found} == {
        (pyspark.__file__, 0, True)
    }


def test_a_task_that_was_ended_leaves_no_traceback(tmp_path: Path) -> None:
    """Spark has its one row, and closes the door in front of a worker that has more to say."""
    starts = f"""
import pyarrow as pa
from pathlib import Path
from seawall.spark import spark_session
spark = spark_session(Path({str(tmp_path)!r}))
def much(batches):
    for _ in batches:
        for _ in range(200):
            yield pa.RecordBatch.from_pydict({{"text": ["x" * 1000] * 1000}})
rows = spark.range(4, numPartitions=1).mapInArrow(much, "text STRING").limit(1)
print(len(rows.collect()), len(rows.collect()))
"""
    found = subprocess.run([sys.executable, "-c", starts], capture_output=True, text=True, timeout=120)

    assert found.stdout.split() == ["1", "1"], found.stderr
    assert "Traceback" not in found.stderr
    assert "BrokenPipe" not in found.stderr


def test_what_has_ended_is_forgotten(spark: SparkSession) -> None:
    """Of a service that commits for days the session remembers its last queries and jobs, not a thousand."""
    context: Any = spark._jsc.sc()
    queries: Any = spark._jsparkSession.sharedState().statusStore()
    for number in range(70):
        spark.range(1).where(f"id = {number}").collect()

    def is_forgotten() -> bool:
        counts = int(queries.executionsCount()), int(context.statusStore().jobsList(None).size())
        return all(0 < each <= 60 for each in counts)

    wait_until(is_forgotten, name="the session", wanted="only the last to be remembered", deadline_s=60.0)


def test_a_topic_streams_into_a_delta_table(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """What the Kafka source reads is what was produced; a second run takes up only what is new."""
    topic = "to-delta"
    produce.create_topic(broker, topic)
    writer = Writer(broker, topic, "plain")
    table, checkpoint = str(tmp_path / "table"), str(tmp_path / "checkpoint")

    for first in (0, 20):
        writer.send_all([f"value {n}".encode() for n in range(first, first + 20)], key=b"key")
        records = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .select("offset", F.col("value").cast("string").alias("value"))
        )
        query = (
            records.writeStream.format("delta")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(table)
        )
        assert query.awaitTermination(120)

    found = spark.read.format("delta").load(table).orderBy("offset").collect()
    assert [(row.offset, row.value) for row in found] == [(n, f"value {n}") for n in range(40)]


def test_a_delta_table_on_the_bucket_is_written_and_read(spark: SparkSession, bucket: LocalBucket) -> None:
    """Through S3A; each data file arrives with a checksum that the store has checked."""
    table = f"s3a://{bucket.name}/tables/one"

    spark.range(20).write.format("delta").save(table)

    assert spark.read.format("delta").load(table).count() == 20
    s3 = bucket.client()
    keys = [
        found["Key"] for found in s3.list_objects_v2(Bucket=bucket.name, Prefix="tables/one/")["Contents"]
    ]
    parquet = next(key for key in keys if key.endswith(".parquet"))
    assert "ChecksumCRC32C" in s3.head_object(Bucket=bucket.name, Key=parquet, ChecksumMode="ENABLED")


def test_without_keys_the_sdk_finds_its_own() -> None:
    """No credentials provider and no endpoint is named for a bucket in the cloud."""
    settings = s3a_settings(S3Access(region="eu-central-1"))

    assert settings["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"
    assert not any("credentials" in name or name.endswith("endpoint") for name in settings)
