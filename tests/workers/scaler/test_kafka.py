"""What the adapters see of a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]  # not re-exported

from seawall.local.broker import LocalCluster
from seawall.local.kafka import SILENT
from tests.cluster.produce import Writer, create_topic
from tests.cluster.secure import SecureBroker
from tests.workers.scaler.seen import Seen, options, sample
from tests.workers.scaler.world import wait_until
from workers.scaler.chain import Chain
from workers.scaler.kafka import KafkaGroups
from workers.scaler.options import Options
from workers.scaler.ports import Unseen, Unwritten
from workers.scaler.shared.kafka import KafkaLog
from workers.scaler.values import PartitionSample, Sample


def of(topic: str) -> Options:
    return options(consumer_group=f"{topic}-group", topic=topic)


def commit(broker: LocalCluster, topic: str, offset: int) -> None:
    """As the group would; it has no members."""
    config = {"bootstrap.servers": broker.bootstrap, "group.id": f"{topic}-group"}
    with closing(Consumer(config, logger=SILENT)) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


@pytest.fixture
def look(broker: LocalCluster) -> Callable[[str], Sample]:
    """Until it is seen: a broker that has just started has no coordinators yet, and that is Unseen."""
    return looking({"bootstrap.servers": broker.bootstrap})


def looking(client: Mapping[str, str]) -> Callable[[str], Sample]:
    groups = KafkaGroups(client)

    def seen(topic: str) -> Sample:
        found: list[Sample] = []

        def is_seen() -> bool:
            with suppress(Unseen):
                found.append(groups.look(of(topic)))
            return bool(found)

        wait_until(is_seen)
        return found[0]

    return seen


def only(seen: Sample) -> PartitionSample:
    (found,) = seen.partitions
    return found


def test_offsets_are_those_of_the_broker(broker: LocalCluster, look: Callable[[str], Sample]) -> None:
    """No commit is None and not zero; then the commit; then a log that begins behind it, and a partition
    more.
    """
    create_topic(broker, "scaler-offsets", segment_bytes=None)
    Writer(broker, "scaler-offsets", "p").send_all([b"x"] * 20)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap}, logger=SILENT)

    fresh = look("scaler-offsets")
    commit(broker, "scaler-offsets", 5)
    committed = look("scaler-offsets")
    for future in admin.delete_records([TopicPartition("scaler-offsets", 0, 12)]).values():
        future.result(20)
    for future in admin.create_partitions([NewPartitions("scaler-offsets", 2)]).values():
        future.result(20)
    wait_until(lambda: len(look("scaler-offsets").partitions) == 2)
    trimmed = look("scaler-offsets")

    assert only(fresh) == PartitionSample(partition=0, committed=None, log_start=0, log_end=20)
    assert only(committed) == PartitionSample(partition=0, committed=5, log_start=0, log_end=20)
    assert trimmed.partitions[0] == PartitionSample(partition=0, committed=5, log_start=12, log_end=20)
    assert trimmed.partitions[1] == PartitionSample(partition=1, committed=None, log_start=0, log_end=0)
    assert (trimmed.members, trimmed.is_settled, trimmed.topic_id) == (0, True, fresh.topic_id)


def test_a_topic_that_is_not_there_is_not_an_empty_one(broker: LocalCluster) -> None:
    """Nothing is known of it, and why is said."""
    groups = KafkaGroups({"bootstrap.servers": broker.bootstrap})

    with pytest.raises(Unseen, match="UNKNOWN_TOPIC"):
        groups.look(of("scaler-no-such-topic"))


def test_it_looks_over_tls_by_password_and_by_token(secure_broker: SecureBroker) -> None:
    """SCRAM and OAUTHBEARER see the same; who is refused sees nothing, and it is said why."""
    create_topic(secure_broker, "scaler-safe", segment_bytes=None)
    Writer(secure_broker, "scaler-safe", "p").send_all([b"x"] * 7)

    seen = [looking(each)("scaler-safe") for each in (secure_broker.client(), secure_broker.by_token())]
    assert [only(each).log_end for each in seen] == [7, 7]
    assert seen[0] == seen[1]
    with pytest.raises(Unseen):
        KafkaGroups(secure_broker.by_token(secret="ebb"), request_s=1.0).look(of("scaler-safe"))


def test_a_cluster_that_does_not_answer_is_not_an_idle_one() -> None:
    """Nobody listens there."""
    groups = KafkaGroups({"bootstrap.servers": "localhost:1"}, request_s=0.5)

    with pytest.raises(Unseen):
        groups.look(of("t"))


def test_the_tail_of_a_transaction_is_looked_at(broker: LocalCluster, look: Callable[[str], Sample]) -> None:
    """Behind the last record's commit is a marker; at the second look it is known for one. A record is
    none.
    """
    create_topic(broker, "scaler-marker", segment_bytes=None)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "scaler-marker"}, logger=SILENT
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("scaler-marker", b"x", partition=0)
    producer.commit_transaction(30)
    wait_until(lambda: only(look("scaler-marker")).log_end == 4)

    commit(broker, "scaler-marker", 3)
    at_marker = [only(look("scaler-marker")) for _ in range(2)]
    commit(broker, "scaler-marker", 2)
    at_record = [only(look("scaler-marker")) for _ in range(3)]

    assert [seen.tail_is_marker for seen in at_marker] == [False, True]
    assert [seen.tail_is_marker for seen in at_record] == [False, False, False]


def has_read_two(log: KafkaLog, places: list[int]) -> bool:
    places += [each.link.place for each in log.read(0.2)]
    return len(places) >= 2 and log.is_caught_up()


@contextmanager
def reading(broker: LocalCluster, topic: str) -> Iterator[KafkaLog]:
    with closing(KafkaLog({"bootstrap.servers": broker.bootstrap}, topic=topic)) as log:
        yield log


def test_links_come_back_in_one_order_and_what_is_none_is_passed_over(broker: LocalCluster) -> None:
    """Two writers, something of somebody else's between them; a reader that comes later reads the same."""
    create_topic(broker, "scaler-links", segment_bytes=None)
    seen = Seen(options())
    seen.lags([5])
    link = Chain().next("k", options(), sample(0.0), by="a", now_s=0.0, wall_s=1.0)
    read: dict[str, list[int]] = {"early": [], "late": []}

    with reading(broker, "scaler-links") as early, reading(broker, "scaler-links") as other:
        early.append(link)
        Writer(broker, "scaler-links", "stranger").send_all([b"hello"])
        other.append(link)
        with reading(broker, "scaler-links") as late:
            for name, log in (("early", early), ("late", late)):
                wait_until(lambda log=log, name=name: has_read_two(log, read[name]))  # type: ignore[misc]
            unreadable = (early.unreadable, late.unreadable)

    assert read == {"early": [0, 0], "late": [0, 0]}
    assert unreadable == (1, 1)


