"""Real clients before the endpoint: over the seam, each record that was produced, once and in order.

The topic's local segments are trimmed nearly up to the frontier first, so that what clients are given can
only have come from the bucket; what was produced is known from the producers' own acknowledgements.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.jvm_options import short_lived
from tests.cluster.produce import Writer, WrittenRecord, create_topic, texts, transactional
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, Tiered, store_of, tier_partition
from tests.tiering.serve.live import Served, served
from tests.tiering.serve.readers import KCAT, needs_kcat
from tests.tiering.serve.wire import WireClient
from tiering.serve.protocol import apis
from tiering.serve.protocol.asking import (
    EpochPartition,
    EpochTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetForLeaderEpochRequest,
)
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.fetching import FetchPartition, FetchRequest, FetchTopic
from tiering.serve.protocol.session import InitProducerIdRequest
from tiering.serve.service import NODE_IDS_FROM

TOPIC = "served"
POLL_S = 30.0
T0_MS = 1_700_000_000_000
DEADLINE_S = 120
FROM_THE_BROKER = 300  # records at least that lie beyond the frontier
Pair = tuple[int, bytes | None]


class World:
    """What was produced, what of it is in the bucket, and the endpoint before both."""

    def __init__(self, written: list[WrittenRecord], tiered: Tiered, endpoint: Served, brokers: str) -> None:
        self.records = sorted(written, key=lambda each: each.offset)
        self.tiered = tiered
        self.endpoint = endpoint
        self.brokers = brokers

    @property
    def bootstrap(self) -> str:
        return self.endpoint.bootstrap

    def pairs(self, *, committed: bool) -> list[Pair]:
        return [
            (each.offset, each.value) for each in self.records if not (committed and each.fate == "aborted")
        ]


@pytest.fixture(scope="module")
def world(broker: LocalCluster, bucket: LocalBucket) -> Iterator[World]:
    """Transactions over segment borders, of which some are aborted, times that go back, and codecs."""
    create_topic(broker, TOPIC)
    plain = Writer(broker, TOPIC, "plain", {"compression.type": "lz4"})
    one = transactional(broker, TOPIC, "served-one")
    two = transactional(broker, TOPIC, "served-two", **{"compression.type": "zstd"})
    for turn in range(4):
        for number, value in enumerate(texts(120, seed=turn)):
            # Late ones come first in each turn, and the third turn is the latest of all.
            late = 1_000_000 if turn == 2 else 0
            plain.send(value, timestamp_ms=T0_MS + turn * 1000 - number + late)
        plain.flush()
        one.begin()
        one.send_all(texts(60, seed=turn + 10), timestamp_ms=T0_MS + turn * 1000)
        two.begin()
        two.send_all(texts(200, seed=turn + 20), timestamp_ms=T0_MS + turn * 1000)
        one.send_all(texts(60, seed=turn + 30), timestamp_ms=T0_MS + turn * 1000)
        one.abort() if turn % 2 else one.commit()
        two.commit() if turn % 2 else two.abort()
    tiered = tier_partition(broker, bucket, TOPIC)
    one.begin()
    one.send_all(texts(FROM_THE_BROKER, seed=99))
    one.abort()
    two.begin()
    two.send_all(texts(FROM_THE_BROKER, seed=98))
    two.commit()
    trim_to = tiered.segments[-2].base_offset
    _trim(broker, trim_to)
    with served({"bootstrap.servers": broker.bootstrap}, store_of(bucket), nodes=2) as endpoint:
        written = [*plain.acknowledged, *one.acknowledged, *two.acknowledged]
        yield World(written, tiered, endpoint, broker.bootstrap)
    assert_clean(broker, bucket, TOPIC, prefix=PREFIX)


def _trim(broker: LocalCluster, offset: int) -> None:
    admin = kafka.admin_client(broker.bootstrap)
    [done] = admin.delete_records([TopicPartition(TOPIC, 0, offset)]).values()
    assert done.result(POLL_S).low_watermark == offset


def consumer(bootstrap: str, **settings: Any) -> Consumer:
    defaults = {
        "bootstrap.servers": bootstrap,
        "group.id": "none",
        "enable.auto.commit": "false",
        "auto.offset.reset": "error",
        "check.crcs": "true",
    }
    return Consumer({**defaults, **settings}, logger=kafka.SILENT)


def polled(client: Consumer, wanted: Callable[[list[Pair]], bool]) -> list[Pair]:
    """Messages until there are those that are wanted."""
    found: list[Pair] = []
    while not wanted(found):
        message = client.poll(POLL_S)
        assert message is not None, f"nothing came for {POLL_S} s, after {len(found)}"
        assert message.error() is None, message.error()
        offset = message.offset()
        assert offset is not None
        found.append((offset, message.value()))
    return found


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_consumer_reads_from_the_first_offset_over_the_seam(world: World, isolation: str) -> None:
    """confluent-kafka with assign: exactly the records that its isolation level is to see."""
    expected = world.pairs(committed=isolation == "read_committed")
    before = world.endpoint.counters["handovers"]
    client = consumer(world.bootstrap, **{"isolation.level": isolation})
    client.assign([TopicPartition(TOPIC, 0, 0)])

    found = polled(client, lambda pairs: len(pairs) == len(expected))

    client.close()
    assert found == expected
    assert world.endpoint.counters["handovers"] == before + 1
    assert not world.endpoint.troubles


def test_watermarks_are_the_logs_own(world: World) -> None:
    """The log begins where the tier does, though the broker has trimmed; it ends where the broker says."""
    ours, theirs = consumer(world.bootstrap), consumer(world.brokers)
    partition = TopicPartition(TOPIC, 0)

    low, high = ours.get_watermark_offsets(partition, timeout=POLL_S)
    their_low, their_high = theirs.get_watermark_offsets(partition, timeout=POLL_S)

    ours.close()
    theirs.close()
    assert (low, high) == (0, their_high)
    assert their_low == world.tiered.segments[-2].base_offset


def test_a_time_is_found_in_either_tier(world: World) -> None:
    """The first record of that time or later by offset, though times go back; beyond all of them the end."""
    client = consumer(world.bootstrap)
    times = [T0_MS - 10_000, T0_MS - 50, T0_MS + 1500, T0_MS + 1_000_000, T0_MS + 1_001_900]
    for asked in times:
        [found] = client.offsets_for_times([TopicPartition(TOPIC, 0, asked)], timeout=POLL_S)
        # Markers have times, too, and no record: Kafka counts them, and all here are of this very day.
        first = next(each.offset for each in world.records if each.timestamp_ms >= asked)
        markers = set(range(world.tiered.end)) - {each.offset for each in world.records}
        assert found.offset == min(first, *markers), asked
    client.close()


def test_a_group_is_shared_out_and_goes_on_where_it_stopped(world: World) -> None:
    """Two members, of which one leaves: all records, and offsets kept by the real broker."""
    expected = world.pairs(committed=True)
    settings = {
        "group.id": "served-group",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "session.timeout.ms": 10_000,
    }
    first, second = consumer(world.bootstrap, **settings), consumer(world.bootstrap, **settings)
    first.subscribe([TOPIC])
    early = polled(first, lambda pairs: len(pairs) == 200)
    first.commit(asynchronous=False)
    second.subscribe([TOPIC])
    first.close()
    late = polled(second, lambda pairs: len(pairs) == len(expected) - 200)
    second.commit(asynchronous=False)
    second.close()

    assert early + late == expected
    there = consumer(world.brokers, **{"group.id": "served-group"})
    [committed] = there.committed([TopicPartition(TOPIC, 0)], timeout=POLL_S)
    there.close()
    assert committed.offset > expected[-1][0]
    assert world.endpoint.counters["forwarded"] > 0


def test_a_group_of_the_new_protocol_reads_too(world: World) -> None:
    """KIP-848's heartbeat is forwarded like all the others."""
    expected = world.pairs(committed=True)
    client = consumer(
        world.bootstrap,
        **{
            "group.id": "served-new",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        },
    )
    client.subscribe([TOPIC])
    found = polled(client, lambda pairs: len(pairs) == len(expected))
    client.close()
    assert found == expected


