"""The topic `__seawall_policy`: one partition, each declared change one record, nothing ever removed.

Owns the topic's creation, its checks, and the two acts on it. Offsets are the order in which changes came;
Kafka cannot refuse the second of two, so that the fold does (`rules.policy.timeline`), and `append` reads
back what became of its own.

Refuses a topic that could forget: one that deletes by time or size or compacts, has more than one partition,
may elect a leader that lacks records, or whose beginning is gone. Checked before each reading and writing.

Invariant: `append` returns only after every in-sync replica had the record and this reader has found it to
count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition

from rules.policy.record import DeclaredChange, encode
from rules.policy.timeline import Applied, PolicyUnknown, Timeline
from seawall.policy.errors import (
    ApplyOvertaken,
    ApplyUncertain,
    ChangeTooLarge,
    PolicyTopicSilent,
    PolicyTopicUnfit,
)
from tiering.cluster.interface import Cause, DescribedTopic, TopicSettings, Unknown
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.new_topic.kafka import make_topic
from tiering.cluster.quiet import QUIET
from tiering.cluster.settings import UNLIMITED, Source
from tiering.log.wire import Uuid

TOPIC = "__seawall_policy"
CHANGE_BYTES_MAX = 8 * 2**20  # a table for each of 20,000 topics
BATCH_OVERHEAD_BYTES = 64 * 1024
REPLICAS_MAX = 3
DEADLINE_S = 30.0
POLL_S = 0.5
SETTLE_S = 0.1
CONFIG: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": str(UNLIMITED),
    "retention.bytes": str(UNLIMITED),
    "unclean.leader.election.enable": "false",
    "max.message.bytes": str(CHANGE_BYTES_MAX + BATCH_OVERHEAD_BYTES),
}


class KafkaChangeLog:
    """A `ChangeLog`. For one thread; `read` fetches only what it has not seen."""

    def __init__(
        self,
        librdkafka: Mapping[str, str],
        *,
        cluster: KafkaCluster,
        cluster_id: str,
        broker_count: int,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._librdkafka: dict[str, Any] = dict(librdkafka)
        self._cluster = cluster
        self._replicas = min(REPLICAS_MAX, broker_count)
        self._deadline_s = deadline_s
        self._nothing = Timeline(cluster_id=cluster_id)
        self._timeline = self._nothing
        self._topic_id: Uuid | None = None

    def read(self) -> Timeline:
        described = self._checked()
        if described is None:
            self._topic_id, self._timeline = None, self._nothing
        else:
            if described.topic_id != self._topic_id:
                self._topic_id, self._timeline = described.topic_id, self._nothing
            self._timeline = self._followed(self._timeline)
        return self._timeline

    def append(self, change: DeclaredChange) -> Applied:
        value = encode(change)
        if len(value) > CHANGE_BYTES_MAX:
            raise ChangeTooLarge(size_bytes=len(value), limit_bytes=CHANGE_BYTES_MAX)
        self._ensure_topic()
        failure = self._produce(change.cluster_id.encode(), value)
        try:
            timeline = self._timeline_with(change.event_id) if failure is None else self.read()
        except PolicyTopicSilent as silent:
            raise ApplyUncertain(why=str(silent)) from silent
        found = timeline.find(change.event_id)
        if isinstance(found, Applied):
            return found
        if found is None:
            raise ApplyUncertain(why=failure or "it was acknowledged, and cannot be read back")
        raise ApplyOvertaken(winner=self._winner(found.offset))

    def _winner(self, offset: int) -> str:
        try:
            winner = self._timeline.at(offset)
        except PolicyUnknown as unknown:
            return str(unknown)
        return f"{winner.change.change_id} of {winner.change.principal}" if winner else "another change"

    def _checked(self) -> DescribedTopic | None:
        """What is known of the topic; None if there is none. Raises PolicyTopicUnfit, PolicyTopicSilent."""
        described = self._cluster.describe_topics([TOPIC])[TOPIC]
        settings = self._cluster.topic_settings([TOPIC])[TOPIC]
        for answer in (described, settings):
            if isinstance(answer, Unknown) and answer.cause is Cause.NO_SUCH_TOPIC:
                return None
            if isinstance(answer, Unknown):
                raise PolicyTopicSilent(topic=TOPIC, what="described", why=answer.reason)
        assert isinstance(described, DescribedTopic)
        assert isinstance(settings, TopicSettings)
        faults = list(_faults(described, settings))
        if faults:
            raise PolicyTopicUnfit(topic=TOPIC, why="; ".join(faults))
        return described

    def _ensure_topic(self) -> None:
        """Make the topic if there is none, and return when brokers know it and it is as it should be."""
        if self._checked() is not None:
            return
        config = {**CONFIG, "min.insync.replicas": str(max(1, self._replicas - 1))}
        refusal = make_topic(
            self._librdkafka,
            TOPIC,
            partitions=1,
            replication=self._replicas,
            settings=config,
            deadline_s=self._deadline_s,
        )
        if refusal is not None:
            raise PolicyTopicSilent(topic=TOPIC, what="created", why=refusal)
        last_moment = time.monotonic() + self._deadline_s
        while self._checked() is None:
            if time.monotonic() >= last_moment:
                raise PolicyTopicSilent(
                    topic=TOPIC, what="found", why="brokers do not know it after its creation"
                )
            time.sleep(SETTLE_S)

    def _produce(self, key: bytes, value: bytes) -> str | None:
        """Why it is not known to be written; None if it was acknowledged."""
        failures: list[str] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error.str())

        producer = Producer(
            {
                **self._librdkafka,
                "enable.idempotence": "true",
                "acks": "all",
                "compression.type": "gzip",
                "message.max.bytes": str(CHANGE_BYTES_MAX + BATCH_OVERHEAD_BYTES),
                "delivery.timeout.ms": str(round(self._deadline_s * 1000)),
                "linger.ms": "0",
            },
            logger=QUIET,
        )
        producer.produce(TOPIC, key=key, value=value, partition=0, on_delivery=note)
        if producer.flush(2 * self._deadline_s):
            return "no answer"
        return failures[0] if failures else None

    def _timeline_with(self, event_id: str) -> Timeline:
        """Read until the change is there, or the deadline has passed: its broker may be the slower one."""
        last_moment = time.monotonic() + self._deadline_s
        while self.read().find(event_id) is None and time.monotonic() < last_moment:
            time.sleep(SETTLE_S)
        return self._timeline

    def _followed(self, timeline: Timeline) -> Timeline:
        """With every record that the leader has below its high watermark."""
        with self._consumer() as consumer:
            start, end = _bounds(consumer, self._deadline_s)
            if start > 0:
                raise PolicyTopicUnfit(topic=TOPIC, why=f"its records below offset {start} are gone")
            if end < timeline.next_offset:
                why = f"it ends at offset {end}, and {timeline.next_offset - 1} was there before"
                raise PolicyTopicUnfit(topic=TOPIC, why=why)
            if end == timeline.next_offset:
                return timeline
            consumer.assign([ClientPartition(TOPIC, 0, timeline.next_offset)])
            for offset, value in _records(consumer, end, self._deadline_s):
                timeline = timeline.follow(offset, value)
        return timeline

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        settings: dict[str, Any] = {
            **self._librdkafka,
            "group.id": "seawall-policy",  # librdkafka wants one; nothing is joined or committed
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
            "enable.partition.eof": "true",
            "isolation.level": "read_uncommitted",
            "allow.auto.create.topics": "false",
        }
        consumer = Consumer(settings, logger=QUIET)
        try:
            yield consumer
        except KafkaException as failure:
            raise PolicyTopicSilent(topic=TOPIC, what="read", why=failure.args[0].str()) from failure
        finally:
            consumer.close()


def _bounds(consumer: Consumer, deadline_s: float) -> tuple[int, int]:
    """Start and high watermark, from the leader itself."""
    found = consumer.get_watermark_offsets(ClientPartition(TOPIC, 0), timeout=deadline_s, cached=False)
    if found is None:
        raise PolicyTopicSilent(topic=TOPIC, what="read", why="its leader did not answer")
    return found


def _records(consumer: Consumer, end: int, deadline_s: float) -> Iterator[tuple[int, bytes | None]]:
    """Everything below `end`. What stands there may be no record at all, such as a transaction's marker."""
    last_moment = time.monotonic() + deadline_s
    trouble = "its leader sends nothing"
    while time.monotonic() < last_moment:
        message = consumer.poll(POLL_S)
        if message is None:
            continue
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            position = message.offset()
            if position is not None and position >= end:
                return
        elif error is not None:
            trouble = error.str()  # librdkafka tries again by itself
        else:
            offset = message.offset()
            assert offset is not None
            yield offset, message.value()
            last_moment = time.monotonic() + deadline_s
            if offset >= end - 1:
                return
    raise PolicyTopicSilent(topic=TOPIC, what="read", why=trouble)


def _faults(described: DescribedTopic, settings: TopicSettings) -> Iterator[str]:
    if len(described.partitions) != 1:
        yield f"it has {len(described.partitions)} partitions"
    if settings.cleanup_policy.value != {"delete"}:
        yield f"cleanup.policy is {','.join(sorted(settings.cleanup_policy.value))}"
    for name, found in (
        ("retention.ms", settings.retention_ms),
        ("retention.bytes", settings.retention_bytes),
    ):
        if found.value != UNLIMITED:
            yield f"{name} is {found.value}"
        elif found.source is not Source.TOPIC:
            yield f"{name} is {found.value} by the brokers' settings, and not by its own"
    if settings.unclean_leader_election_enable.value:
        yield "unclean.leader.election.enable is true"
    if settings.remote_storage_enable.value:
        yield "remote.storage.enable is true"
