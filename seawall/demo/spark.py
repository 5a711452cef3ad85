"""The audit over the story's own tables: one Spark session for all of it, started beside what comes before.

Owns the session. The runs are `seawall audit`'s own, on terms that are made of what this broker and these
observers do, which is quick.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from audit_engine.alerts.outbox.spark import Finished
from audit_engine.ingest.client import java_properties
from audit_engine.ingest.kafka import KafkaReach
from audit_engine.ingest.spark import Ingest, Ingested, IngestSource
from audit_engine.report.page import page
from audit_engine.report.spark import gather
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.spark import AuditRun, Means, RunSummary
from audit_engine.tables.spark import open_tables
from rules.machine import Terms
from seawall.alerts.delivery import deliver, take_in
from seawall.files import replace_whole
from seawall.settings import Settings
from seawall.spark import spark_session
from seawall.version import version

# Observers here look every second, and there is one clock: graces are short. Otherwise they are
# `seawall audit run`'s. The broker's intervals are those that it is started with (world.QUICK_BROKER).
QUICK_TERMS = Terms(
    scan_ms=1_500,
    clock_tolerance_ms=500,
    object_grace_ms=500,
    check_interval_ms=500,
    start_checkpoint_ms=500,
    watermark_checkpoint_ms=500,
    delete_delay_ms=500,
)
# A minute's work on a few hundred rows: what Spark and the JVM compile or plan again to be faster later costs
# more than it gives.
QUICK_SPARK = {
    # The quick compiler alone has room for 48 MiB of code unless told, and stops for good when that is full.
    "spark.driver.defaultJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    ),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
JVM_END_S = 60.0


class Audit:
    """Ingests, judges, alerts and reports. `open` may be called early; what comes then waits for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "spark"
        (self._folder / "scratch").mkdir(parents=True)
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="demo-spark")
        self._session: Future[SparkSession] = self._starter.submit(self._start)

    def _start(self) -> SparkSession:
        """The story goes on meanwhile: what the JVM has to load for its first table, it loads now."""
        session = spark_session(self._folder, settings=QUICK_SPARK)
        first = str(self._folder / "first")
        rows = session.range(8).selectExpr("id", "CAST(id AS STRING) AS name")
        rows.write.format("delta").partitionBy("name").save(first)
        read = session.read.format("delta").load(first)
        read.join(rows, ["id"]).groupBy("id").count().collect()
        return session

    @property
    def _spark(self) -> SparkSession:
        return self._session.result()

    def close(self) -> None:
        """Returns when the JVM is gone."""
        self._starter.shutdown(wait=True)
        if self._session.exception() is not None:
            return
        gateway: Any = self._spark.sparkContext._gateway
        self._spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # it ends with its parent, and this is how it hears of that
        gateway.proc.wait(JVM_END_S)
        SparkContext._gateway = SparkContext._jvm = None  # whoever asks for a session gets another JVM

    def ingest(self, settings: Settings, config: dict[str, str]) -> Ingested:
        root = _root(settings)
        source = IngestSource(
            topic=settings.audit.topic, client=java_properties(config), reach=KafkaReach(config)
        )
        tables = open_tables(self._spark, root)
        return Ingest(self._spark, tables, source, day=_today, scratch=self._folder / "scratch").once()

    def judge(self, settings: Settings, as_of_ms: int) -> RunSummary:
        means = Means(
            terms=QUICK_TERMS,
            now_ms=_now_ms,
            version=version() or "source",
            has_gate=False,  # what comes within a minute has no volume to be expected
            has_screen=False,  # it spares folding thousands of calm logs, and here are a few
        )
        return AuditRun(self._spark, _root(settings), means).next(as_of_ms)

    def alert(self, settings: Settings) -> list[str]:
        """Deliver what the last run has for people; what was said of it."""
        said: list[str] = []
        take_in(settings, Finished(self._spark, _root(settings)), said.append)
        deliver(settings, said.append)
        return said

    def findings(self, settings: Settings) -> list[dict[str, Any]]:
        return Verdicts(self._spark, _root(settings)).findings()

    def statements(self, settings: Settings, topic: str) -> list[dict[str, Any]]:
        return Verdicts(self._spark, _root(settings)).statements(topic, 0)

    def report(self, settings: Settings, file: Path) -> None:
        gathered = gather(self._spark, _root(settings), None)
        assert gathered is not None
        replace_whole(file, page(gathered, repair_verb=("seawall", "remediate")))


def _root(settings: Settings) -> str:
    assert settings.audit.tables is not None
    return settings.audit.tables


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _today() -> str:
    return datetime.now(timezone.utc).date().isoformat()
