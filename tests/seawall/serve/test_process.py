"""`seawall serve` as a process: it says where it listens, serves, tells its metrics, and ends when told."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.process import Child
from seawall.local.waiting import becomes_true
from tests.cluster.produce import Writer, create_topic, texts
from tests.faults.clean import assert_clean
from tests.seawall.cli.calling import call
from tests.tiering.reader.live import PREFIX, tier_partition
from tests.tiering.serve.test_clients import consumer, polled

TOPIC = "served-by-a-process"
RECORDS = 500
START_S = 60.0
ANSWER_S = 20.0


@contextmanager
def serving(
    broker: LocalCluster, bucket: LocalBucket, folder: Path, *more: str
) -> Iterator[tuple[Child, str, str]]:
    """The process, where clients come to, and where probes do."""
    at = bucket.address
    addresses = folder / "addresses"
    arguments = [
        *("--bootstrap", broker.bootstrap, "--bucket", at.bucket, "--endpoint-url", at.endpoint_url),
        *("--region", at.region, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"),
        *("--cache", str(folder / "cache"), "--cache-size", "8MiB", "--address-file", str(addresses)),
    ]
    process = Child(
        name="seawall serve",
        argv=[sys.executable, "-m", "seawall", "serve", *arguments, *more],
        log=folder / "serve.log",
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")},
            "PYTHONPATH": os.pathsep.join(sys.path),
            "AWS_ACCESS_KEY_ID": at.access_key_id,
            "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        },
    )
    process.start()
    try:
        process.wait_until_ready(addresses.exists, wanted="its addresses", deadline_s=START_S)
        clients, metrics = addresses.read_text().split()
        yield process, clients, metrics
    finally:
        process.kill()


def page(address: str, name: str) -> bytes:
    with urllib.request.urlopen(f"http://{address}/{name}", timeout=ANSWER_S) as answer:
        content: bytes = answer.read()
        return content


def test_it_serves_is_measured_and_drains(broker: LocalCluster, bucket: LocalBucket, tmp_path: Path) -> None:
    """Records over the seam from a process of its own; the numbers are those of what it did; SIGTERM is 0."""
    create_topic(broker, TOPIC)
    Writer(broker, TOPIC, "process").send_all(texts(RECORDS))
    tiered = tier_partition(broker, bucket, TOPIC)
    with serving(broker, bucket, tmp_path, "--nodes", "2") as (process, clients, metrics):
        first = clients.split(",")[0]
        assert len(clients.split(",")) == 2
        client = consumer(first)
        client.assign([TopicPartition(TOPIC, 0, 0)])
        found = polled(client, lambda pairs: len(pairs) == RECORDS)
        client.close()
        assert [offset for offset, _ in found] == list(range(RECORDS))

        assert json.loads(page(metrics, "healthz"))["ok"] is True
        assert json.loads(page(metrics, "readyz"))["ok"] is True
        told = {
            sample.name: sample.value
            for family in text_string_to_metric_families(page(metrics, "metrics").decode())
            for sample in family.samples
            if not sample.labels
        }
        in_bucket = sum(record.size_bytes for record in tiered.segments)
        assert told["seawall_serve_tier_bytes_total"] == in_bucket
        assert told["seawall_serve_store_bytes_total"] >= in_bucket
        assert told["seawall_serve_handovers_total"] == 1
        assert told["seawall_serve_defects_total"] == 0
        assert told["seawall_serve_metadata_lag_offsets"] == 0
        assert any((tmp_path / "cache").glob("??/*"))

        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        assert becomes_true(lambda: not process.is_alive, deadline_s=START_S)
        assert process.last_lines().count("serve_ended") == 1
    assert_clean(broker, bucket, TOPIC, prefix=PREFIX)


def test_it_does_not_start_where_anybody_could_read(broker: LocalCluster, bucket: LocalBucket) -> None:
    """Exit code 38, and what to set."""
    at = bucket.address
    called = call(
        *("serve", "--listen", "0.0.0.0:0", "--bootstrap", broker.bootstrap, "--bucket", at.bucket),
        *("--endpoint-url", at.endpoint_url, "--region", at.region),
        environ={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
    )
    assert called.status == 38
    assert "tls_client_ca" in called.stderr
