"""Answers to ListOffsets and OffsetForLeaderEpoch: where a time is, where the log begins, where epochs end.

    earliest (-2)          the log's start in either place
    a time (0 or later)    the store first, then the leader: offsets there are higher
    latest time (-3)       whichever of the two has the later one
    latest tiered (-5)     the last offset of the store
    latest (-1), earliest local (-4), and all of a log that is not in the store: the leader's word

An epoch that ended within the log's recorded history is answered from there: a broker's own history is cut
where its log begins (KAFKA_FACTS 22).

Owns that choice. Invariant: an offset that is named here can be fetched here.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tiering.reader.interface import TieredLog
from tiering.segments.lineage import epoch_at
from tiering.serve.client import Client
from tiering.serve.cluster import KnownTopic
from tiering.serve.errors import UpstreamAway
from tiering.serve.fetch import epoch_error, log_start
from tiering.serve.protocol.apis import APIS, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from tiering.serve.protocol.asking import (
    EpochEnd,
    EpochEndTopic,
    EpochPartition,
    EpochTopic,
    ListedPartition,
    ListedTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from tiering.serve.protocol.codes import LEADER_MOVED, Code
from tiering.serve.reads import NotRead
from tiering.serve.service import Service

A = TypeVar("A")
EARLIEST, MAX_TIMESTAMP, LATEST_TIERED = -2, -3, -5
AT_ONCE = 64  # offsets_queued: partitions of one request


async def list_offsets(
    service: Service, client: Client, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    def listed(topic: str, asked: ListOffsetsPartition) -> Awaitable[ListedPartition]:
        return _listed(service, client, request, topic, asked)

    pairs = [(topic.name, each) for topic in request.topics for each in topic.partitions]
    answers = iter(await _all(service, pairs, listed))
    return ListOffsetsResponse(
        topics=tuple(
            ListedTopic(name=topic.name, partitions=tuple(next(answers) for _ in topic.partitions))
            for topic in request.topics
        )
    )


async def offset_for_leader_epoch(
    service: Service, client: Client, request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    def ended(topic: str, asked: EpochPartition) -> Awaitable[EpochEnd]:
        return _ended(service, client, topic, asked)

    pairs = [(topic.topic, each) for topic in request.topics for each in topic.partitions]
    answers = iter(await _all(service, pairs, ended))
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            EpochEndTopic(topic=topic.topic, partitions=tuple(next(answers) for _ in topic.partitions))
            for topic in request.topics
        )
    )


async def _all(
    service: Service, pairs: list[tuple[str, Any]], answer: Callable[[str, Any], Awaitable[A]]
) -> list[A]:
    """Each partition's answer, in order, a bounded number of them at a time."""
    service.counters.count("offsets_queued", max(0, len(pairs) - AT_ONCE))
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(topic: str, asked: Any) -> A:
        async with turn:
            return await answer(topic, asked)

    return await asyncio.gather(*(one(*pair) for pair in pairs))


async def _readable(service: Service, client: Client, name: str) -> KnownTopic | Code:
    assert client.who is not None
    topic = await service.cluster.topic(name=name)
    if topic is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if not await client.who.may_read(name):
        service.counters.count("reads_denied")
        return Code.TOPIC_AUTHORIZATION_FAILED
    return topic


async def _listed(
    service: Service, client: Client, request: ListOffsetsRequest, name: str, asked: ListOffsetsPartition
) -> ListedPartition:
    topic = await _readable(service, client, name)
    if not isinstance(topic, KnownTopic):
        return ListedPartition(partition_index=asked.partition_index, error_code=topic)
    log = service.tier.log(topic.topic_id, asked.partition_index)
    if log is not None and _is_ours(asked.timestamp):
        code = await epoch_error(service, topic, asked.partition_index, asked.current_leader_epoch)
        if code != Code.NONE:
            return ListedPartition(partition_index=asked.partition_index, error_code=code)
        found = await _in_store(service, client, request, topic, asked, log)
        if found is not None:
            return found
    return await _by_leader(service, client, request, topic, asked)