def test_nobody_can_write(world: World) -> None:
    """A producer is refused for good, an idempotent one at its first step; nothing is added to the log."""
    client = consumer(world.brokers)
    before = client.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=POLL_S)
    refused: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": world.bootstrap}, logger=kafka.SILENT)

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        refused.append(error)

    producer.produce(TOPIC, value=b"no", on_delivery=on_delivery)
    producer.flush(POLL_S)
    with WireClient(world.bootstrap) as ours:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        identity = ours.ask(apis.INIT_PRODUCER_ID, 4, asked)

    [error] = refused
    assert error is not None
    assert error.code() == KafkaError.POLICY_VIOLATION
    assert identity.error_code == Code.CLUSTER_AUTHORIZATION_FAILED
    after = client.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=POLL_S)
    client.close()
    assert after == before


@needs_kcat
def test_kcat_reads_it_all(world: World) -> None:
    """Debian's kcat, from the beginning to the end."""
    command = [KCAT, "-b", world.bootstrap, "-C", "-t", TOPIC, "-p", "0", "-o", "beginning", "-e", "-q"]

    ran = subprocess.run(
        [*map(str, command), "-f", "%o %s\n"], capture_output=True, timeout=DEADLINE_S, check=True
    )

    lines = ran.stdout.decode().splitlines()
    expected = [f"{offset} {(value or b'').decode()}" for offset, value in world.pairs(committed=True)]
    assert lines == expected


