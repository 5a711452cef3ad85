"""What a soak runs: brokers, an agent beside each, serve, ingest, a load, and readers of what is served.

Owns the processes, each as a user starts it, and what they say of themselves.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.process import Child
from seawall.local.s3 import S3Address
from tests.cluster import produce
from tests.faults.agents import Agent, agents_beside
from tests.seawall.cli.calling import call

AUDIT_TOPIC = "__seawall_audit"
TOPIC = "soaked"
PREFIX = "soak"
PARTITIONS = 3
VALUE_BYTES = 1_000
PROBE_S = 5.0
READY_S = 180.0
STOP_S = 60.0
COLD_RECORDS = 500
POLICY = """
version = 1
[topics."*"]
total_retention_ms = "unlimited"
[topics.soaked]
tiering = true
"""
_TOLD = re.compile(rb"^(\d+) offsets in (\d+) commits", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class World:
    """All of it, while it runs."""

    cluster: LocalCluster
    s3: S3Address
    folder: Path
    agents: Mapping[int, Agent]
    serve: Child
    ingest: Child | None  # None: a soak without Spark
    served_at: str
    serve_metrics: str
    environ: Mapping[str, str]
    ends: Consumer  # reads nothing but where topics end

    @property
    def processes(self) -> dict[str, Child]:
        agents = {f"agent-{number}": each.process for number, each in self.agents.items()}
        judging = {} if self.ingest is None else {"ingest": self.ingest}
        return {**agents, "serve": self.serve, **judging}

    @property
    def tables(self) -> Path:
        return self.folder / "tables"

    def agent_says(self, number: int) -> dict[str, float]:
        return metrics(self.agents[number].page("metrics"))

    def serve_says(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://{self.serve_metrics}/metrics", timeout=PROBE_S) as answer:
            return metrics(answer.read())

    def ingested(self) -> int:
        """Offsets that are in the tables, by ingest's own word."""
        assert self.ingest is not None
        said = _TOLD.findall(self.ingest.log.read_bytes()) if self.ingest.log.exists() else []
        return int(said[-1][0]) if said else 0

    def told(self) -> int:
        """Offsets that there are in the topic of events."""
        numbers = self.ends.list_topics(AUDIT_TOPIC, timeout=PROBE_S).topics[AUDIT_TOPIC].partitions
        found = [
            self.ends.get_watermark_offsets(TopicPartition(AUDIT_TOPIC, number), timeout=PROBE_S)
            for number in numbers
        ]
        return sum(end - start for start, end in found)


def metrics(page: bytes) -> dict[str, float]:
    """Each name's greatest value, whatever its labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            found[sample.name] = max(found.get(sample.name, sample.value), sample.value)
    return found


def environ_of(cluster: LocalCluster, at: S3Address, folder: Path, *, commit_every_s: int) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")}
    return ours | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SEAWALL_KAFKA__BOOTSTRAP": cluster.bootstrap,
        "SEAWALL_S3__BUCKET": at.bucket,
        "SEAWALL_S3__PREFIX": PREFIX,
        "SEAWALL_S3__ENDPOINT_URL": at.endpoint_url,
        "SEAWALL_S3__REGION": at.region,
        "SEAWALL_AUDIT__TABLES": str(folder / "tables"),
        "SEAWALL_AUDIT__COMMIT_EVERY_S": str(commit_every_s),
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
        "AWS_EC2_METADATA_DISABLED": "true",
        "XDG_STATE_HOME": str(folder / "state"),
    }


def agent_settings(cluster: LocalCluster, at: S3Address) -> str:
    return f"""