def _is_ours(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp in (EARLIEST, MAX_TIMESTAMP, LATEST_TIERED)


async def _in_store(
    service: Service,
    client: Client,
    request: ListOffsetsRequest,
    topic: KnownTopic,
    asked: ListOffsetsPartition,
    log: TieredLog,
) -> ListedPartition | None:
    """The answer if it lies in the store; None if it is the leader's to give."""
    if asked.timestamp == LATEST_TIERED:
        return _at(log, asked, log.end - 1, -1)
    marks = await service.marks.of(topic, asked.partition_index)
    keeps_more = 0 <= marks.local_start < log.start
    if asked.timestamp == EARLIEST:
        return None if keeps_more else _at(log, asked, log_start(log, marks), -1)
    if asked.timestamp == MAX_TIMESTAMP:
        return await _latest_time(service, client, request, topic, asked, log)
    if keeps_more:
        local = await _by_leader(service, client, request, topic, asked)
        if local.error_code != Code.NONE or 0 <= local.offset < log.start:
            return local
    return await _first_late(service, asked, log, asked.timestamp)


async def _first_late(
    service: Service, asked: ListOffsetsPartition, log: TieredLog, timestamp_ms: int
) -> ListedPartition | None:
    record = await service.reads.record_at(log, timestamp_ms)
    if isinstance(record, NotRead):
        return ListedPartition(partition_index=asked.partition_index, error_code=record.code)
    return None if record is None else _at(log, asked, record.offset, record.timestamp_ms)


async def _latest_time(
    service: Service,
    client: Client,
    request: ListOffsetsRequest,
    topic: KnownTopic,
    asked: ListOffsetsPartition,
    log: TieredLog,
) -> ListedPartition | None:
    local = await _by_leader(service, client, request, topic, asked)
    tiered_ms = max((int(each) for each in log.coverage.finished.max_timestamps_ms), default=-1)
    if local.error_code == Code.NONE and local.timestamp > tiered_ms:
        return local
    found = await _first_late(service, asked, log, tiered_ms) if tiered_ms >= 0 else None
    return found or local


def _at(log: TieredLog, asked: ListOffsetsPartition, offset: int, timestamp_ms: int) -> ListedPartition:
    epoch = epoch_at(log.coverage.lineage, offset)
    return ListedPartition(
        partition_index=asked.partition_index,
        error_code=Code.NONE,
        timestamp=timestamp_ms,
        offset=offset,
        leader_epoch=-1 if epoch is None else epoch,
    )


async def _by_leader(
    service: Service,
    client: Client,
    request: ListOffsetsRequest,
    topic: KnownTopic,
    asked: ListOffsetsPartition,
) -> ListedPartition:
    passed = ListOffsetsRequest(
        isolation_level=request.isolation_level,
        topics=(ListOffsetsTopic(name=topic.name, partitions=(asked,)),),
        timeout_ms=request.timeout_ms,
    )
    found = await _asked_of_leader(service, client, topic, asked.partition_index, LIST_OFFSETS, passed)
    if isinstance(found, Code):
        return ListedPartition(partition_index=asked.partition_index, error_code=found)
    answer: ListedPartition = found
    return answer


async def _asked_of_leader(
    service: Service, client: Client, topic: KnownTopic, partition: int, key: int, request: Any
) -> Any:
    """The one partition's answer, or the code that stands for a leader that gave none."""
    led = topic.partitions.get(partition)
    if led is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    try:
        if led.leader is None:
            raise UpstreamAway(address="-", why=f"{topic.name}-{partition} has no leader")
        upstream = await client.upstream(led.leader)
        answer = await upstream.ask(APIS[key], request)
    except UpstreamAway:
        service.counters.count("leaders_away")
        service.cluster.doubt(topic.name)
        return Code.NOT_LEADER_OR_FOLLOWER
    [found] = [each for topics in answer.topics for each in topics.partitions]
    if found.error_code in LEADER_MOVED:
        service.cluster.doubt(topic.name)
    return found


async def _ended(service: Service, client: Client, name: str, asked: EpochPartition) -> EpochEnd:
    topic = await _readable(service, client, name)
    if not isinstance(topic, KnownTopic):
        return EpochEnd(partition=asked.partition, error_code=topic)
    log = service.tier.log(topic.topic_id, asked.partition)
    if log is not None:
        known = epoch_end(log, asked.leader_epoch)
        if known is not None:
            code = await epoch_error(service, topic, asked.partition, asked.current_leader_epoch)
            if code != Code.NONE:
                return EpochEnd(partition=asked.partition, error_code=code)
            epoch, end = known
            return EpochEnd(
                partition=asked.partition, error_code=Code.NONE, leader_epoch=epoch, end_offset=end
            )
    passed = OffsetForLeaderEpochRequest(topics=(EpochTopic(topic=name, partitions=(asked,)),))
    found = await _asked_of_leader(service, client, topic, asked.partition, OFFSET_FOR_LEADER_EPOCH, passed)
    if isinstance(found, Code):
        return EpochEnd(partition=asked.partition, error_code=found)
    answer: EpochEnd = found
    return answer


def epoch_end(log: TieredLog, epoch: int) -> tuple[int, int] | None:
    """Of a log's history: the largest epoch up to this one, and where it ends; None where it does not say.

    The last recorded epoch has no end there: whether it goes on is its leader's to say. Of one before the
    first, the end is the first one's start, as Kafka has it.
    """
    lineage = log.coverage.lineage
    place = bisect_right(lineage, epoch, key=lambda each: each.epoch)
    if place == len(lineage):
        return None
    return (lineage[place - 1].epoch if place else epoch), lineage[place].start_offset