def test_a_log_that_is_written_all_the_time_is_caught_up_with(broker: LocalCluster) -> None:
    """The broker answers each fetch with a record, so a client never hears of an end; and what stood there
    before is as old as it is.
    """
    create_topic(broker, "scaler-busy", segment_bytes=None)
    link = Chain().next("k", options(), sample(9.0), by="a", now_s=9.0, wall_s=9.0)
    over = Event()

    def write() -> None:
        while not over.wait(0.02):
            writing.append(link)

    with reading(broker, "scaler-busy") as writing:
        writing.append(link)
        thread = Thread(target=write)
        thread.start()
        try:
            with reading(broker, "scaler-busy") as late:
                ages = [each.age_s for each in late.read(1.0)]
                wait_until(lambda: [*late.read(0.2)] != [] and late.is_caught_up())
        finally:
            over.set()
            thread.join()

    assert ages[0] > 0


def test_a_link_that_nobody_acknowledged_was_not_written() -> None:
    """It may be there or not: whoever reads will see."""
    link = Chain().next("k", options(), sample(0.0), by="a", now_s=0.0, wall_s=1.0)

    with (
        closing(KafkaLog({"bootstrap.servers": "localhost:1"}, append_s=0.3)) as log,
        pytest.raises(Unwritten),
    ):
        log.append(link)
