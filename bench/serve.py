"""3 million records through `seawall serve`, cold and cached, against the same consumer on the broker.

One partition, records of 100 bytes, batches as a producer makes them by default, segments of 32 MiB, the
bucket versitygw's on this machine. The consumer is confluent-kafka with its defaults but for
fetch.queue.backoff.ms (5): by default librdkafka pauses for a second whenever it has 100,000 records at hand,
and then all peers come to the same. It is a process of its own, its start included, and checks that each
offset comes once and in order. Cold: the endpoint has just been
started, and its cache is empty. Cached: it has served all of it before. The endpoint shares the machine's
processors with the consumer and the S3 server, the broker only with the consumer.

A last line has ten consumers at once, cached, and the endpoint's largest memory throughout.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from bench.harness import compare, run, timed
from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.process import Child
from tests.cluster.versitygw import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, VersityGateway, program
from tests.tiering.reader.live import tier_to
from tiering.store.patient import PatientStore, patient
from tiering.store.s3 import S3Store, S3StoreSettings

TOPIC = "bench-serve"
RECORDS = int(os.environ.get("SEAWALL_BENCH_RECORDS", "3000000"))
RECORD_BYTES = 100
SEGMENT_BYTES = 32 * 1024 * 1024
CACHED_ROUNDS = 11
CONSUMERS = 10
START_S = 60.0
STOP_S = 30.0
POLL_S = 30.0


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(LocalCluster(folder / "broker", heap_mib=1024))
        gateway = stack.enter_context(VersityGateway(program(), folder / "s3"))
        bucket = gateway.new_bucket()
        _produce(cluster)
        in_tier = tier_to(cluster, _store(gateway, bucket), TOPIC).end
        assert in_tier > 0.9 * RECORDS, in_tier
        settings = _settings(folder, cluster, gateway, bucket)
        peaks: list[int] = []

        def theirs() -> float:
            return run([sys.executable, "-m", "bench.serve", "consume", cluster.bootstrap, RECORDS]).wall_s

        def ours_cold() -> float:
            with _endpoint(folder, settings, peaks, fresh=True) as address:
                return run([sys.executable, "-m", "bench.serve", "consume", address, RECORDS]).wall_s

        compare("serve", "cold, the same consumer on the broker", ours=ours_cold, theirs=theirs)
        with _endpoint(folder, settings, peaks, fresh=True) as address:

            def ours_cached() -> float:
                return run([sys.executable, "-m", "bench.serve", "consume", address, RECORDS]).wall_s

            # The consumer is what takes the time on both: more rounds, to tell the two apart.
            cached = "cached, the same consumer on the broker"
            compare("serve", cached, ours=ours_cached, theirs=theirs, rounds=CACHED_ROUNDS)
            with ThreadPoolExecutor(CONSUMERS) as pool:
                together_s = timed(lambda: list(pool.map(lambda _: ours_cached(), range(CONSUMERS))))
                broker_s = timed(lambda: list(pool.map(lambda _: theirs(), range(CONSUMERS))))
        line = {
            "bench": "serve",
            "peer": f"{CONSUMERS} at once, cached, on the broker",
            "ours": round(together_s, 4),
            "theirs": round(broker_s, 4),
            "unit": "s",
            "ratio": round(broker_s / together_s, 3),
            "records_per_s": round(RECORDS * CONSUMERS / together_s),
            "peak_bytes": max(peaks),
        }
        print(json.dumps(line), flush=True)  # noqa: T201 the benchmark's output


def consume(bootstrap: str, count: int) -> None:
    """Each offset once, in order; what is not so ends the process with an error."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": "5",
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    expected = 0
    while expected < count:
        messages = consumer.consume(10_000, POLL_S)
        assert messages, f"nothing came behind {expected}"
        for message in messages:
            assert message.error() is None, message.error()
            assert message.offset() == expected, (message.offset(), expected)
            expected += 1
    consumer.close()


def _produce(cluster: LocalCluster) -> None:
    config = {"retention.ms": "-1", "segment.bytes": str(SEGMENT_BYTES)}
    kafka.create_topic(cluster.bootstrap, TOPIC, config=config)
    java = [find_java().path, "-cp", classpath("broker"), "org.apache.kafka.tools.ProducerPerformance"]
    run(
        [
            *java,
            *("--topic", TOPIC, "--num-records", RECORDS, "--record-size", RECORD_BYTES),
            *("--throughput", "-1", "--command-property", f"bootstrap.servers={cluster.bootstrap}"),
        ]
    )


def _store(gateway: VersityGateway, bucket: str) -> PatientStore:
    settings = S3StoreSettings(
        bucket=bucket, endpoint_url=gateway.endpoint_url, region=REGION, addressing_style="path"
    )
    return patient(S3Store(settings, gateway.session()))


def _settings(folder: Path, cluster: LocalCluster, gateway: VersityGateway, bucket: str) -> Path:
    file = folder / "seawall.toml"
    file.write_text(
        f"""
[kafka]
bootstrap = "{cluster.bootstrap}"

[s3]
bucket = "{bucket}"
endpoint_url = "{gateway.endpoint_url}"
region = "{REGION}"

[serve]
listen = "127.0.0.1:0"
metrics_listen = "127.0.0.1:0"
cache_dir = "{folder / "cache"}"
"""
    )
    return file


@contextmanager
def _endpoint(folder: Path, settings: Path, peaks: list[int], *, fresh: bool) -> Iterator[str]:
    """A new process of it; its address. With `fresh` its cache is empty."""
    if fresh:
        shutil.rmtree(folder / "cache", ignore_errors=True)
    addresses = folder / "addresses"
    addresses.unlink(missing_ok=True)
    process = Child(
        name="seawall serve",
        argv=[sys.executable, "-m", "seawall", "serve", "--address-file", str(addresses)],
        log=folder / "serve.log",
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")},
            "SEAWALL_SETTINGS": str(settings),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
        },
    )
    process.start()
    try:
        process.wait_until_ready(addresses.exists, wanted="its addresses", deadline_s=START_S)
        clients, metrics = addresses.read_text().split()
        yield clients.split(",")[0]
        assert b"seawall_serve_defects_total 0" in _page(metrics)
        peaks.append(_peak_bytes(process.pid))
    finally:
        process.stop(grace_s=STOP_S)


def _page(address: str) -> bytes:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=STOP_S) as answer:
        content: bytes = answer.read()
        return content


def _peak_bytes(pid: int | None) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [each for each in status.splitlines() if each.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def _command(arguments: list[str]) -> Any:
    assert arguments[0] == "consume", arguments
    began = time.perf_counter()
    consume(arguments[1], int(arguments[2]))
    return time.perf_counter() - began


if __name__ == "__main__":
    _command(sys.argv[1:])
