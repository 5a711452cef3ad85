"""Tables on S3: the commit itself keeps a second writer out, whatever either of them believes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.tables.columns import QUARANTINE, QUARANTINE_COLUMNS
from audit_engine.tables.errors import OtherWriter, UnguardedStore
from audit_engine.tables.guard.spark import require_exclusive_commits
from audit_engine.tables.marks import Mark
from audit_engine.tables.spark import EvidenceTable, schema_of
from seawall.local.bucket import LocalBucket
from tests.audit_engine.ingest.s3_proxy import DEADLINE_S, S3Proxy, in_thread, proxy_before
from tests.audit_engine.ingest.topics import DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxied:
    """A bucket that Spark reaches by a proxy."""

    proxy: S3Proxy
    root: str


@pytest.fixture
def proxied(spark: SparkSession, bucket: LocalBucket) -> Iterator[Proxied]:
    name = f"tables-{uuid.uuid4().hex[:12]}"
    bucket.client().create_bucket(Bucket=name)
    with proxy_before(bucket.address.endpoint_url) as proxy:
        spark.conf.set(f"fs.s3a.bucket.{name}.endpoint", proxy.url)
        yield Proxied(proxy=proxy, root=f"s3a://{name}/tables")


def _rows(spark: SparkSession, offset: int) -> DataFrame:
    row = {
        "kafka_topic": "t",
        "kafka_partition": 0,
        "kafka_offset": offset,
        "kafka_timestamp_ms": 0,
        "kafka_end_offset": offset + 1,
        "reason": "not_json",
        "detail": "",
    }
    schema = schema_of(tuple(each for each in QUARANTINE_COLUMNS if each.name != "ingest_day"))
    frame = spark.createDataFrame([tuple(row.get(name) for name in schema.names)], schema)
    return frame.withColumn("ingest_day", F.lit(DAY).cast("date"))


def _mark(number: int, offset: int) -> Mark:
    return Mark(
        token=uuid.uuid4().hex,
        number=number,
        topic="t",
        topic_id="i",
        ranges={0: (offset, offset + 1)},
        next_offsets={0: offset + 1},
    )


def _offsets(table: EvidenceTable) -> list[int]:
    return sorted(row["kafka_offset"] for row in table.rows().select("kafka_offset").collect())


def test_a_writer_frozen_in_its_commit_covers_nobody_s(spark: SparkSession, proxied: Proxied) -> None:
    """It wakes up after another took its place: an error, the other's rows, and not one of its own.

    Then one that is no ingest (as OPTIMIZE is none) is frozen: it goes behind the other, and both are in.
    """
    table = EvidenceTable(spark, proxied.root, QUARANTINE)
    version = spark.sql(f"DESCRIBE HISTORY delta.`{table.path}`").count()  # of the next commit
    mine, others, foreign = (_rows(spark, offset) for offset in (1, 2, 3))
    proxied.proxy.freeze(f"_delta_log/{version:020d}.json")

    frozen, raised = in_thread(lambda: table.append(mine, _mark(0, 1)))
    assert proxied.proxy.frozen.wait(DEADLINE_S)
    table.append(others, _mark(0, 2))
    proxied.proxy.thaw.set()
    frozen.join(DEADLINE_S)

    assert [type(each) for each in raised] == [OtherWriter]
    assert _offsets(table) == [2]

    proxied.proxy.frozen.clear()
    proxied.proxy.thaw.clear()
    proxied.proxy.freeze(f"_delta_log/{version + 1:020d}.json")
    frozen, raised = in_thread(lambda: foreign.write.format("delta").mode("append").save(table.path))
    assert proxied.proxy.frozen.wait(DEADLINE_S)
    table.append(mine, _mark(1, 1))
    proxied.proxy.thaw.set()
    frozen.join(DEADLINE_S)

    assert raised == []
    assert _offsets(table) == [1, 2, 3]


def test_a_commit_whose_answer_was_lost_is_known_for_ours(spark: SparkSession, proxied: Proxied) -> None:
    """The request is sent again and refused, as the object is there: it is our own."""
    path = f"{proxied.root}/plain"
    spark.range(1).write.format("delta").save(path)
    proxied.proxy.swallow(f"_delta_log/{1:020d}.json")

    spark.range(1, 2).write.format("delta").mode("append").save(path)

    assert proxied.proxy.swallowed.is_set()
    assert sorted(row["id"] for row in spark.read.format("delta").load(path).collect()) == [0, 1]
    assert spark.sql(f"DESCRIBE HISTORY delta.`{path}`").count() == 2


def test_a_store_is_asked_whether_it_refuses_to_replace(spark: SparkSession, proxied: Proxied) -> None:
    """One that does not know the condition takes both writers' commits, and keeps one."""
    require_exclusive_commits(spark, proxied.root)

    proxied.proxy.forgets_conditions = True
    with pytest.raises(UnguardedStore, match="replaced"):
        require_exclusive_commits(spark, proxied.root)
