"""Looks at consumer groups by Kafka's admin API: what is committed first, where the logs end afterwards.

Owns the client and the translation of its answers. In that order a commit is never past an end for having
been asked later. What librdkafka does that has to be known (measured, confluent-kafka 2.16.1): a
leader that does not answer in time is reported as *success* with offset -1001, so anything below zero is no
answer; after an election its leaders are stale until topics are described again, so every look begins with
that.

Behind a commit that one or a few offsets follow, and that stood still, it reads once whether anything is left
that a consumer would be given: markers of transactions are not.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import replace
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AdminClient,
    MemberDescription,
    OffsetSpec,
)

from workers.scaler.options import Options
from workers.scaler.ports import Unseen
from workers.scaler.values import PartitionSample, Sample

REQUEST_S = 5.0
GRACE_S = 2.0  # on top, for a client that does not keep to its own timeout
TAIL_OFFSETS_MAX = 10  # so many are read to see whether they are markers
TAIL_READ_S = 2.0
TAILS_MAX = 10_000  # of which it is remembered what they were
RENEW_S = 10.0  # a client is not thrown away more often

V = TypeVar("V")
_log = logging.getLogger(__name__)
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LEVELS = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}
_SETTLED = frozenset({ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})


class KafkaGroups:
    """The groups of one cluster. May be asked by several threads."""

    def __init__(
        self,
        librdkafka: Mapping[str, str],
        *,
        request_s: float = REQUEST_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config: dict[str, Any] = {"client.id": "seawall-scaler", **librdkafka}
        self._request_s = request_s
        self._client = AdminClient(self._config, logger=_log)
        self._monotonic_s = monotonic_s
        self._renewed_s = monotonic_s()
        self._lock = threading.Lock()
        self._stood: dict[tuple[str, str, int], tuple[int, int]] = {}  # what was committed, and the end
        self._markers: dict[tuple[str, str, int], tuple[int, int]] = {}  # where nothing is left but markers

    def look(self, options: Options) -> Sample:
        client = self._client
        try:
            return self._look(client, options)
        except KafkaException as refused:
            self._renew(client)
            error: KafkaError = refused.args[0]
            raise Unseen(f"{error.name()}: {error.str()}") from refused  # the text alone may be empty
        except NotInTime as late:
            self._renew(client)
            raise Unseen(f"no answer within {self._request_s + GRACE_S:g} s") from late

    def _renew(self, failed: AdminClient) -> None:
        """What a client asks of "the controller" goes to a broker that it once chose: if that died, a new one
        chooses again. The old one ends with the last thread that asks it."""
        with self._lock:
            if self._client is failed and self._monotonic_s() - self._renewed_s >= RENEW_S:
                self._renewed_s = self._monotonic_s()
                self._client = AdminClient(self._config, logger=_log)

    def _look(self, client: AdminClient, options: Options) -> Sample:
        topic, group = options.topic, options.consumer_group
        described = self._of(
            client.describe_topics(TopicCollection([topic]), request_timeout=self._request_s)[topic]
        )
        leaders = {each.id: each.leader for each in described.partitions}
        members = self._of(client.describe_consumer_groups([group], request_timeout=self._request_s)[group])
        all_of_them = [TopicPartition(topic, number) for number in sorted(leaders)]
        commits = self._commits(client, group, all_of_them)
        led = [each for each in all_of_them if (node := leaders[each.partition]) is not None and node.id >= 0]
        starts = self._offsets(client, led, _EARLIEST, options)
        ends = self._offsets(client, led, _LATEST, options)
        partitions = tuple(
            _partition(number, *(of.get(number, "no leader") for of in (commits, starts, ends)))
            for number in sorted(leaders)
        )
        names = sorted(f"{each.member_id}:{_assigned(each, topic)}" for each in members.members)
        return Sample(
            at_s=0.0,
            topic_id=str(described.topic_id),
            members=len(names),
            membership=hashlib.sha256("\n".join(names).encode()).hexdigest()[:12],
            is_settled=members.state in _SETTLED,
            partitions=tuple(self._with_tail(each, options) for each in partitions),
        )

    def _of(self, future: Future[V]) -> V:
        return future.result(self._request_s + GRACE_S)

    def _commits(
        self, client: AdminClient, group: str, partitions: list[TopicPartition]
    ) -> dict[int, int | str]:
        asked = ConsumerGroupTopicPartitions(group, partitions)
        futures = client.list_consumer_group_offsets(
            [asked], require_stable=True, request_timeout=self._request_s
        )
        found = self._of(futures[group]).topic_partitions
        return {each.partition: each.error.str() if each.error is not None else each.offset for each in found}

    def _offsets(
        self, client: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec, options: Options
    ) -> dict[int, int | str]:
        if not partitions:
            return {}
        futures = client.list_offsets(
            dict.fromkeys(partitions, spec),
            isolation_level=_LEVELS[options.isolation],
            request_timeout=self._request_s,
        )
        found: dict[int, int | str] = {}
        for partition, future in futures.items():
            try:
                offset = self._of(future).offset
                found[partition.partition] = offset if offset >= 0 else "its leader does not answer"
            except KafkaException as refused:
                found[partition.partition] = refused.args[0].str()
        return found

    def _with_tail(self, seen: PartitionSample, options: Options) -> PartitionSample:
        """Look behind a commit that stands a few offsets before the end, for the second time."""
        key = (options.consumer_group, options.topic, seen.partition)
        if (
            seen.unknown is not None
            or seen.committed is None
            or not seen.log_start <= seen.committed
            or not 0 < seen.log_end - seen.committed <= TAIL_OFFSETS_MAX
            or options.isolation != "read_committed"
        ):
            return seen
        place = (seen.committed, seen.log_end)
        with self._lock:
            stood, marker = self._stood.get(key) == place, self._markers.get(key) == place
            if len(self._stood) >= TAILS_MAX:
                self._stood.clear()
                self._markers.clear()
            self._stood[key] = place
        if marker:
            return replace(seen, tail_is_marker=True)
        if not stood or not self._nothing_left(options.topic, seen):
            return seen
        with self._lock:
            self._markers[key] = place
        return replace(seen, tail_is_marker=True)

    def _nothing_left(self, topic: str, seen: PartitionSample) -> bool:
        """Whether a consumer that begins at the commit comes to the end without a record."""
        assert seen.committed is not None
        consumer = Consumer(
            {
                **self._config,
                "group.id": "seawall-scaler",  # it joins none, and commits nothing
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
            },
            logger=_log,
        )
        try:
            consumer.assign([TopicPartition(topic, seen.partition, seen.committed)])
            message = consumer.poll(TAIL_READ_S)
            error = None if message is None else message.error()
            return error is not None and error.code() == KafkaError._PARTITION_EOF
        finally:
            consumer.close()


def _partition(number: int, commit: int | str, start: int | str, end: int | str) -> PartitionSample:
    if isinstance(commit, str):
        return PartitionSample(partition=number, unknown=commit)
    if isinstance(start, str):
        return PartitionSample(partition=number, unknown=start)
    if isinstance(end, str):
        return PartitionSample(partition=number, unknown=end)
    committed = None if commit < 0 else commit
    return PartitionSample(partition=number, committed=committed, log_start=start, log_end=end)


def _assigned(member: MemberDescription, topic: str) -> list[int]:
    return sorted(each.partition for each in member.assignment.topic_partitions if each.topic == topic)
