"""The target's cluster: the topic that is filled, and the topic of progress.

Owns the making of both, and the reading of progress: to the end that the partition had when it was asked,
past every transaction that is open before it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from backup.plan import Plan
from backup.topic.errors import TargetUnfit, WriteFailed
from backup.topic.outgoing import PACKED_BYTES
from backup.topic.progress import PROGRESS_TOPIC, Step, decode_step, progress_key
from backup.topic.target import NEW_TOPIC, PROGRESS_TOPIC_SETTINGS, complaints
from tiering.cluster.interface import DescribedTopic, Unknown
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.new_topic.kafka import make_topic
from tiering.cluster.quiet import QUIET

DEADLINE_S = 60.0
BOUNDS_OF_A_BATCH = ("max.message.bytes", "segment.bytes")  # a batch is in one segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A topic that takes the replay. `batch_bytes`: what batches may be packed up to."""

    topic_id: str
    batch_bytes: int


POLL_S = 0.2


def ready_topic(
    config: Mapping[str, str],
    topic: str,
    *,
    partition: int,
    partitions: int,
    oldest_ms: int,
    size_bytes: int,
    now_ms: int,
    settings: Mapping[str, str] | None = None,
) -> Target:
    """The topic that is to be filled: made if it is not there, else held to what it must be like."""
    cluster = KafkaCluster(config, monotonic_s=time.monotonic)
    brokers = len(cluster.identity().broker_ids)
    _make_if_absent(
        cluster,
        config,
        topic,
        partitions=partitions,
        brokers=brokers,
        settings={**NEW_TOPIC, **(settings or {})},
    )
    found = _described(cluster, topic)
    if partition not in found.partitions:
        why = f"it has {len(found.partitions)} partitions, and the log's is number {partition}"
        raise TargetUnfit(topic=topic, why=why)
    entries = cluster.topic_entries([topic])[topic]
    if isinstance(entries, Unknown):
        raise TargetUnfit(topic=topic, why=f"its settings are not known: {entries.reason}")
    plain = {name: setting.value for name, setting in entries.items()}
    for why in complaints(plain, oldest_ms=oldest_ms, size_bytes=size_bytes, now_ms=now_ms):
        raise TargetUnfit(topic=topic, why=why)
    _make_if_absent(
        cluster, config, PROGRESS_TOPIC, partitions=1, brokers=brokers, settings=PROGRESS_TOPIC_SETTINGS
    )
    largest = (int(value) for name in BOUNDS_OF_A_BATCH if (value := plain.get(name)))
    return Target(topic_id=str(found.topic_id), batch_bytes=min([PACKED_BYTES, *largest]))


def is_over(config: Mapping[str, str], topic: str, plan: Plan) -> bool:
    """Whether an earlier run has brought all of the plan's range into the topic. Makes nothing."""
    cluster = KafkaCluster(config, monotonic_s=time.monotonic)
    names = cluster.topic_names()
    if isinstance(names, Unknown) or not {topic, PROGRESS_TOPIC} <= names:
        return False
    found = _described(cluster, topic)
    key = progress_key(plan.hash, str(found.topic_id), plan.body.log.partition)
    steps = KafkaProgress(config).steps(key)
    return bool(steps) and steps[-1].next_offset == plan.body.range.end


def _make_if_absent(
    cluster: KafkaCluster,
    config: Mapping[str, str],
    topic: str,
    *,
    partitions: int,
    brokers: int,
    settings: Mapping[str, str],
) -> None:
    names = cluster.topic_names()
    if isinstance(names, Unknown):
        raise TargetUnfit(topic=topic, why=names.reason)
    if topic in names:
        return
    refused = make_topic(
        config,
        topic,
        partitions=partitions,
        replication=min(3, brokers),
        settings=settings,
        deadline_s=DEADLINE_S / 2,
    )
    if refused is not None:
        raise TargetUnfit(topic=topic, why=f"it is not there and cannot be made: {refused}")
    _described(cluster, topic)


def _described(cluster: KafkaCluster, topic: str) -> DescribedTopic:
    """What brokers know of it; a topic that was made just now takes them a moment."""
    until = time.monotonic() + DEADLINE_S
    while True:
        found = cluster.describe_topics([topic])[topic]
        if not isinstance(found, Unknown) and all(
            each.leader_id is not None for each in found.partitions.values()
        ):
            return found
        if time.monotonic() > until:
            why = found.reason if isinstance(found, Unknown) else "a partition of it has no leader"
            raise TargetUnfit(topic=topic, why=why)
        time.sleep(POLL_S)


class KafkaProgress:
    """A Progress of one cluster."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._settings = {
            "client.id": "seawall-restore",
            **config,
            "group.id": "seawall-restore-unused",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": "20",  # at the end, too, an answer is wanted at once
        }

    def steps(self, key: bytes) -> list[Step]:
        """Every committed one of the key. A transaction of another that is open before them is waited for."""
        try:
            return self._read(key)
        except KafkaException as refused:
            raise self._failed(refused.args[0].str()) from refused

    def _read(self, key: bytes) -> list[Step]:
        consumer = Consumer(dict(self._settings), logger=QUIET)
        try:
            place = TopicPartition(PROGRESS_TOPIC, 0, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=DEADLINE_S)
            consumer.assign([place])
            found: list[Step] = []
            until = time.monotonic() + DEADLINE_S
            reached = 0
            while reached < end:
                message = consumer.poll(POLL_S)
                if time.monotonic() > until:
                    raise self._failed(f"it was read to {reached} of {end}: a transaction before it is open")
                if message is None:
                    continue
                reached = self._take(message, key, found, reached)
            return found
        finally:
            consumer.close()

    def _take(self, message: Message, key: bytes, found: list[Step], reached: int) -> int:
        """Where reading has come to."""
        offset = message.offset()
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            return offset if offset is not None else reached
        value = message.value()
        if message.key() == key and value is not None:
            try:
                found.append(decode_step(value))
            except (ValueError, KeyError, TypeError) as broken:
                raise self._failed(f"the record at {offset} is not understood: {broken}") from broken
        return reached if offset is None else offset + 1

    def _failed(self, why: str) -> WriteFailed:
        return WriteFailed(topic=PROGRESS_TOPIC, what="reading how far it came", why=why)
