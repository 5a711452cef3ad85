"""Real segments of a real broker, tiered to a real bucket: what is read back is what a consumer is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Consumer, TopicPartition

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.cluster.cases_records import CODECS
from tests.cluster.produce import Writer, create_topic, texts, transactional
from tests.faults.clean import assert_clean
from tests.seawall.cli.calling import call
from tests.tiering.reader.live import Tiered, store_of, tier_partition
from tiering.log.batch import Record
from tiering.reader.disk_cache import DiskCache
from tiering.reader.interface import Isolation, ReaderLimits, TieredLog, tiered_log
from tiering.reader.reader import TieredReader
from tiering.segments.kafka import check_topic, replay

TOPIC = "read-back"
CONSUMED_S = 30.0
LIMITS = ReaderLimits(chunk_bytes=5000, ahead_chunks=6, fetchers=3)


@pytest.fixture(scope="module")
def tiered(broker: LocalCluster, bucket: LocalBucket) -> Iterator[Tiered]:
    """Every codec, and transactions longer than a segment, of which one in three is aborted."""
    create_topic(broker, TOPIC)
    one = transactional(broker, TOPIC, "read-back-one")
    two = transactional(broker, TOPIC, "read-back-two", **{"compression.type": "zstd"})
    plain = [Writer(broker, TOPIC, codec, {"compression.type": codec}) for codec in CODECS]
    for turn in range(3):
        one.begin()
        one.send_all(texts(60, seed=turn), key=b"one", headers=(("turn", b"%d" % turn), ("none", None)))
        two.begin()
        two.send_all(texts(200, seed=turn))
        for writer in plain:
            writer.send_all([*texts(15, seed=turn), None, b"\xff\xfe"])
        one.send_all(texts(60, seed=turn + 100))
        one.commit() if turn != 1 else one.abort()
        two.abort() if turn != 1 else two.commit()
    plain[0].send_all(texts(100))  # what the last segments need to be closed
    yield tier_partition(broker, bucket, TOPIC)
    assert_clean(broker, bucket, TOPIC, prefix="reader-tests")


@pytest.fixture(scope="module")
def log(tiered: Tiered, broker: LocalCluster) -> TieredLog:
    config = {"bootstrap.servers": broker.bootstrap}
    found = tiered_log(replay(config, check_topic(config)), tiered.log)
    assert isinstance(found, TieredLog), found
    return found


def consumed(broker: LocalCluster, isolation: Isolation, end: int) -> list[Record]:
    """What librdkafka gives a client of the partition below `end`."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "none",
            "enable.auto.commit": "false",
            "isolation.level": isolation.value,
            "enable.partition.eof": "true",
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[Record] = []
    while True:
        message = consumer.poll(CONSUMED_S)
        assert message is not None, f"nothing came for {CONSUMED_S} s"
        offset = message.offset()
        assert offset is not None
        if message.error() is not None or offset >= end:
            break
        pairs = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        found.append(Record(offset, message.timestamp()[1], message.key(), message.value(), tuple(pairs)))
    consumer.close()
    return found


@pytest.mark.parametrize("isolation", list(Isolation))
def test_records_are_those_that_a_consumer_gets(
    isolation: Isolation,
    log: TieredLog,
    tiered: Tiered,
    broker: LocalCluster,
    bucket: LocalBucket,
    tmp_path: Path,
) -> None:
    """Offsets, times, keys, values and headers, in both isolation levels, without and with a warm cache."""
    assert len(tiered.segments) > 5
    cache = DiskCache(tmp_path)

    with TieredReader(store_of(bucket), cache=cache, limits=LIMITS) as reader:
        cold = list(reader.records(log, 0, log.end, isolation=isolation))
        fetched = reader.counters.requests
        warm = list(reader.records(log, 0, log.end, isolation=isolation))

    assert cold == consumed(broker, isolation, tiered.end)
    assert warm == cold
    assert (reader.counters.requests, cache.counters.hits > 0) == (fetched, True)


def test_batches_are_the_bytes_on_the_brokers_disk(
    log: TieredLog, tiered: Tiered, bucket: LocalBucket
) -> None:
    """All batches of all closed segments, put together."""
    on_disk = b"".join(
        (tiered.folder / f"{record.base_offset:020d}.log").read_bytes() for record in tiered.segments
    )

    with TieredReader(store_of(bucket)) as reader:
        assert b"".join(batch.content for batch in reader.batches(log, 0, log.end)) == on_disk


def test_a_range_inside_a_segment_is_found_by_kafkas_own_index(log: TieredLog, bucket: LocalBucket) -> None:
    """Offsets all over the log read back alone, each from a part of its segment."""
    with TieredReader(store_of(bucket), limits=LIMITS) as reader:
        for offset in range(0, log.end, 83):
            (batch,) = reader.batches(log, offset, offset + 1)
            assert batch.header.base_offset <= offset < batch.header.next_offset
    assert reader.counters.bytes_read < (log.end / 83 + 1) * 4 * LIMITS.chunk_bytes


def test_a_time_is_found_where_kafka_finds_it(
    log: TieredLog, broker: LocalCluster, bucket: LocalBucket
) -> None:
    """Kafka's ListOffsets by time, for times of records, between and before them."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    with TieredReader(store_of(bucket)) as reader:
        times = [record.timestamp_ms for record in reader.records(log, 0, log.end)]
        for timestamp_ms in sorted({0, *times[::40], *(time + 1 for time in times[::90])}):
            (answer,) = consumer.offsets_for_times([TopicPartition(TOPIC, 0, timestamp_ms)], CONSUMED_S)
            if 0 <= answer.offset < log.end:
                assert reader.offset_at(log, timestamp_ms) == answer.offset
    consumer.close()


def test_the_verb_reads_by_the_settings_alone(
    log: TieredLog, tiered: Tiered, broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """`seawall read` finds topic, table and bucket by itself, and its raw file is sound to `log verify`."""
    at = bucket.address
    environ = {
        "SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap,
        "SEAWALL_S3__BUCKET": at.bucket,
        "SEAWALL_S3__ENDPOINT_URL": at.endpoint_url,
        "SEAWALL_S3__REGION": at.region,
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
    }
    raw = tmp_path / f"{0:020d}.log"

    ran = call("read", f"{TOPIC}:0", "--json", "--from", "100", "--to", "900", environ=environ)
    copied = call("read", f"{TOPIC}:0", "--raw", str(raw), environ=environ)

    shown = [row.offset for row in consumed(broker, Isolation.READ_COMMITTED, 900) if row.offset >= 100]
    assert (ran.status, ran.stderr) == (0, "")
    assert [json.loads(line)["offset"] for line in ran.stdout.splitlines()] == shown
    assert (copied.status, copied.stderr) == (0, "")
    assert call("log", "verify", str(raw)).status == 0
    assert raw.stat().st_size == sum(record.size_bytes for record in tiered.segments)
