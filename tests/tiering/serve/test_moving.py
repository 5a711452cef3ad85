"""Everything moves at once: producers, agents, leaders, trims, members of a group; each record comes once.

Plain records go to the first partitions, transactions, of which every third is aborted, to the last one. What
comes of it is read once more at the end, by clients that others made.

SEAWALL_FAULTS_SEED draws other rounds; SEAWALL_TEST_SERVE_ROUNDS makes it longer.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, TopicPartition

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.faults.agents import agents_beside
from tests.faults.clean import assert_clean
from tests.faults.ledger import Ledger, Place, Promised
from tests.faults.rounds import Scene, broker_frozen, broker_killed, move_leaders, s3_flaky, strike
from tests.faults.s3_trouble import S3Trouble
from tests.faults.test_whole_system import settings_of
from tests.tiering.reader.live import PREFIX, store_of, tier_partition
from tests.tiering.serve.live import Served, served
from tests.tiering.serve.readers import (
    Decided,
    Reader,
    Transactions,
    by_console_consumer,
    by_kcat,
    by_spark,
    from_time,
    needs_kcat,
    value_of,
)
from tiering.segments.kafka import ensure_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = int(os.environ.get("SEAWALL_FAULTS_SEED", "23"))
ROUNDS = int(os.environ.get("SEAWALL_TEST_SERVE_ROUNDS", "2"))
PARTITIONS = 3
IN_TRANSACTIONS = PARTITIONS  # the partition behind them
EVERY = range(PARTITIONS + 1)
SEGMENT_BYTES = 48 * 1024
DEADLINE_S = 240.0
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


def trim(scene: Scene, endpoint: Served) -> int:
    """Have the brokers forget all that is below the frontier, as an operator would; how many offsets."""
    cluster, topic = scene.cluster, scene.ledger.topic
    admin = kafka.admin_client(cluster.bootstrap)
    [found] = admin.list_topics(topic).topics.values()
    assert found.error is None
    topic_id = _topic_id(endpoint, topic)
    below: list[TopicPartition] = []
    for partition in EVERY:
        log = endpoint.tier.log(topic_id, partition)
        if log is not None:
            below.append(TopicPartition(topic, partition, log.end))
    done = 0
    for future in admin.delete_records(below).values() if below else ():
        with suppress(KafkaException):
            done += future.result(DEADLINE_S).low_watermark
    scene.tell(f"brokers are trimmed up to {[each.offset for each in below]}")
    return done


def _topic_id(endpoint: Served, topic: str) -> str:
    known = endpoint.endpoint.service.cluster.named(topic)
    assert known is not None
    return known.topic_id


@contextmanager
def reading(endpoint: Served, topic: str) -> Iterator[list[Reader]]:
    """One alone, two that share a group, of which one comes later, and one for each sort of isolation."""
    at, plain, last = endpoint.bootstrap, dict.fromkeys(range(PARTITIONS), 0), {IN_TRANSACTIONS: 0}
    readers = [
        Reader("alone", at, topic, starts=plain),
        Reader("first", at, topic, starts=None, **{"group.id": "shared"}),
        Reader("committed", at, topic, starts=last, **{"isolation.level": COMMITTED}),
        Reader("uncommitted", at, topic, starts=last, **{"isolation.level": UNCOMMITTED}),
    ]
    try:
        yield readers
    finally:
        for each in readers:
            each.end()


def of_plain(read: Mapping[Place, bytes]) -> dict[Place, bytes]:
    return {place: value for place, value in read.items() if place.partition != IN_TRANSACTIONS}


def misread(read: Mapping[Place, bytes], promised: Promised, decided: Decided) -> list[str]:
    """What a read_committed client was not given, or should not have been; empty if it was exact."""
    return promised.differences(of_plain(read)) + misread_transactions(read, IN_TRANSACTIONS, decided)


def misread_transactions(read: Mapping[Place, bytes], partition: int, decided: Decided) -> list[str]:
    """The same of the partition that has nothing but transactions."""
    values = [value for place, value in read.items() if place.partition == partition]
    wrong = [f"{value[:16]!r} is lost" for value in decided.committed - set(values)]
    wrong += [f"{value[:16]!r} was aborted" for value in decided.aborted & set(values)]
    wrong += ["a value came at two offsets"] if len(set(values)) != len(values) else []
    stranger = set(values) - decided.committed - decided.aborted - decided.unsure
    return wrong + [f"{value[:16]!r} was never written" for value in stranger]


@pytest.mark.long
@pytest.mark.timeout(3600)
@needs_kcat
def test_each_record_comes_once_while_everything_moves(
    cluster3: LocalCluster, bucket: LocalBucket, spark: SparkSession, tmp_path: Path
) -> None:
    """Alone, in a group, by isolation and by time, and at the end by others' clients: each record once."""
    topic, prefix = f"moving-{uuid.uuid4().hex[:8]}", f"serve-{uuid.uuid4().hex[:8]}"
    produce.create_topic(
        cluster3,
        topic,
        partitions=len(EVERY),
        replication=3,
        segment_bytes=SEGMENT_BYTES,
        config={"min.insync.replicas": "2"},
    )
    chance = random.Random(SEED)
    with S3Trouble(bucket.address.endpoint_url, chance=random.Random(SEED)) as trouble:
        settings = settings_of(cluster3, trouble.endpoint_url, bucket.address.bucket, prefix, topic)
        with (
            agents_beside(cluster3, tmp_path, settings, bucket.address) as agents,
            Ledger(cluster3.bootstrap, topic, PARTITIONS) as ledger,
            Transactions(cluster3.bootstrap, topic, IN_TRANSACTIONS) as transactions,
            served({"bootstrap.servers": cluster3.bootstrap}, store_of(bucket), nodes=2) as endpoint,
        ):
            scene = Scene(cluster=cluster3, agents=agents, s3=trouble, ledger=ledger, chance=chance)
            with reading(endpoint, topic) as readers:
                for number in range(ROUNDS):
                    strike(scene, (broker_killed, broker_frozen)[number % 2])
                    trim(scene, endpoint)
                    second = Reader(
                        "second", endpoint.bootstrap, topic, starts=None, **{"group.id": "shared"}
                    )
                    readers.append(second)
                    with s3_flaky(scene):
                        assert ledger.grows_by(300, deadline_s=DEADLINE_S)
                    midway_ms = time.time_ns() // 1_000_000
                    move_leaders(scene)
                    assert ledger.grows_by(300, deadline_s=DEADLINE_S)
                    readers.remove(second)
                    second.end()
                    readers[1].records += second.records
                decided = transactions.close()
                promised = ledger.close()
                trim(scene, endpoint)
                starts = from_time(endpoint.bootstrap, topic, range(PARTITIONS), midway_ms)
                readers += [
                    Reader("late", endpoint.bootstrap, topic, starts=dict.fromkeys(EVERY, 0)),
                    Reader("by time", endpoint.bootstrap, topic, starts=starts),
                ]
                alone, shared, committed, uncommitted, late, timed = readers

                def all_read() -> bool:
                    places, behind = promised.by_place.keys(), _behind(promised, starts).by_place.keys()
                    return (
                        all(places <= each.places() for each in (alone, shared, late))
                        and behind <= timed.places()
                        and all(decided.committed <= each.values() for each in readers[1:5])
                    )

                wait_until(all_read, name=topic, wanted="every record read", deadline_s=DEADLINE_S)
            by_others = {"kcat": by_kcat(endpoint.bootstrap, topic)}
            count = len(by_others["kcat"])
            by_others["Kafka's own"] = by_console_consumer(endpoint.bootstrap, topic, count)
            by_others["Spark's"] = by_spark(spark, endpoint.bootstrap, topic, 3 * len(EVERY))
            counters = endpoint.counters
            troubles = [what for what, _ in endpoint.troubles if what in ("defect", "damaged", "missing")]
    told = scene.account()
    for each in (alone, committed, uncommitted, late, timed):
        assert each.disorder() == [], told
    assert promised.differences(dict(alone.records)) == [], told
    assert misread(dict(late.records), promised, decided) == [], told
    assert misread(late.of(*range(PARTITIONS)) | dict(committed.records), promised, decided) == [], told
    assert decided.committed <= uncommitted.values(), told
    assert uncommitted.values() <= decided.committed | decided.aborted | decided.unsure, told
    for name, read in by_others.items():
        assert misread(read, promised, decided) == [], f"{name}\n{told}"
        assert read == dict(late.records), f"{name}\n{told}"
    # The first of that time or later, by the records' own times, and from there on exactly what there is.
    for partition, start in starts.items():
        first = min(
            place.offset
            for place, ms in late.times_ms.items()
            if place.partition == partition and ms >= midway_ms
        )
        assert start == first, told
    assert _behind(promised, starts).differences(dict(timed.records)) == [], told
    # A group gives at least once: what a member had and did not commit comes again to the next.
    assert misread(dict(shared.records), promised, decided) == [], told
    assert troubles == [], told
    assert counters["out_of_range"] == 0, told
    assert counters["handovers"] > 0
    assert counters["tier_fetches"] > 0
    assert decided.aborted
    assert_clean(cluster3, bucket, topic, prefix=prefix)


