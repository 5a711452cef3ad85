"""The topic of events is as it must be, and holds what the spool was given, whatever happens between."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from audit_engine.errors import AuditTopicUnfit
from audit_engine.spool import EmitterName, Spool
from audit_engine.topic.fitness import RETENTION_LEAST_MS, faults, settings
from audit_engine.topic.kafka import Publisher, ensure_audit_topic
from audit_engine.wire import Envelope, decode
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.events import CLUSTER_ID, LOG, OTHER_LOG, stalled
from tiering.cluster.interface import DescribedPartition, DescribedTopic
from tiering.cluster.settings import Setting, Source, topic_settings
from tiering.log.wire import Uuid

NAME = EmitterName(CLUSTER_ID, 1, "agent")
DEADLINE_S = 120.0
DEFAULTS = {
    "remote.storage.enable": "false",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "segment.ms": "604800000",
    "segment.bytes": "1073741824",
    "file.delete.delay.ms": "60000",
}


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", NAME) as opened:
        yield opened


def _described(replication: int) -> DescribedTopic:
    replicas = tuple(range(1, replication + 1))
    partition = DescribedPartition(leader_id=1, replicas=replicas, isr=replicas)
    return DescribedTopic(topic="a", topic_id=Uuid("x"), partitions={0: partition})


def _faults(replication: int, changed: Mapping[str, Setting | str] | None = None) -> list[str]:
    entries = {**DEFAULTS, **settings(replication), **(changed or {})}
    typed = {
        name: value if isinstance(value, Setting) else Setting(value=value, source=Source.TOPIC)
        for name, value in entries.items()
    }
    return list(faults(_described(replication), topic_settings("a", typed)))


@pytest.mark.parametrize("replication", [1, 2, 3, 5])
def test_what_the_topic_is_made_with_has_no_fault(replication: int) -> None:
    """Nobody has to mend what Seawall has made."""
    assert _faults(replication) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", str(RETENTION_LEAST_MS - 1)),
        ("retention.ms", Setting(value="-1", source=Source.STATIC)),
        ("retention.bytes", "1000000000"),
        ("retention.bytes", Setting(value="-1", source=Source.DEFAULT)),
        ("max.message.bytes", "1048588"),
        ("unclean.leader.election.enable", "true"),
        ("min.insync.replicas", "1"),
        ("min.insync.replicas", "4"),
    ],
)
def test_a_setting_that_could_lose_evidence_is_a_fault(name: str, value: Setting | str) -> None:
    """Each of them alone, named."""
    [fault] = _faults(3, {name: value})

    assert name in fault


def test_events_reach_kafka_in_the_order_of_their_numbers(broker: LocalCluster, spool: Spool) -> None:
    """By log, in one partition, each once; the spool then holds them as acknowledged."""
    topic = _topic(broker, "in-order")
    for number in range(500):
        spool.emit(stalled(number, (LOG, OTHER_LOG)[number % 2]))
    with Publisher(spool, _config(broker), topic=topic) as publisher:
        assert becomes_true(lambda: spool.counters().pending == 0, deadline_s=DEADLINE_S)
        status = publisher.status()
    found = _read(broker, topic)

    assert (status.published, status.in_flight, status.trouble) == (500, 0, None)
    assert sorted(each.emitter_seq for each in found) == list(range(500))
    for log in (LOG, OTHER_LOG):
        assert [each.log_seq for each in found if each.event.log == log] == list(range(250))  # type: ignore[union-attr]


def test_events_wait_while_kafka_is_away_and_go_in_order_when_it_is_back(
    broker: LocalCluster, spool: Spool
) -> None:
    """Emitting does not notice; nothing is lost or reordered, before, during and after."""
    topic = _topic(broker, "away")
    publisher = Publisher(spool, _config(broker), topic=topic)
    spool.emit_many([stalled(number) for number in range(10)])
    assert becomes_true(lambda: spool.counters().pending == 0, deadline_s=DEADLINE_S)
    broker.kill()
    for number in range(10, 30):
        spool.emit(stalled(number))
    assert becomes_true(lambda: publisher.status().trouble is not None, deadline_s=DEADLINE_S)
    waiting = spool.counters().pending
    broker.revive()
    assert becomes_true(lambda: spool.counters().pending == 0, deadline_s=DEADLINE_S)

    assert waiting == 20
    assert publisher.stop()
    found = _read(broker, topic)
    assert _without_repetitions(found) == list(range(30))
    assert publisher.status().trouble is None


def test_what_a_broker_refuses_is_waited_for_and_not_passed(broker: LocalCluster, spool: Spool) -> None:
    """An event that the topic will not take holds those behind it, until somebody puts the topic right."""
    topic = _topic(broker, "refused")
    kafka.set_config(broker.bootstrap, topic, {"max.message.bytes": "2000"})
    with Publisher(spool, {**_config(broker), "compression.type": "none"}, topic=topic) as publisher:
        spool.emit(stalled(0))
        spool.emit(stalled(1, reason="x" * 5_000))
        spool.emit(stalled(2))
        assert becomes_true(lambda: publisher.status().failures >= 2, deadline_s=DEADLINE_S)
        trouble, waiting = publisher.status().trouble, spool.counters().pending
        kafka.set_config(broker.bootstrap, topic, {"max.message.bytes": "100000"})
        assert becomes_true(lambda: spool.counters().pending == 0, deadline_s=DEADLINE_S)

    assert trouble is not None
    assert waiting >= 2
    assert _without_repetitions(_read(broker, topic)) == [0, 1, 2]


def test_a_restart_publishes_again_what_was_not_marked(broker: LocalCluster, tmp_path: Path) -> None:
    """Delivered twice is the same event under the same number; the new incarnation comes behind."""
    topic = _topic(broker, "restart")
    with Spool(tmp_path / "spool.db", NAME) as first:
        first.emit_many([stalled(number) for number in range(20)])
        first._connection.execute(
            "CREATE TEMP TRIGGER forgetful BEFORE UPDATE OF acknowledged_at_ms ON events BEGIN "
            "SELECT RAISE(ABORT, 'killed before it was marked'); END"
        )
        with Publisher(first, _config(broker), topic=topic) as publisher:
            assert becomes_true(lambda: publisher.status().failures > 0, deadline_s=DEADLINE_S)
            assert becomes_true(lambda: len(_read(broker, topic)) >= 20, deadline_s=DEADLINE_S)
            assert not publisher.stop(0)
    with Spool(tmp_path / "spool.db", NAME) as second:
        second.emit(stalled(20))
        with Publisher(second, _config(broker), topic=topic):
            assert becomes_true(lambda: second.counters().pending == 0, deadline_s=DEADLINE_S)
    found = _read(broker, topic)

    said: dict[tuple[int, int], set[str]] = {}
    for each in found:
        said.setdefault((each.emitter.incarnation, each.emitter_seq), set()).add(each.event.event_id)
    assert len(found) > 21
    assert {len(ids) for ids in said.values()} == {1}
    assert len(said) == 21
    assert _without_repetitions(each for each in found if each.emitter == first.emitter) == list(range(20))


def test_a_topic_that_could_lose_evidence_is_refused(broker: LocalCluster) -> None:
    """It is made fit, found again as the same, and refused once somebody lets it compact."""
    topic = "audit-unfit"
    made = ensure_audit_topic(_config(broker), name=topic, partitions=2)

    assert ensure_audit_topic(_config(broker), name=topic, partitions=7) == made
    assert made.partition_count == 2

    kafka.set_config(broker.bootstrap, topic, {"cleanup.policy": "compact"})

    with pytest.raises(AuditTopicUnfit, match=r"cleanup\.policy is compact"):
        ensure_audit_topic(_config(broker), name=topic)


def test_stopping_while_kafka_is_away_keeps_to_its_deadline(spool: Spool) -> None:
    """Nobody answers at this address: the events stay, and the agent ends all the same."""
    publisher = Publisher(spool, {"bootstrap.servers": "127.0.0.1:1"})
    spool.emit(stalled(1))
    assert becomes_true(lambda: publisher.status().trouble is not None, deadline_s=DEADLINE_S)

    assert publisher.stop(0.1) is False
    assert spool.counters().pending == 1


def _config(broker: LocalCluster) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": "500"}


def _topic(broker: LocalCluster, name: str) -> str:
    return ensure_audit_topic(_config(broker), name=f"audit-{name}", partitions=3).name


def _read(broker: LocalCluster, topic: str) -> list[Envelope]:
    """Everything in the topic now, partition by partition."""
    consumer = Consumer({**_config(broker), "group.id": "reader"}, logger=kafka.SILENT)
    found = []
    try:
        for partition in range(3):
            start, end = _bounds(consumer, TopicPartition(topic, partition))
            consumer.assign([TopicPartition(topic, partition, start)])
            while start < end:
                [message] = consumer.consume(1, DEADLINE_S)
                assert message.error() is None
                found.append(decode(message.value()))
                offset = message.offset()
                assert offset is not None
                start = offset + 1
    finally:
        consumer.close()
    return found


def _bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """Asked until the leader of a topic that was just made knows that it is one."""
    found: list[tuple[int, int]] = []

    def ask() -> bool:
        with contextlib.suppress(KafkaException):
            found.append(consumer.get_watermark_offsets(partition, timeout=DEADLINE_S))
        return bool(found)

    assert becomes_true(ask, deadline_s=DEADLINE_S)
    return found[0]


def _without_repetitions(found: Iterable[Envelope]) -> list[int]:
    """The numbers in the order in which each came first."""
    return list(dict.fromkeys(each.emitter_seq for each in found))
