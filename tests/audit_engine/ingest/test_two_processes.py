"""Two ingests of the same tables at once, each a process with a JVM of its own, on a real S3 server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.tables.spark import open_tables
from seawall.local.broker import LocalCluster
from tests.audit_engine.ingest.s3_proxy import DEADLINE_S, proxy_before
from tests.audit_engine.ingest.service import QUICK_JVM
from tests.audit_engine.ingest.topics import EventTopic, value_of
from tests.cluster.versitygw import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, VersityGateway

EVENTS = 60
BATCH = 20


@contextmanager
def _ingesting(topic: EventTopic, root: str, endpoint_url: str) -> Iterator[subprocess.Popen[str]]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_TEST_")} | {
        "SEAWALL_AUDIT__TABLES": root,
        "SEAWALL_AUDIT__TOPIC": topic.name,
        "SEAWALL_AUDIT__BATCH_RECORDS_MAX": str(BATCH),
        "SEAWALL_KAFKA__BOOTSTRAP": topic.broker.bootstrap,
        "SEAWALL_S3__ENDPOINT_URL": endpoint_url,
        "SEAWALL_S3__REGION": REGION,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        "AWS_EC2_METADATA_DISABLED": "true",
        "JDK_JAVA_OPTIONS": QUICK_JVM,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "seawall", "audit", "ingest", "--once", "--json"],
        env=environ,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.long  # two Spark drivers
def test_of_two_ingests_in_the_same_commit_one_goes_on(
    spark: SparkSession, broker: LocalCluster, versitygw: VersityGateway, tmp_path: Path
) -> None:
    """Both read the same records and are held in their commit: each event is in once, and one says so."""
    topic = EventTopic(broker=broker, name="ingest-two", folder=tmp_path).make(1)
    topic.produce(*[value_of(number) for number in range(EVENTS)])
    bucket = versitygw.new_bucket()
    for name, value in (
        ("endpoint", versitygw.endpoint_url),
        ("access.key", ACCESS_KEY_ID),
        ("secret.key", SECRET_ACCESS_KEY),
    ):
        spark.conf.set(f"fs.s3a.bucket.{bucket}.{name}", value)
    root = f"s3a://{bucket}/tables"
    tables = open_tables(spark, root)
    version = spark.sql(f"DESCRIBE HISTORY {tables.events.quoted}").count()  # of the next commit
    with proxy_before(versitygw.endpoint_url) as first_at, proxy_before(versitygw.endpoint_url) as second_at:
        for proxy in (first_at, second_at):
            proxy.freeze(f"audit_events/_delta_log/{version:020d}.json")
        with _ingesting(topic, root, first_at.url) as first, _ingesting(topic, root, second_at.url) as second:
            for proxy, process in ((first_at, first), (second_at, second)):
                assert proxy.frozen.wait(DEADLINE_S), process.poll()
            first_at.thaw.set()
            first_said, first_errors = first.communicate(timeout=DEADLINE_S)
            second_at.thaw.set()
            second_said, second_errors = second.communicate(timeout=DEADLINE_S)

    assert (first.returncode, json.loads(first_said or "{}").get("offsets")) == (0, EVENTS), first_errors
    assert (second.returncode, second_said) == (53, ""), second_errors
    assert "was added to by another ingest at the same moment" in second_errors
    rows = tables.events.rows().select("kafka_offset", "emitter_seq").collect()
    assert Counter((row["kafka_offset"], row["emitter_seq"]) for row in rows) == Counter(
        (number, number) for number in range(EVENTS)
    )
    assert tables.quarantine.rows().count() == 0