def test_kafkas_console_consumer_reads_it_all(world: World) -> None:
    """Kafka's own Java consumer, in a group, from the beginning, read_committed."""
    expected = world.pairs(committed=True)
    ran = run_kafka_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", world.bootstrap, "--topic", TOPIC, "--from-beginning"),
        *("--max-messages", str(len(expected)), "--timeout-ms", "60000"),
        *("--command-property", "isolation.level=read_committed"),
    )
    assert ran.stdout.decode().splitlines() == [(value or b"").decode() for _, value in expected]


def test_kafkas_admin_client_finds_where_the_tiers_are(world: World) -> None:
    """By Kafka's own tool: the log's start, and the last offset of the tier, which the broker has none of."""
    for mark, offset in (("earliest", 0), ("latest-tiered", world.tiered.end - 1)):
        arguments = ("--bootstrap-server", world.bootstrap, "--topic", TOPIC, "--time", mark)
        ran = run_kafka_tool("org.apache.kafka.tools.GetOffsetShell", *arguments)
        assert ran.stdout.decode().split() == [f"{TOPIC}:0:{offset}"], mark


def run_kafka_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    java = [str(find_java().path), *short_lived(heap_mib=256), "-cp", classpath("broker"), name]
    return subprocess.run([*java, *arguments], capture_output=True, timeout=DEADLINE_S, check=True)


def requests_to_both(leader_epoch: int) -> Iterator[tuple[int, int, Any]]:
    """Each request that reads, in each version."""
    wanted = MetadataRequestTopic(name=TOPIC)
    for version in apis.APIS[apis.METADATA].versions:
        yield apis.METADATA, version, MetadataRequest(topics=(wanted,))
    for version in apis.APIS[apis.LIST_OFFSETS].versions:
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topics = (ListOffsetsTopic(name=TOPIC, partitions=(asked,)),)
        yield apis.LIST_OFFSETS, version, ListOffsetsRequest(topics=topics)
    for version in apis.APIS[apis.OFFSET_FOR_LEADER_EPOCH].versions:
        epoch = EpochPartition(partition=0, leader_epoch=leader_epoch)
        yield (
            apis.OFFSET_FOR_LEADER_EPOCH,
            version,
            OffsetForLeaderEpochRequest(topics=(EpochTopic(topic=TOPIC, partitions=(epoch,)),)),
        )