[kafka]
bootstrap = "{cluster.bootstrap}"
[s3]
bucket = "{at.bucket}"
prefix = "{PREFIX}"
endpoint_url = "{at.endpoint_url}"
region = "{at.region}"
[agent]
topics = ["{TOPIC}"]
rescan_s = 1
observe_every_s = 2
heartbeat_every_s = 2
metadata_partitions = {produce.METADATA_PARTITIONS}
"""


@contextmanager
def running(
    folder: Path, *, segment_bytes: int, commit_every_s: int, has_audit: bool = True
) -> Iterator[World]:
    """Everything up and ready; ended in order."""
    with ExitStack() as stack:
        bucket = stack.enter_context(LocalBucket(folder))
        cluster = stack.enter_context(
            LocalCluster(folder / "cluster", nodes=3, properties=produce.QUICK_HOUSEKEEPING)
        )
        produce.create_topic(
            cluster, TOPIC, partitions=PARTITIONS, replication=3, segment_bytes=segment_bytes
        )
        at = bucket.address
        agents = stack.enter_context(agents_beside(cluster, folder, agent_settings(cluster, at), at))
        _declare(cluster, folder)
        environ = environ_of(cluster, at, folder, commit_every_s=commit_every_s)
        addresses = folder / "addresses"
        serve = _child(
            folder,
            environ,
            "serve",
            *("serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"),
            *("--cache", str(folder / "cache"), "--cache-size", "64MiB", "--address-file", str(addresses)),
        )
        ingest = _child(folder, environ, "ingest", "audit", "ingest", "--continuous") if has_audit else None
        for each in (serve, *([] if ingest is None else [ingest])):
            each.start()
            stack.callback(each.kill)
        serve.wait_until_ready(addresses.exists, wanted="its addresses", deadline_s=READY_S)
        served_at, serve_metrics = addresses.read_text().split()
        world = World(
            cluster=cluster,
            s3=at,
            folder=folder,
            agents=agents,
            serve=serve,
            ingest=ingest,
            served_at=served_at.partition(",")[0],
            serve_metrics=serve_metrics,
            environ=environ,
            ends=stack.enter_context(closing(_consumer(cluster.bootstrap))),
        )
        if ingest is not None:
            ingest.wait_until_ready(
                lambda: world.ingested() > 0, wanted="its first commit", deadline_s=READY_S
            )
        yield world


def _child(folder: Path, environ: Mapping[str, str], name: str, *arguments: str) -> Child:
    argv = [sys.executable, "-m", "seawall", *arguments]
    return Child(name=f"seawall {name}", argv=argv, log=folder / f"{name}.log", env=environ)


def _declare(cluster: LocalCluster, folder: Path) -> None:
    (folder / "policy.toml").write_text(POLICY)
    said = ("--principal", "soak", "--change-id", "S-1", "--confirm", "--bootstrap", cluster.bootstrap)
    applied = call("policy", "apply", str(folder / "policy.toml"), *said)
    assert applied.status == 0, applied.stderr


def value_of(number: int) -> bytes:
    return b"%012d" % number + b"." * (VALUE_BYTES - 12)


class Load:
    """So many records a second, to all partitions in turn, until it is left."""

    def __init__(self, bootstrap: str, records_per_s: float) -> None:
        self.sent = 0
        self.failed: list[str] = []
        self._every_s = PARTITIONS / records_per_s
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 50}, logger=kafka.SILENT
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Returns when all that was sent is acknowledged."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(STOP_S) == 0

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            for partition in range(PARTITIONS):
                self._producer.produce(
                    TOPIC, value_of(self.sent), partition=partition, on_delivery=self._heard
                )
            self.sent += 1  # the number that the next record of each partition gets
            self._producer.poll(0)

    def _heard(self, error: object, _: object) -> None:
        if error is not None:
            self.failed.append(str(error))


@dataclass(slots=True)
class Reader:
    """Follows the topic by the endpoint, from the first record on; each record must be the next one."""

    bootstrap: str
    read: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    wrong: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Reader:
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        with closing(_consumer(self.bootstrap)) as consumer:
            consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
            while not self._stop.is_set():
                for message in consumer.consume(500, timeout=0.5):
                    partition, offset = message.partition(), message.offset()
                    if message.error() is not None or partition is None:
                        self.wrong.append(str(message.error()))
                        continue
                    if offset != self.read[partition] or message.value() != value_of(self.read[partition]):
                        self.wrong.append(f"partition {partition}: {offset}, not {self.read[partition]}")
                    self.read[partition] = (offset or 0) + 1


def read_cold(bootstrap: str) -> list[str]:
    """The first records of each partition by a client that has nothing yet; what was wrong with them."""
    wrong: list[str] = []
    with closing(_consumer(bootstrap)) as consumer:
        for partition in range(PARTITIONS):
            consumer.assign([TopicPartition(TOPIC, partition, 0)])
            found: list[bytes | None] = []
            while len(found) < COLD_RECORDS and (some := consumer.consume(COLD_RECORDS, timeout=STOP_S / 2)):
                found += [each.value() for each in some if each.error() is None]
            if found[:COLD_RECORDS] != [value_of(number) for number in range(COLD_RECORDS)]:
                wrong.append(f"partition {partition}: {len(found)} records, cold, were not the first ones")
    return wrong


def _consumer(bootstrap: str) -> Consumer:
    config = {"bootstrap.servers": bootstrap, "group.id": "soak", "enable.auto.commit": "false"}
    return Consumer(config, logger=kafka.SILENT)
