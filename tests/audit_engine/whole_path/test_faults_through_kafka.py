"""The seventeen faults and the untouched fixtures the whole way: records in Kafka, the real ingest, the run.

One ingest and one run over all of them, a cluster each; what comes out is what the machine says by itself.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from datetime import datetime, timezone
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from audit_engine.ingest.spark import Ingest
from audit_engine.run.outcomes import told as as_json
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.spark import AuditRun, Means, RunSummary
from audit_engine.run.told import value_of
from audit_engine.tables.spark import open_tables
from rules.events import LogEvent
from rules.machine import Told
from seawall.jvm.java import find_java
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from tests.audit_engine.ingest.topics import DAY, EventTopic
from tests.audit_engine.run.evidence import NOW_MS
from tests.audit_engine.run.test_run import ALL, END_MS, TERMS, by_id, found
from tests.rules.machine.histories import MINUTE_MS, TOPIC

PAGE = Path(__file__).parents[3] / "docs" / "AUDIT.md"
AS_OF_MS = -(-END_MS // MINUTE_MS) * MINUTE_MS
PARTITIONS = 4
FLUSH_S = 120.0


def key_of(told: Told) -> bytes:
    """As a spool keys it: a log's events stay in one partition."""
    event = told.event
    about = event.log if isinstance(event, LogEvent) else told.speaker
    return repr(about).encode()


@pytest.fixture(scope="module")
def topic(broker: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> EventTopic:
    """All that was said, each record twice, out of order by up to some hundred records."""
    made = EventTopic(broker=broker, name="audit-all-faults", folder=tmp_path_factory.mktemp("faults"))
    made.make(PARTITIONS)
    chance = random.Random(405)
    said = sorted((told for each in ALL for told in each.said), key=lambda each: each.observed_at_ms)
    places = [(at + chance.randint(0, 200), told) for at, told in enumerate(said * 2)]
    producer = Producer(made.config(), logger=kafka.SILENT)
    for _, told in sorted(places, key=itemgetter(0)):
        producer.produce(made.name, value=value_of(told), key=key_of(told))
    assert producer.flush(FLUSH_S) == 0
    return made


def ingested_and_judged(spark: SparkSession, topic: EventTopic, root: str) -> RunSummary:
    Ingest(spark, open_tables(spark, root), topic.source(), day=lambda: DAY).once()
    return AuditRun(spark, root, Means(terms=TERMS, now_ms=lambda: NOW_MS, version="test")).next(AS_OF_MS)


@pytest.fixture(scope="module")
def judged(spark: SparkSession, topic: EventTopic) -> RunSummary:
    return ingested_and_judged(spark, topic, topic.root)


def test_each_fault_is_found_through_kafka_and_ingest(
    spark: SparkSession, topic: EventTopic, judged: RunSummary
) -> None:
    """Exactly the listed findings, ids and ranges too, of every scenario; the untouched ones pass."""
    verdicts = Verdicts(spark, topic.root)
    standing = found(verdicts)
    stated = {each["cluster_id"]: each for each in verdicts.statements(TOPIC, 0)}

    for each in ALL:
        alone = each.judged(AS_OF_MS)
        assert by_id(standing[each.cluster_id]) == by_id([as_json(one) for one in alone.findings]), each.name
        assert stated[each.cluster_id]["statement_hash"] == alone.statement.hash, each.name
    untouched = [each for each in ALL if each.name.startswith("untouched")]
    assert {stated[each.cluster_id]["verdict"] for each in untouched} == {"PASS"}
    assert (judged.logs, judged.events) == (len(ALL), 2 * sum(len(each.said) for each in ALL))


@pytest.mark.long  # two ingests and two runs of all faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("partitions", [1, 200])
def test_neither_partitions_nor_a_fresh_ingest_change_anything(
    spark: SparkSession, topic: EventTopic, judged: RunSummary, partitions: int, tmp_path: Path
) -> None:
    """Ingested anew, without anything that an ingest before it left, and shuffled otherwise: one hash."""
    names = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")
    before = {name: str(spark.conf.get(name)) for name in names}
    try:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would make few of many
        other = ingested_and_judged(spark, topic, str(tmp_path / "tables"))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)

    assert other.content_hash == judged.content_hash


@pytest.mark.long  # two processes with a JVM each
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", ["spark-submit", "--master"])
def test_submitted_it_comes_to_the_same(
    spark: SparkSession, topic: EventTopic, judged: RunSummary, way: str, tmp_path: Path
) -> None:
    """By spark-submit of the wheel with the job that docs/AUDIT.md prints, and by the verb's own --master."""
    root = str(tmp_path / "tables")
    Ingest(spark, open_tables(spark, root), topic.source(), day=lambda: DAY).once()
    as_of = datetime.fromtimestamp(AS_OF_MS / 1000, tz=timezone.utc).isoformat()
    verb = ["audit", "run", "--tables", root, "--as-of", as_of, "--json", "--no-alerts", "--no-holds"]
    home = Path(pyspark.__file__).parent
    command = [sys.executable, "-m", "seawall", *verb, "--master", "local[2]"]
    if way == "spark-submit":
        printed = re.search(r"printf '(.+)' > job\.py", PAGE.read_text(encoding="utf-8"))
        assert printed is not None
        (tmp_path / "job.py").write_text(printed[1].replace("\\n", "\n"))
        path = subprocess.run(
            [sys.executable, "-m", "seawall.jvm", "path", "spark"], capture_output=True, text=True, check=True
        )
        jars = path.stdout.strip().replace(os.pathsep, ",")
        submit = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--jars", jars]
        command = [*submit, str(tmp_path / "job.py"), *verb]
    environ = {
        **os.environ,
        "JAVA_HOME": str(find_java().path.parents[1]),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, check=False)

    assert ran.returncode == 1, ran.stderr[-3000:]
    said: dict[str, Any] = json.loads(ran.stdout[ran.stdout.index("{") :])
    assert said["content_hash"] == judged.content_hash
