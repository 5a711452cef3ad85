"""One librdkafka AdminClient: requests in parts, answers as values, errors as causes.

Owns the translation of the client's errors, once, into `Unknown` causes. Refuses to ask twice: whoever has
several clients does (`tiering.cluster.kafka`).

What the client does that has to be known (measured, confluent-kafka 2.16.1, Kafka 4.3.1):

- After an election its cached metadata answers FENCED_LEADER_EPOCH for minutes, or, when the old leader's
  connection is gone, waits out every timeout. `describe_topics` refreshes it, so each question about offsets
  starts with that; if it is not enough, the client is thrown away.
- A leader that does not answer in time is reported as *success* with offset -1001 and no epoch. Anything
  below zero is `NO_ANSWER` here.
- What it asks of "the controller" goes to a broker that is named at random when metadata is refreshed. If
  that one dies, topics and the cluster are described by nobody until the next refresh; hence a new client.
- `list_topics(topic)` lets the broker create the topic: a deleted one would come back. It is never called.
- Broken connections and refused passwords are told to a callback only; the last word goes into the reason.

Invariant: a `LeaderOffsets` is made of three answers; the two about the log's end are of one leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from tiering.cluster.config_entries.kafka import entries_of
from tiering.cluster.interface import (
    Cause,
    DescribedPartition,
    DescribedTopic,
    LeaderOffsets,
    TopicPartition,
    Unknown,
)
from tiering.cluster.settings import Setting
from tiering.log import wire

FUTURE_GRACE_S = 5.0  # on top, for a client that does not keep to its own timeout
PARTITIONS_PER_REQUEST = 1_000
TOPICS_PER_REQUEST = 500

T = TypeVar("T")

_CAUSES = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: Cause.NO_SUCH_TOPIC,
    KafkaError.UNKNOWN_TOPIC_ID: Cause.NO_SUCH_TOPIC,
    KafkaError._UNKNOWN_TOPIC: Cause.NO_SUCH_TOPIC,
    KafkaError._UNKNOWN_PARTITION: Cause.NO_SUCH_TOPIC,
    KafkaError._NOENT: Cause.NO_SUCH_TOPIC,
    KafkaError.FENCED_LEADER_EPOCH: Cause.STALE,
    KafkaError.UNKNOWN_LEADER_EPOCH: Cause.STALE,
    KafkaError.NOT_LEADER_FOR_PARTITION: Cause.STALE,
    KafkaError.LEADER_NOT_AVAILABLE: Cause.STALE,
    KafkaError.REPLICA_NOT_AVAILABLE: Cause.STALE,
    KafkaError.OFFSET_NOT_AVAILABLE: Cause.NOT_READY,
    KafkaError._TIMED_OUT: Cause.NO_ANSWER,
    KafkaError._TRANSPORT: Cause.NO_ANSWER,
    KafkaError._ALL_BROKERS_DOWN: Cause.NO_ANSWER,
    KafkaError._RESOLVE: Cause.NO_ANSWER,
    KafkaError.REQUEST_TIMED_OUT: Cause.NO_ANSWER,
    KafkaError.NETWORK_EXCEPTION: Cause.NO_ANSWER,
    KafkaError._AUTHENTICATION: Cause.REFUSED,
    KafkaError._SSL: Cause.REFUSED,
    KafkaError.SASL_AUTHENTICATION_FAILED: Cause.REFUSED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Cause.REFUSED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Cause.REFUSED,
}
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]


class Connection:
    """One librdkafka client, and the last that its connections complained of."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        open_client: Callable[[dict[str, Any]], AdminClient],
        timeout_s: float,
    ) -> None:
        self._timeout_s = timeout_s
        self._trouble = _Trouble()  # of its own: a client that holds whoever holds it would not end by itself
        self._client = open_client({**settings, "error_cb": self._trouble.note})

    def describe_cluster(self) -> Any:
        return self._result(self._client.describe_cluster(request_timeout=self._timeout_s))

    def topic_names(self) -> frozenset[str] | Unknown:
        """All at once: asked for by name, a topic would be created."""
        try:
            return frozenset(self._client.list_topics(timeout=self._timeout_s).topics)
        except KafkaException as refused:
            return self._unknown(refused.args[0])

    def describe_topics(self, topics: Sequence[str]) -> Mapping[str, DescribedTopic | Unknown]:
        answers: dict[str, DescribedTopic | Unknown] = {}
        for names in _chunks(topics, TOPICS_PER_REQUEST):
            futures = self._client.describe_topics(TopicCollection(names), request_timeout=self._timeout_s)
            for name, future in futures.items():
                found = self._result(future)
                answers[name] = found if isinstance(found, Unknown) else _described(found)
        return answers

    def ask_leaders(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderOffsets | Unknown]:
        described = self.describe_topics(sorted({each.topic for each in partitions}))
        answers: dict[TopicPartition, LeaderOffsets | Unknown] = {}
        led: dict[TopicPartition, tuple[wire.Uuid, int]] = {}
        for each in partitions:
            leader = _leader_of(each, described[each.topic])
            if isinstance(leader, Unknown):
                answers[each] = leader
            else:
                led[each] = leader
        for chunk in _chunks(list(led), PARTITIONS_PER_REQUEST):
            # Sent one behind the other, waited for together: one round trip to each leader.
            stable = self._list_offsets(chunk, _LATEST, IsolationLevel.READ_COMMITTED)
            watermark = self._list_offsets(chunk, _LATEST, IsolationLevel.READ_UNCOMMITTED)
            earliest = self._list_offsets(chunk, _EARLIEST, IsolationLevel.READ_UNCOMMITTED)
            for each in chunk:
                topic_id, leader_id = led[each]
                answers[each] = _joined(
                    topic_id,
                    leader_id,
                    *(self._offset(futures[each]) for futures in (stable, watermark, earliest)),
                )
        return answers

    def _list_offsets(
        self, partitions: Sequence[TopicPartition], spec: Any, isolation: IsolationLevel
    ) -> Mapping[TopicPartition, Future[Any]]:
        asked = {ClientPartition(each.topic, each.partition): spec for each in partitions}
        futures = self._client.list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout_s)
        return {TopicPartition(each.topic, each.partition): future for each, future in futures.items()}

    def _offset(self, future: Future[Any]) -> tuple[int, int | None] | Unknown:
        found = self._result(future)
        if isinstance(found, Unknown):
            return found
        if found.offset < 0:  # a leader that did not answer in time, reported as success
            return Unknown(cause=Cause.NO_ANSWER, reason=self._with_trouble("the leader did not answer"))
        return found.offset, found.leader_epoch

    def describe_topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, Setting] | Unknown]:
        answers: dict[str, Mapping[str, Setting] | Unknown] = {}
        for names in _chunks(topics, TOPICS_PER_REQUEST):
            answers |= self.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
        return answers

    def describe_configs(
        self, resources: Sequence[ConfigResource]
    ) -> Mapping[str, Mapping[str, Setting] | Unknown]:
        futures = self._client.describe_configs(list(resources), request_timeout=self._timeout_s)
        answers: dict[str, Mapping[str, Setting] | Unknown] = {}
        for resource, future in futures.items():
            found = self._result(future)
            answers[resource.name] = found if isinstance(found, Unknown) else entries_of(found)
        return answers

    def _result(self, future: Future[T]) -> T | Unknown:
        try:
            failed = future.exception(self._timeout_s + FUTURE_GRACE_S)
        except NotInTime:
            return Unknown(cause=Cause.NO_ANSWER, reason=self._with_trouble("the client did not answer"))
        if failed is None:
            return future.result()
        if not isinstance(failed, KafkaException):
            raise failed
        return self._unknown(failed.args[0])  # not raised: its traceback would keep the client from ending

    def _unknown(self, error: KafkaError) -> Unknown:
        cause = _CAUSES.get(error.code(), Cause.ERROR)
        reason = error.str() if cause is not Cause.NO_ANSWER else self._with_trouble(error.str())
        refused = cause is Cause.NO_ANSWER and self._trouble.cause is Cause.REFUSED
        return Unknown(cause=Cause.REFUSED if refused else cause, reason=reason)

    def _with_trouble(self, reason: str) -> str:
        self._client.poll(0)  # runs `_Trouble.note`
        last = self._trouble.last
        return f"{reason} ({last.str()})" if last is not None else reason


