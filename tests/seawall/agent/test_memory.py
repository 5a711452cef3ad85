"""How much memory a live agent takes for segments of 2 GiB, the largest that Kafka writes."""

from __future__ import annotations

import random
import re
import uuid
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.s3 import S3Address
from seawall.local.waiting import wait_until
from tests.cluster.produce import create_topic
from tests.cluster.versitygw import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, VersityGateway
from tests.faults.agents import Agent, agent_beside
from tests.faults.test_whole_system import replayed, settings_of
from tests.seawall.cli.calling import call
from tiering.segments.coverage import Coverage, coverage

MIB = 1024 * 1024
PROMISED_BYTES = 300_000_000
LARGEST = 2**31 - 1  # segment.bytes is an int32
SMALLER = 256 * MIB  # of three more partitions: with the large one as many as an agent has workers
VALUE_BYTES = 15_000  # with its framing 16 KiB, as much as a batch of the Java producer has by default
DEADLINE_S = 1200.0
AT_ONCE = 20_000  # records that a client may have waiting


def fill(broker: LocalCluster, topic: str, partition: int, size_bytes: int, **how: int) -> None:
    """Records of bytes that do not compress, until a segment of this size has closed."""
    chance = random.Random(partition)
    values = [chance.randbytes(VALUE_BYTES) for _ in range(64)]

    def heard(error: object, _: object) -> None:
        if error is not None:
            raise KafkaException(error)

    settings = {"bootstrap.servers": broker.bootstrap, "acks": "all", "enable.idempotence": True}
    producer = Producer({**settings, **how}, logger=kafka.SILENT)
    for number in range(size_bytes // VALUE_BYTES + 1):
        while len(producer) >= AT_ONCE:
            producer.poll(0.1)
        producer.produce(topic, values[number % len(values)], partition=partition, on_delivery=heard)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0


def closed(broker: LocalCluster, topic: str) -> dict[int, tuple[int, int]]:
    """Of each partition how large its first segment is, and where the next one begins."""
    [log_dir] = broker.log_dirs()
    found = {}
    for folder in log_dir.glob(f"{topic}-*"):
        first, second, *_ = sorted(folder.glob("*.log"))
        found[int(folder.name.rpartition("-")[2])] = (first.stat().st_size, int(second.stem))
    return found


def frontiers(broker: LocalCluster, topic: str) -> dict[int, int]:
    table = replayed(broker)
    found: dict[int, int] = {}
    for log in table.logs():
        view = table.view(log)
        if view is not None and view.record is not None and view.record.topic == topic:
            seen = coverage(view)
            found[log.partition] = seen.frontier.offset if isinstance(seen, Coverage) else 0
    return found


def peak_bytes(agent: Agent) -> int:
    """The most that the process ever had in memory, by the kernel's own count."""
    status = Path(f"/proc/{agent.process.pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its peak of memory from /proc")
def test_it_stays_below_what_is_promised_with_segments_of_2_gib(
    broker: LocalCluster, versitygw: VersityGateway, tmp_path: Path
) -> None:
    """One segment of 2 GiB and three of 256 MiB, of large batches and of small ones, copied at once by all
    workers to a real S3 server: the process never has 300 MB, and what it wrote is sound by a deep scrub."""
    at = S3Address(
        endpoint_url=versitygw.endpoint_url,
        bucket=versitygw.new_bucket(),
        region=REGION,
        access_key_id=ACCESS_KEY_ID,
        secret_access_key=SECRET_ACCESS_KEY,
    )
    name = uuid.uuid4().hex[:8]
    sizes = {f"large-{name}": (1, LARGEST), f"smaller-{name}": (3, SMALLER)}
    for topic, (partitions, size_bytes) in sizes.items():
        create_topic(
            broker,
            topic,
            partitions=partitions,
            segment_bytes=None,
            config={"segment.bytes": str(size_bytes)},
        )
        for partition in range(partitions):
            # Those of the large one are as large as librdkafka makes them, 1 MB; the others' are small.
            how = {} if size_bytes == LARGEST else {"batch.num.messages": 4}
            fill(broker, topic, partition, size_bytes, **how)
    wanted = {topic: closed(broker, topic) for topic in sizes}
    settings = settings_of(broker, at.endpoint_url, at.bucket, name, f'large-{name}", "smaller-{name}')

    with agent_beside(broker, tmp_path, settings, at) as agent:
        idle_bytes = peak_bytes(agent)
        wait_until(
            lambda: all(
                frontiers(broker, topic).get(partition) == end
                for topic, found in wanted.items()
                for partition, (_, end) in found.items()
            ),
            name="the agent",
            wanted="all that is closed to be copied",
            deadline_s=DEADLINE_S,
        )
        peak = peak_bytes(agent)
        assert agent.process.stop(grace_s=30.0), "it ended by itself"

    assert wanted[f"large-{name}"][0][0] > 2**31 - 2 * MIB
    assert peak < PROMISED_BYTES, f"{peak} bytes, and {idle_bytes} when it had started"
    arguments = ["--bootstrap", broker.bootstrap, "--bucket", at.bucket, "--prefix", name]
    arguments += ["--endpoint-url", at.endpoint_url, "--region", REGION]
    environ = {"AWS_ACCESS_KEY_ID": ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY}
    scrubbed = call("tier", "scrub", *sizes, "--no-events", *arguments, environ=environ)
    assert scrubbed.status == 0, f"{scrubbed.stdout}{scrubbed.stderr}"
    print(f"peak {peak / 1e6:.0f} MB, {idle_bytes / 1e6:.0f} MB at its start")  # noqa: T201 what is measured