def test_each_version_of_each_request_is_answered_as_by_the_broker(world: World) -> None:
    """Read by the same tables to the last byte; where no address is in it, with the same values."""
    with WireClient(world.bootstrap) as ours, WireClient(world.brokers) as theirs:
        wanted = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))
        [known] = theirs.ask(apis.METADATA, 12, wanted).topics
        for key, version, request in requests_to_both(known.partitions[0].leader_epoch):
            our, their = ours.ask(key, version, request), theirs.ask(key, version, request)
            if key == apis.METADATA:
                assert [each.node_id for each in our.brokers] == [NODE_IDS_FROM, NODE_IDS_FROM + 1]
                assert our.controller_id in (NODE_IDS_FROM, -1)
                assert our.cluster_id == their.cluster_id
                [topic], [their_topic] = our.topics, their.topics
                assert (topic.topic_id, topic.name) == (their_topic.topic_id, their_topic.name)
                assert topic.partitions[0].leader_epoch == their_topic.partitions[0].leader_epoch
                assert topic.partitions[0].leader_id >= NODE_IDS_FROM
            else:
                assert our == their, (key, version)


@pytest.mark.parametrize("committed", [False, True])
def test_each_version_of_fetch_gives_the_same_bytes_on_both_sides_of_the_seam(
    world: World, committed: bool
) -> None:
    """From the bucket, the batches that the broker would have; from the broker, its own answer."""
    tail = world.tiered.end
    local = world.tiered.segments[-2].base_offset  # the first that the broker still has: both can be asked
    with WireClient(world.bootstrap) as ours, WireClient(world.brokers) as theirs:
        topic_id = ours.ask(apis.METADATA, 12, MetadataRequest(topics=None)).topics
        [identity] = [each.topic_id for each in topic_id if each.name == TOPIC]
        for version in apis.APIS[apis.FETCH].versions:
            for offset in (local, tail):
                request = _fetch(offset, identity, version, committed=committed)
                our, their = ours.ask(apis.FETCH, version, request), theirs.ask(apis.FETCH, version, request)
                [our_data], [their_data] = our.responses[0].partitions, their.responses[0].partitions
                content = b"".join(our_data.records)
                assert content == b"".join(their_data.records)[: len(content)]
                assert content
                assert our_data.error_code == Code.NONE
                assert our_data.high_watermark == their_data.high_watermark
                assert our_data.last_stable_offset == their_data.last_stable_offset
                assert our_data.log_start_offset == (0 if version >= 5 else -1)
                assert our_data.preferred_read_replica == -1
                assert our.session_id == 0


def _fetch(offset: int, identity: Any, version: int, *, committed: bool) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=4000)
    names: Mapping[str, Any] = {"topic": TOPIC} if version < 13 else {"topic_id": identity}
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=int(committed),
        topics=(FetchTopic(partitions=(asked,), **names),),
    )


def test_an_offset_outside_of_the_log_is_out_of_range(world: World) -> None:
    """Beyond the end, and nowhere else: not at the frontier, the first or the last offset."""
    client = consumer(world.brokers)
    _, high = client.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=POLL_S)
    client.close()
    with WireClient(world.bootstrap) as ours:
        for offset, code in (
            (0, Code.NONE),
            (world.tiered.end - 1, Code.NONE),
            (world.tiered.end, Code.NONE),
            (high, Code.NONE),
            (high + 1000, Code.OFFSET_OUT_OF_RANGE),
        ):
            answer = ours.ask(apis.FETCH, 12, _fetch(offset, None, 12, committed=False))
            assert answer.responses[0].partitions[0].error_code == code, offset