class _Trouble:
    """What a client was last told of its connections."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    @property
    def cause(self) -> Cause | None:
        return None if self.last is None else _CAUSES.get(self.last.code())

    def note(self, error: KafkaError) -> None:
        # "All brokers are down" only follows from what each broker's connection said before.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error


def _chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def _described(found: Any) -> DescribedTopic:
    return DescribedTopic(
        topic=found.name,
        topic_id=_uuid(found.topic_id),
        partitions={
            each.id: DescribedPartition(
                leader_id=each.leader.id if each.leader is not None and each.leader.id >= 0 else None,
                replicas=tuple(node.id for node in each.replicas),
                isr=tuple(node.id for node in each.isr),
            )
            for each in found.partitions
        },
    )


def _uuid(found: Any) -> wire.Uuid:
    """As Kafka prints it. (librdkafka prints the other base64 alphabet.)"""
    halves = (found.get_most_significant_bits(), found.get_least_significant_bits())
    return wire.read_uuid(b"".join(half.to_bytes(8, "big", signed=True) for half in halves), 0)[0]


def _leader_of(partition: TopicPartition, topic: DescribedTopic | Unknown) -> tuple[wire.Uuid, int] | Unknown:
    if isinstance(topic, Unknown):
        return topic
    found = topic.partitions.get(partition.partition)
    if found is None:
        return Unknown(cause=Cause.NO_SUCH_TOPIC, reason=f"{topic.topic} has no such partition")
    if found.leader_id is None:
        return Unknown(cause=Cause.NOT_READY, reason="nobody leads it now")
    return topic.topic_id, found.leader_id


def _joined(
    topic_id: wire.Uuid,
    leader_id: int,
    stable: tuple[int, int | None] | Unknown,
    watermark: tuple[int, int | None] | Unknown,
    earliest: tuple[int, int | None] | Unknown,
) -> LeaderOffsets | Unknown:
    """One answer of three, or why not. A part of it is no answer."""
    for answer in (stable, watermark, earliest):
        if isinstance(answer, Unknown):
            return answer
    assert not isinstance(stable, Unknown)
    assert not isinstance(watermark, Unknown)
    assert not isinstance(earliest, Unknown)
    leader_epoch = stable[1]
    if leader_epoch is None:
        return Unknown(cause=Cause.PARTIAL, reason="the leader named no epoch")
    if watermark[1] != leader_epoch:
        return Unknown(cause=Cause.STALE, reason=f"answers of leader epochs {leader_epoch}, {watermark[1]}")
    return LeaderOffsets(
        topic_id=topic_id,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        high_watermark=watermark[0],
        last_stable_offset=stable[0],
        log_start=earliest[0],
    )
