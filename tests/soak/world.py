"""What a soak runs: brokers, an agent beside each, serve and ingest, each as a user starts it.

Owns the processes, and what they say of themselves.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from confluent_kafka import Consumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.process import Child
from seawall.local.s3 import S3Address
from tests.cluster import produce, versitygw
from tests.faults.agents import Agent, agents_beside
from tests.seawall.cli import calling
from tests.soak.traffic import KEPT, PARTITIONS, ROLLING, TOPICS, consumer_of

AUDIT_TOPIC = "__seawall_audit"
PREFIX = "soak"
PROBE_S = 5.0
READY_S = 240.0  # of Spark and of three agents, beside other work on the same cores
HEARTBEAT_S = 2
DELETE_GRACE_S = 30
_TOLD = re.compile(rb"^(\d+) offsets in (\d+) commits", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """For how long the rolling topic's records are kept, and how large the segments are."""

    IS_LONG_S: ClassVar[float] = 1800.0

    segment_bytes: int = 1024 * 1024
    local_s: int = 240
    total_s: int = 720

    @classmethod
    def within(cls, seconds: float) -> Kept:
        """So that much of it expires in a form of minutes, too."""
        if seconds >= cls.IS_LONG_S:
            return cls()
        return cls(segment_bytes=256 * 1024, local_s=120, total_s=300)

    @property
    def policy(self) -> str:
        return f"""
version = 1
[topics."*"]
total_retention_ms = "unlimited"
[topics.{KEPT}]
tiering = true
[topics.{ROLLING}]
tiering = true
local_retention_ms = "{self.local_s}s"
total_retention_ms = "{self.total_s}s"
remote_deletion = true
delete_grace_ms = "{DELETE_GRACE_S}s"
blast_limit_segments_per_hour = 100000
"""


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

    def state_of(self, number: int) -> Path:
        """What an agent keeps on disk."""
        return self.folder / f"agent-{number}" / "state"

    @property
    def scratch(self) -> Path:
        """What ingest keeps on disk for itself."""
        return self.folder / "scratch"

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
        **calling.environ_of(cluster, at, PREFIX),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SEAWALL_AUDIT__TABLES": str(folder / "tables"),
        "SEAWALL_AUDIT__COMMIT_EVERY_S": str(commit_every_s),
        # A cache that is full before the judged part begins; serve's is of 64 MiB else.
        "SEAWALL_SERVE__MEMORY_BYTES": "16MiB",
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
topics = {json.dumps(TOPICS)}
rescan_s = 1
observe_every_s = 2
heartbeat_every_s = {HEARTBEAT_S}
remove_every_s = 5
metadata_partitions = {produce.METADATA_PARTITIONS}
"""


@contextmanager
def running(folder: Path, kept: Kept, *, commit_every_s: int, has_audit: bool = True) -> Iterator[World]:
    """Everything up and ready; ended in order."""
    with ExitStack() as stack:
        cluster = LocalCluster(folder / "cluster", nodes=3, properties=produce.QUICK_HOUSEKEEPING)
        stack.callback(cluster.close)
        cluster.start(deadline_s=READY_S)
        for topic, retention_ms in ((KEPT, -1), (ROLLING, kept.local_s * 1000)):
            produce.create_topic(
                *(cluster, topic),
                partitions=PARTITIONS,
                replication=3,
                segment_bytes=kept.segment_bytes,
                config={"retention.ms": str(retention_ms)},
            )
        at = stack.enter_context(_store(folder))
        agents = stack.enter_context(
            agents_beside(cluster, folder, agent_settings(cluster, at), at, deadline_s=READY_S)
        )
        _declare(cluster, folder, kept)
        environ = environ_of(cluster, at, folder, commit_every_s=commit_every_s)
        addresses = folder / "addresses"
        serve = _child(
            *(folder, environ, "serve"),
            *("serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"),
            *("--cache", str(folder / "cache"), "--cache-size", "64MiB", "--address-file", str(addresses)),
        )
        scratch = folder / "scratch"
        scratch.mkdir()
        own = {**environ, "TMPDIR": str(scratch)}
        ingest = _child(folder, own, "ingest", "audit", "ingest", "--continuous") if has_audit else None
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
            ends=stack.enter_context(closing(consumer_of(cluster.bootstrap))),
        )
        if ingest is not None:
            ingest.wait_until_ready(
                lambda: world.ingested() > 0, wanted="its first commit", deadline_s=READY_S
            )
        yield world


@contextmanager
def _store(folder: Path) -> Iterator[S3Address]:
    """versitygw, which keeps objects as files; moto came to 15 GiB of memory in an hour, and does for minutes
    where the other is not to be had."""
    try:
        program = versitygw.program() if versitygw.has_attributes(folder) else None
    except versitygw.NotToBeHad:
        program = None
    if program is None:
        with LocalBucket(folder) as bucket:
            yield bucket.address
        return
    with versitygw.VersityGateway(program, folder / "store") as gateway:
        yield S3Address(
            endpoint_url=gateway.endpoint_url,
            bucket=gateway.new_bucket(),
            region=versitygw.REGION,
            access_key_id=versitygw.ACCESS_KEY_ID,
            secret_access_key=versitygw.SECRET_ACCESS_KEY,
        )


def _child(folder: Path, environ: Mapping[str, str], name: str, *arguments: str) -> Child:
    argv = [sys.executable, "-m", "seawall", *arguments]
    return Child(name=f"seawall {name}", argv=argv, log=folder / f"{name}.log", env=environ)


def _declare(cluster: LocalCluster, folder: Path, kept: Kept) -> None:
    (folder / "policy.toml").write_text(kept.policy)
    said = ("--principal", "soak", "--change-id", "S-1", "--confirm", "--bootstrap", cluster.bootstrap)
    applied = calling.call("policy", "apply", str(folder / "policy.toml"), *said)
    assert applied.status == 0, applied.stderr
