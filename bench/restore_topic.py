"""Replay half a GiB into a topic: against a confluent-kafka loop that consumes and produces.

The closed segments of 524,288 records of 1,000 bytes, in batches of 16 KiB (Java's default), uncompressed,
on one broker of this machine; each run fills a topic of its own. The peer reads from the broker, 1,000
messages at a time, and produces with acks=all and idempotence: no transactions, and after a crash it would
not know where it was. We read from S3 (versitygw, this machine), hold every byte against its CRC, write in
transactions, and leave the offset map. Each runs as its users run it, start of the interpreter included.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench.harness import compare, run
from seawall.local import kafka
from seawall.local.broker import LocalCluster

RECORDS = 524_288
VALUE_BYTES = 1000
SOURCE = "source"
CONSUMED_AT_ONCE = 1000


def main() -> None:
    from bench.upload import _environment, _server  # and with it the tests' servers: not for what is measured

    with tempfile.TemporaryDirectory() as folder, _server() as (gateway, _):
        os.environ |= _environment(gateway.endpoint_url)
        bucket, plan = gateway.new_bucket(), Path(folder) / "plan.json"
        with LocalCluster(Path(folder) / "broker", heap_mib=512) as cluster:
            end = _prepare(cluster, gateway.endpoint_url, bucket, plan)
            _compare(cluster, gateway.endpoint_url, bucket, plan, end)


def _prepare(cluster: LocalCluster, endpoint_url: str, bucket: str, plan: Path) -> int:
    """The source topic, its closed segments in the bucket, and a plan for all of them; where they end."""
    from backup.plan.file import write_plan
    from rules.events import RestoreTarget
    from tests.backup.lost_logs import pieces_of, plan_for
    from tests.tiering.reader.live import tier_to
    from tiering.store.patient import patient
    from tiering.store.s3 import S3Store, S3StoreSettings

    settings = {"segment.bytes": str(32 * 1024 * 1024)}
    kafka.create_topic(cluster.bootstrap, SOURCE, config=settings)
    assert kafka.produce(cluster.bootstrap, SOURCE, _values()) == RECORDS
    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url)))
    tiered = tier_to(cluster, store, SOURCE)
    write_plan(plan, plan_for(pieces_of(tiered.segments), RestoreTarget.TOPIC))
    return tiered.end


def _values() -> Iterator[bytes]:
    words = b"the sea took it and the sea gives it back %08d "
    return ((words % n * 24)[:VALUE_BYTES] for n in range(RECORDS))


def _compare(cluster: LocalCluster, endpoint_url: str, bucket: str, plan: Path, end: int) -> None:
    numbers = count()

    def measure(*command: object) -> float:
        topic = f"target-{next(numbers)}"
        kafka.create_topic(cluster.bootstrap, topic)
        ran = run([sys.executable, "-m", "bench.restore_topic", *command, topic])
        found = _count(cluster.bootstrap, topic)
        assert found == end, (topic, found, end)
        kafka.delete_topic(cluster.bootstrap, topic)
        return ran.wall_s

    compare(
        "restore_topic",
        "confluent-kafka, consume and produce",
        ours=lambda: measure("ours", endpoint_url, bucket, plan, cluster.bootstrap),
        theirs=lambda: measure("theirs", cluster.bootstrap, end),
        more=lambda: {"records": end, "record_bytes": VALUE_BYTES},
    )


def _count(bootstrap: str, topic: str) -> int:
    """How many records a consumer of committed ones is given."""
    return sum(1 for _ in _consumed(bootstrap, topic))


def _consumed(bootstrap: str, topic: str) -> Iterator[object]:
    from confluent_kafka import Consumer, TopicPartition

    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "count",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "isolation.level": "read_committed",
        "fetch.queue.backoff.ms": "5",
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        for message in consumer.consume(CONSUMED_AT_ONCE, 0.5):  # it waits so long for the last ones
            if message.error() is not None:
                consumer.close()
                return
            yield message


def _ours(endpoint_url: str, bucket: str, plan: Path, bootstrap: str, topic: str) -> None:
    from backup.catalogue.bytes import plan_log
    from backup.plan.file import read_plan
    from backup.topic.kafka import KafkaProgress, ready_topic
    from backup.topic.parquet import write_map
    from backup.topic.replay import Job, committed_batches, replay
    from backup.topic.writer import TransactionalWriter
    from tiering.reader.reader import TieredReader
    from tiering.store.patient import patient
    from tiering.store.s3 import S3Store, S3StoreSettings

    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    config = {"bootstrap.servers": bootstrap}
    planned = read_plan(plan)
    log, body = plan_log(planned.body), planned.body
    found = ready_topic(
        config, topic, partition=0, partitions=1, oldest_ms=now_ms(), size_bytes=0, now_ms=now_ms()
    )
    job = Job(
        plan_hash=planned.hash,
        topic=topic,
        topic_id=found.topic_id,
        partition=0,
        start=body.range.start,
        end=body.range.end,
    )
    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url)))
    with (
        TieredReader(store) as reader,
        TransactionalWriter(config, job.transactional_id, topic, pause=time.sleep) as writer,
    ):
        source = committed_batches(reader, log)
        done = replay(job, source, writer, KafkaProgress(config), now_ms=now_ms, pause=time.sleep)
    map_file = plan.with_name(f"{topic}.parquet")
    write_map(map_file, done.map, source=(body.topic, 0), target=(topic, 0))


def _theirs(bootstrap: str, records: int, topic: str) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": "copy", "enable.auto.commit": "false"}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(SOURCE, 0, 0)])
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": "true"})
    copied = 0
    while copied < records:
        for message in consumer.consume(min(CONSUMED_AT_ONCE, records - copied), 30.0):
            assert message.error() is None, message.error()
            while True:
                try:
                    producer.produce(
                        topic,
                        value=message.value(),
                        key=message.key(),
                        partition=0,
                        timestamp=message.timestamp()[1],
                        headers=message.headers() or [],
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            copied += 1
        producer.poll(0)
    assert producer.flush(60.0) == 0
    consumer.close()


if __name__ == "__main__":
    if sys.argv[1] == "ours":
        _ours(sys.argv[2], sys.argv[3], Path(sys.argv[4]), sys.argv[5], sys.argv[6])
    else:
        _theirs(sys.argv[2], int(sys.argv[3]), sys.argv[4])
