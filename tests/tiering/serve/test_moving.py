"""Everything moves at once: producers, agents, leaders, trims, members of a group; each record comes once.

SEAWALL_FAULTS_SEED draws other rounds; SEAWALL_TEST_SERVE_ROUNDS makes it longer.
"""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.faults.agents import agents_beside
from tests.faults.ledger import Ledger, Place
from tests.faults.rounds import Scene, broker_frozen, broker_killed, move_leaders, s3_flaky, strike
from tests.faults.s3_trouble import S3Trouble
from tests.faults.test_whole_system import settings_of
from tests.tiering.reader.live import store_of
from tests.tiering.serve.live import Served, served

SEED = int(os.environ.get("SEAWALL_FAULTS_SEED", "23"))
ROUNDS = int(os.environ.get("SEAWALL_TEST_SERVE_ROUNDS", "2"))
PARTITIONS = 3
SEGMENT_BYTES = 48 * 1024
DEADLINE_S = 240.0
POLL_S = 1.0


class Reader:
    """A consumer that reads all there is, in a thread of its own, and notes what it was given."""

    def __init__(self, name: str, bootstrap: str, topic: str, *, assigned: bool, **settings: Any) -> None:
        self.name = name
        self.records: list[tuple[Place, bytes]] = []
        self.rebalances = 0
        self.errors: list[str] = []
        self._topic = topic
        self._assigned = assigned
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest" if not assigned else "error",
                "enable.auto.commit": "false",
                "session.timeout.ms": 10_000,
                "topic.metadata.refresh.interval.ms": 2000,
                "reconnect.backoff.max.ms": 500,
                **settings,
            },
            logger=kafka.SILENT,
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, name=name, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()

    def _read(self) -> None:
        if self._assigned:
            self._consumer.assign([TopicPartition(self._topic, each, 0) for each in range(PARTITIONS)])
        else:
            self._consumer.subscribe([self._topic], on_assign=self._on_assign)
        while not self._ending.is_set():
            for message in self._consumer.consume(500, POLL_S):
                error = message.error()
                if error is not None:
                    self.errors.append(error.str())
                    continue
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self.records.append((Place(partition, offset), message.value() or b""))
            with suppress(KafkaException):
                self._consumer.commit(asynchronous=False)
        self._consumer.close()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1


def trim(scene: Scene, endpoint: Served) -> int:
    """Have the brokers forget all that is below the frontier, as an operator would; how many offsets."""
    cluster, topic = scene.cluster, scene.ledger.topic
    admin = kafka.admin_client(cluster.bootstrap)
    [found] = admin.list_topics(topic).topics.values()
    assert found.error is None
    topic_id = _topic_id(endpoint, topic)
    below: list[TopicPartition] = []
    for partition in range(PARTITIONS):
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
    """One alone, and two that share a group, of which one comes later."""
    readers = [
        Reader("alone", endpoint.bootstrap, topic, assigned=True),
        Reader("first", endpoint.bootstrap, topic, assigned=False, **{"group.id": "shared"}),
    ]
    try:
        yield readers
    finally:
        for each in readers:
            each.end()


@pytest.mark.long
def test_each_record_comes_once_while_everything_moves(
    cluster3: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """Alone, and in a group with members that come and go: whatever was acknowledged, in order, once."""
    topic, prefix = f"moving-{uuid.uuid4().hex[:8]}", f"serve-{uuid.uuid4().hex[:8]}"
    produce.create_topic(
        cluster3,
        topic,
        partitions=PARTITIONS,
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
            served({"bootstrap.servers": cluster3.bootstrap}, store_of(bucket), nodes=2) as endpoint,
        ):
            scene = Scene(cluster=cluster3, agents=agents, s3=trouble, ledger=ledger, chance=chance)
            with reading(endpoint, topic) as readers:
                for number in range(ROUNDS):
                    strike(scene, (broker_killed, broker_frozen)[number % 2])
                    trim(scene, endpoint)
                    second = Reader(
                        "second", endpoint.bootstrap, topic, assigned=False, **{"group.id": "shared"}
                    )
                    readers.append(second)
                    with s3_flaky(scene):
                        assert ledger.grows_by(300, deadline_s=DEADLINE_S)
                    move_leaders(scene)
                    assert ledger.grows_by(300, deadline_s=DEADLINE_S)
                    readers.remove(second)
                    second.end()
                    readers[1].records += second.records
                promised = ledger.close()
                late = Reader("late", endpoint.bootstrap, topic, assigned=True)
                readers.append(late)

                def all_read() -> bool:
                    wanted = promised.by_place.keys()
                    return all(wanted <= {place for place, _ in list(each.records)} for each in readers)

                wait_until(all_read, name=topic, wanted="every record read", deadline_s=DEADLINE_S)
            counters = endpoint.counters
            troubles = [what for what, _ in endpoint.troubles if what in ("defect", "damaged", "missing")]
    told = scene.account()
    alone, shared, late = readers
    for each in (alone, late):
        places = [place for place, _ in each.records]
        assert promised.differences(dict(each.records)) == [], told
        assert len(places) == len(set(places)), f"{each.name} was given a record twice\n{told}"
        for partition in range(PARTITIONS):
            offsets = [place.offset for place in places if place.partition == partition]
            assert offsets == sorted(offsets), f"{each.name} was given records out of order\n{told}"
    # A group gives at least once: what a member had and did not commit comes again to the next.
    assert promised.differences(dict(shared.records)) == [], told
    assert troubles == [], told
    assert counters["out_of_range"] == 0, told
    assert counters["handovers"] > 0
    assert counters["tier_fetches"] > 0
