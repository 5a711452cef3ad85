"""A range replayed into another topic of a real broker: consumers of committed records get the same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from backup.topic.errors import TakenOver, TargetUnfit
from backup.topic.kafka import KafkaProgress, Target, ready_topic
from backup.topic.offset_map import OffsetMap
from backup.topic.outgoing import PACKED_BYTES, outgoing
from backup.topic.parquet import read_map, write_map
from backup.topic.replay import Job, Replayed, Source, committed_batches, replay
from backup.topic.writer import TransactionalWriter
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.backup.lost_logs import consumed, delete_records, write_all_kinds
from tests.cluster import produce
from tests.encode.record_batch import PlainRecord, encode_batch
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, Tiered, store_of, tier_partition
from tiering.log.batch import Record, read_header
from tiering.reader.interface import StoredBatch, TieredLog, tiered_log
from tiering.reader.reader import TieredReader
from tiering.segments.kafka import check_topic
from tiering.segments.kafka import replay as replay_metadata
from tiering.segments.records import SegmentId

PLAN = "ab" * 32


class Killed(Exception):
    """What a test throws where a process would end."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def log_of(broker: LocalCluster, tiered: Tiered) -> TieredLog:
    config = {"bootstrap.servers": broker.bootstrap}
    found = tiered_log(replay_metadata(config, check_topic(config)), tiered.log)
    assert isinstance(found, TieredLog), found
    return found


def ready(broker: LocalCluster, topic: str, **settings: str) -> Target:
    config = {"bootstrap.servers": broker.bootstrap}
    return ready_topic(
        config,
        topic,
        partition=0,
        partitions=1,
        oldest_ms=1_700_000_000_000,
        size_bytes=1,
        now_ms=now_ms(),
        settings=settings,
    )


def target(broker: LocalCluster, topic: str, **settings: str) -> str:
    """The topic's id."""
    return ready(broker, topic, **settings).topic_id


def run(broker: LocalCluster, job: Job, source: Source, kill_at: int | None = None) -> Replayed:
    """The replay, ended before its `kill_at`-th effect."""
    config = {"bootstrap.servers": broker.bootstrap}
    effects = 0

    def step(what: str) -> None:
        nonlocal effects
        effects += 1
        if effects == kill_at:
            raise Killed(what)

    with TransactionalWriter(config, job.transactional_id, job.topic, pause=time.sleep) as writer:
        return replay(
            job,
            source,
            writer,
            KafkaProgress(config),
            now_ms=now_ms,
            pause=time.sleep,
            step=step,
            transaction_bytes=20_000,
        )


def same(found: list[Record], wanted: list[Record], offsets: OffsetMap) -> None:
    """The records but for their offsets, and each where the map says."""
    assert [each[1:] for each in found] == [each[1:] for each in wanted]
    assert [offsets.translate(each.offset) for each in wanted] == [each.offset for each in found]


def test_the_committed_records_are_the_same_whatever_killed_the_replay(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """Times, keys, headers, nulls, codecs, transactions' outcomes; killed again and again and resumed;
    the source trimmed away; run once more, it does nothing."""
    topic = "replayed"
    produce.create_topic(broker, topic)
    write_all_kinds(broker, topic)
    tiered = tier_partition(broker, bucket, topic)
    wanted = consumed(broker, topic, isolation="read_committed", end=tiered.end)
    log = log_of(broker, tiered)
    delete_records(broker, topic, tiered.end)
    job = Job(
        plan_hash=PLAN,
        topic="replayed-into",
        topic_id=target(broker, "replayed-into"),
        partition=0,
        start=0,
        end=tiered.end,
    )

    with TieredReader(store_of(bucket)) as reader:
        source = committed_batches(reader, log)
        kills = 0
        while True:
            try:
                done = run(broker, job, source, kill_at=3 + 9 * kills)
                break
            except Killed:
                kills += 1
        again = run(broker, job, source)

    assert kills > 3
    assert_clean(broker, bucket, topic, prefix=PREFIX)
    assert again.map == done.map
    assert again.counted.transactions == 0
    found = consumed(broker, job.topic, isolation="read_committed")
    same(found, wanted, done.map)
    assert done.map.translate(tiered.end) == done.map.target_end
    assert done.map.translate(tiered.end + 1) is None
    path = tmp_path / "map.parquet"
    write_map(path, done.map, source=(topic, 0), target=(job.topic, 0))
    assert read_map(path) == (done.map, (topic, 0), (job.topic, 0))


def test_a_topic_that_would_not_keep_it_is_refused(broker: LocalCluster) -> None:
    """Compaction, the broker's own times, retention: each a complaint, and nothing is sent."""
    for name, settings in {
        "compacting": {"cleanup.policy": "compact"},
        "timing": {"message.timestamp.type": "LogAppendTime"},
        "short": {"retention.ms": "1000"},
    }.items():
        produce.create_topic(broker, f"unfit-{name}", config=settings)
        with pytest.raises(TargetUnfit):
            target(broker, f"unfit-{name}")


def test_batches_are_packed_up_to_what_the_topic_takes(broker: LocalCluster) -> None:
    """Half a mebibyte, or less where the topic's largest batch is smaller: a larger one would be refused for
    good."""
    assert ready(broker, "packing", **{"segment.bytes": str(1 << 20)}).batch_bytes == PACKED_BYTES
    assert ready(broker, "packing-less", **{"max.message.bytes": "100000"}).batch_bytes == 100_000


def test_an_earlier_run_is_fenced(broker: LocalCluster) -> None:
    """Two alive at once: the later one takes over, and nothing of the earlier one's is to be seen."""
    topic = "fenced"
    produce.create_topic(broker, topic)
    config = {"bootstrap.servers": broker.bootstrap}
    with (
        TransactionalWriter(config, "one-name", topic, pause=time.sleep) as first,
        TransactionalWriter(config, "one-name", topic, pause=time.sleep) as second,
    ):
        for each, value in ((first, b"first"), (second, b"second")):
            each.begin()
            each.enter([(topic, 0)])
            content = encode_batch([PlainRecord(offset=0, timestamp_ms=now_ms(), value=value)])
            batch = StoredBatch(read_header(content), memoryview(content), 0, 1, SegmentId("one"), 0)
            sent = outgoing(batch, each.sender(topic, 0))
            assert sent is not None
            number = each.send(topic, 0, sent.content)
            assert list(each.settle()) == [number]
        with pytest.raises(TakenOver):
            first.commit()
        second.commit()

    assert [each.value for each in consumed(broker, topic, isolation="read_committed")] == [b"second"]