def _behind(promised: Promised, starts: Mapping[int, int]) -> Promised:
    """What is at these offsets or behind them; of what has no known place, nothing can be said."""
    kept = {
        place: value for place, value in promised.by_place.items() if place.offset >= starts[place.partition]
    }
    return replace(promised, by_place=kept)


@needs_kcat
def test_readers_go_on_while_the_seam_moves(broker: LocalCluster, bucket: LocalBucket) -> None:
    """Transactions, copies and a trim under readers of both isolation levels and of times: once each."""
    topic, config = "moving-a-little", {"bootstrap.servers": broker.bootstrap}
    produce.create_topic(broker, topic, partitions=2)
    ensure_topic(config, partitions=produce.METADATA_PARTITIONS)
    writer = produce.transactional(broker, topic, "moving")

    def write(first: int) -> None:
        for number in range(first, first + 6):
            writer.begin()
            writer.send_all([value_of(b"%d %d" % (number, each)) for each in range(40)])
            writer.abort() if number % 3 == 2 else writer.commit()

    write(0)
    with (
        served(config, store_of(bucket), nodes=2) as endpoint,
        Transactions(broker.bootstrap, topic, 1) as transactions,
    ):
        readers = [
            Reader(each, endpoint.bootstrap, topic, starts={0: 0}, **{"isolation.level": each})
            for each in (COMMITTED, UNCOMMITTED)
        ]
        try:
            write(6)
            tiered = tier_partition(broker, bucket, topic)
            write(12)
            admin = kafka.admin_client(broker.bootstrap)
            cut = TopicPartition(topic, 0, tiered.segments[-1].base_offset)
            [done] = admin.delete_records([cut]).values()
            assert done.result(DEADLINE_S).low_watermark == cut.offset
            write(18)
            wait_until(lambda: transactions.count > 0, name=topic, wanted="a commit", deadline_s=DEADLINE_S)
            decided = transactions.close()
            time_ms = writer.acknowledged[len(writer.acknowledged) // 3].timestamp_ms
            starts = from_time(endpoint.bootstrap, topic, [0], time_ms)
            readers += [
                Reader("by time", endpoint.bootstrap, topic, starts=starts),
                Reader("late", endpoint.bootstrap, topic, starts={0: 0, 1: 0}),
            ]
            every = {Place(0, each.offset): each.value for each in writer.acknowledged}
            committed = {
                Place(0, each.offset): each.value for each in writer.acknowledged if each.fate == "committed"
            }
            timed = {place: value for place, value in committed.items() if place.offset >= starts[0]}
            wanted = [committed, every, timed, committed]

            def all_read() -> bool:
                pairs = zip(readers, wanted, strict=True)
                are_read = all(len(each.of(0)) >= len(theirs) for each, theirs in pairs)
                return are_read and decided.committed <= readers[-1].values()

            wait_until(all_read, name=topic, wanted="every record read", deadline_s=DEADLINE_S)
            others = [by_kcat(endpoint.bootstrap, topic)]
            others.append(by_console_consumer(endpoint.bootstrap, topic, len(others[0])))
        finally:
            for each in readers:
                each.end()
        for each, theirs in zip(readers, wanted, strict=True):
            assert each.of(0) == theirs, each.name
            assert each.disorder() == []
        late = dict(readers[-1].records)
        assert misread_transactions(late, 1, decided) == []
        assert others == [late, late]
        assert starts[0] <= min(each.offset for each in writer.acknowledged if each.timestamp_ms >= time_ms)
        assert endpoint.counters["out_of_range"] == 0
        assert endpoint.counters["tier_fetches"] > 0
        assert not endpoint.troubles
    assert_clean(broker, bucket, topic, prefix=PREFIX)
