"""Spark's Kafka source before the endpoint: many tasks, each with a part of a partition; each record once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.cluster.produce import Writer, create_topic, texts
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, store_of, tier_partition
from tests.tiering.serve.live import served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "served-to-spark"
PARTITIONS = 3
EACH = 1500
TASKS = 12
ANSWER_S = 30.0


@pytest.mark.long
def test_spark_reads_the_trimmed_history_with_many_tasks(
    spark: SparkSession, broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """A batch from the earliest offset with more tasks than partitions, and a stream into files."""
    create_topic(broker, TOPIC, partitions=PARTITIONS)
    writer = Writer(broker, TOPIC, "spark")
    for partition in range(PARTITIONS):
        writer.send_all(texts(EACH, seed=partition), partition=partition)
    ends = [
        tier_partition(broker, bucket, TOPIC, each).segments[-1].base_offset for each in range(PARTITIONS)
    ]
    admin = kafka.admin_client(broker.bootstrap)
    cuts = [TopicPartition(TOPIC, partition, offset) for partition, offset in enumerate(ends)]
    for done in admin.delete_records(cuts).values():
        assert done.result(ANSWER_S).low_watermark > 0
    expected = sorted((each.partition, each.offset, each.value) for each in writer.acknowledged)

    with served({"bootstrap.servers": broker.bootstrap}, store_of(bucket), nodes=2) as endpoint:
        options = {
            "kafka.bootstrap.servers": endpoint.bootstrap,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            "minPartitions": str(TASKS),
        }
        batch = spark.read.format("kafka").options(**options).load()
        assert batch.rdd.getNumPartitions() >= TASKS
        rows = batch.select("partition", "offset", "value").collect()
        assert sorted((row.partition, row.offset, bytes(row.value)) for row in rows) == expected

        query = (
            spark.readStream.format("kafka")
            .options(**options, maxOffsetsPerTrigger="1200")
            .load()
            .select("partition", "offset", "value")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", str(tmp_path / "files"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        rows = spark.read.parquet(str(tmp_path / "files")).collect()
        assert sorted((row.partition, row.offset, bytes(row.value)) for row in rows) == expected
        assert endpoint.counters["tier_fetches"] > 0
        assert endpoint.counters["out_of_range"] == 0
        assert not endpoint.troubles
    assert_clean(broker, bucket, TOPIC, prefix=PREFIX)
