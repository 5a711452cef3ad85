"""The same tables twice, here and on a cluster, with what each of them is worked on by.

Both begin with a day that is closed, in several files, and a run over it; the rest of the events is in Kafka.
There the tables are on S3A, events come over TLS and SCRAM, each step is submitted as a package, and under
each an executor is killed at its task, then a worker with its own. Here the tables are a folder, the steps
are called, and nothing is killed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.spark import Ingest
from audit_engine.run.told import value_of
from audit_engine.tables.results import RUNS
from seawall.local.bucket import LocalBucket
from seawall.settings.names import variable
from tests.audit_engine.ingest.topics import EventTopic
from tests.audit_engine.run.test_run import ALL, END_MS
from tests.cluster.secure import SecureBroker
from tests.cluster.standalone import StandaloneCluster
from tests.seawall.cli.calling import call
from tests.seawall.spark_package.submitted import (
    Done,
    Package,
    bare_environ,
    kill_a_worker,
    kill_an_executor,
)

BEFORE = "2026-01-30"  # long closed
PARTITIONS = 4
EARLY = 10  # of the scenarios: those that the first day has
FEW = 200  # records in a batch: several commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """The same tables twice, and how a step is done to each."""

    spark: SparkSession
    package: Package
    cluster: StandaloneCluster
    settings: dict[str, str]  # by their own names
    password: str
    here: str
    there: str
    keys: dict[str, str]

    def do_here(self, *verb: str, tables: str | None = None) -> Any:
        chosen = {variable(name): value for name, value in self.settings.items()}
        secret = {variable("kafka.client.sasl.password"): self.password}
        place = {variable("audit.tables"): tables or self.here}
        done = call("audit", *verb, "--json", environ={**chosen, **secret, **place, **self.keys})
        assert done.status in (0, 1, 3, 4), done.stderr  # what it found
        return json.loads(done.stdout)

    def judge_here(self, *, as_of_ms: int, tables: str | None = None) -> Any:
        return self.do_here(*judging(as_of_ms), tables=tables)

    def do_there(self, *verb: str, after: int) -> Done:
        """Losing an executor that has done `after` tasks, then a worker; both are there again at the end."""
        options = {**self.settings, "audit.tables": self.there}
        words = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
        words += ["--secret", f"{variable('kafka.client.sasl.password')}=env:PLANTED"]
        done = self.package.submit(
            self.cluster,
            *words,
            *("audit", *verb, "--json"),
            environ={**self.keys, "PLANTED": self.password},
            faults=(kill_an_executor(after=after), kill_a_worker),
        )
        self.cluster.start_workers()
        assert done.lost_executors >= 2, done.hurt
        return done

    def evidence(self, root: str, table: str) -> Counter[str]:
        """All but which day after the first one an event was ingested on: midnight may come in between."""
        rows = self.spark.read.format("delta").load(f"{root}/{table}")
        return _multiset(rows.withColumn("ingest_day", F.col("ingest_day") > F.lit(BEFORE)))

    def results(self, root: str, table: str) -> Counter[str]:
        """Of attempts that count, all but what names the attempt."""
        tables = {name: self.spark.read.format("delta").load(f"{root}/{name}") for name in (table, RUNS)}
        counted = tables[RUNS].select("run", "attempt")
        return _multiset(tables[table].join(counted, ["run", "attempt"], "left_semi").drop("attempt", "calm"))


def _multiset(rows: DataFrame) -> Counter[str]:
    spelled = rows.select(F.to_json(F.struct(*sorted(rows.columns))).alias("row"))
    return Counter(row["row"] for row in spelled.collect())


@contextmanager
def tables_twice(
    spark: SparkSession, broker: SecureBroker, bucket: LocalBucket, folder: Path
) -> Iterator[Both]:
    topic = EventTopic(broker=broker, name="spark-package", folder=folder).make(PARTITIONS)
    client = broker.client()
    password = client.pop("sasl.password")
    at = bucket.address
    keys = {"AWS_ACCESS_KEY_ID": at.access_key_id, "AWS_SECRET_ACCESS_KEY": at.secret_access_key}
    with StandaloneCluster(folder, environ={**bare_environ(), **keys}) as cluster:
        made = Both(
            spark=spark,
            package=Package.make(folder),
            cluster=cluster,
            settings={
                "kafka.bootstrap": client.pop("bootstrap.servers"),
                **{f"kafka.client.{name}": value for name, value in client.items()},
                "s3.endpoint_url": at.endpoint_url,
                "s3.region": at.region,
                "audit.topic": topic.name,
                "audit.batch_records_max": str(FEW),
            },
            password=password,
            here=topic.root,
            there=f"s3a://{bucket.name}/spark-package/tables",
            keys=keys,
        )
        _say(topic, slice(EARLY))
        tables = topic.tables(spark)
        Ingest(spark, tables, topic.source(), day=lambda: BEFORE, batch_records_max=FEW).once()
        made.judge_here(as_of_ms=END_MS)
        _copy(Path(topic.root), bucket, "spark-package/tables")
        _say(topic, slice(EARLY, None))
        yield made


def _say(topic: EventTopic, which: slice) -> None:
    for number, each in list(enumerate(ALL))[which]:
        topic.produce(*(value_of(told) for told in each.said), partition=number % PARTITIONS)


def _copy(folder: Path, bucket: LocalBucket, prefix: str) -> None:
    client = bucket.client()
    for each in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".crc"):
        key = f"{prefix}/{each.relative_to(folder)}"
        client.put_object(Bucket=bucket.name, Key=key, Body=each.read_bytes())


def judging(as_of_ms: int) -> tuple[str, ...]:
    as_of = datetime.fromtimestamp(as_of_ms / 1000, tz=timezone.utc).isoformat()
    return ("run", "--as-of", as_of, "--no-alerts", "--no-holds")
