"""Answers to Fetch: of each partition from the store or from its leader, by where the offset asked for lies.

    log start <= offset < frontier   the store
    else                             the leader, whose answer is passed on with our log start in it

Nobody waits for more bytes where a partition of the request is in the store. Fetch sessions are not kept:
the session id is always 0, and clients then name all partitions each time (KAFKA_FACTS 22).

Owns the seam. Refuses OFFSET_OUT_OF_RANGE inside of `[log start, log end)`: where the leader has an offset no
more and the table has it not yet, or it is lost, the client is told to come again.

Invariant: what is answered of a partition comes from one place, whole batches, in order.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from tiering.log.wire import Uuid
from tiering.reader.interface import TieredLog
from tiering.serve.budget import Room
from tiering.serve.client import Client
from tiering.serve.cluster import KnownTopic
from tiering.serve.errors import UpstreamAway
from tiering.serve.marks import Marks
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.fetching import (
    AbortedTransaction,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tiering.serve.reads import NotRead
from tiering.serve.service import Service
from tiering.serve.tail import Tails, Wanted

READ_COMMITTED = 1
PARTITION_BYTES_MIN = 64 * 1024  # of each partition of one answer, if it asks for that much
HISTORY_S = 5.0  # so long a client that read from the store counts as one that does
HISTORY_WAIT_MS = 100  # that its leaders may wait for news meanwhile: the store is asked in between


@dataclass(slots=True, kw_only=True)
class Place:
    """One partition of the request, and what becomes of it."""

    asked: FetchPartition
    topic: KnownTopic | None = None
    log: TieredLog | None = None
    answer: PartitionData | None = None

    def fail(self, code: int) -> None:
        self.answer = PartitionData(
            partition_index=self.asked.partition,
            error_code=code,
            high_watermark=-1,
            records=(),
            aborted_transactions=None,
        )


@dataclass(slots=True, kw_only=True)
class Places:
    """The partitions of the request, by topic, in its order."""

    by_topic: list[tuple[str, Uuid, list[Place]]] = field(default_factory=list)

    def all(self) -> list[Place]:
        return [place for _, _, places in self.by_topic for place in places]


async def fetch(
    service: Service,
    client: Client,
    tails: Tails,
    held: ExitStack,
    request: FetchRequest,
    version: int,
) -> FetchResponse:
    """The answer. What it takes of the budget is given back when `held` is closed."""
    if request.session_id != 0:
        return FetchResponse(error_code=Code.FETCH_SESSION_ID_NOT_FOUND)
    began_s = time.monotonic()
    places = await _placed(service, client, request, by_id=version >= 13)
    tiered = [each for each in places.all() if each.answer is None and each.log is not None]
    tail = [each for each in places.all() if each.answer is None and each.log is None]
    together = _together(service, request, [*tiered, *tail])
    room: Room | None = None
    if tiered:
        client.reads_history_until_s = began_s + HISTORY_S
        room = await service.budget.take(min(together, _asked_bytes(tiered)))
        held.callback(room.give_back)
    relaying = asyncio.create_task(
        _relay(service, client, tails, held, request, tail, at_once=bool(tiered), began_s=began_s)
    )
    try:
        await _read(service, client, request, tiered, together)
        if room is not None:
            room.resize(sum(_size(place) for place in tiered))
        await relaying
    finally:
        relaying.cancel()
    _count(service, client, tiered, tail, time.monotonic() - began_s)
    return _response(places)


def _together(service: Service, request: FetchRequest, places: list[Place]) -> int:
    """How many bytes of records the store should give for one answer."""
    most, asked = service.limits.answer_bytes_max, _asked_bytes(places)
    if min(request.max_bytes, asked) > most:
        service.counters.count("answers_cut")
    together = max(1, min(request.max_bytes, most))
    wanted = max(1, min(together, asked))
    room = service.budget.room_bytes(wanted)
    return together if room == wanted else room


def _asked_bytes(places: list[Place]) -> int:
    return sum(max(0, place.asked.partition_max_bytes) for place in places)


def _size(place: Place) -> int:
    records = place.answer.records if place.answer is not None else None
    return sum(map(len, records or ()))


async def _placed(service: Service, client: Client, request: FetchRequest, *, by_id: bool) -> Places:
    """Look up each topic, and for each partition whether it is the store's; what cannot be is answered."""
    found = Places()
    assert client.who is not None
    for topic in request.topics:
        known = await (
            service.cluster.topic(topic_id=topic.topic_id)
            if by_id
            else service.cluster.topic(name=topic.topic)
        )
        places = [Place(asked=each, topic=known) for each in topic.partitions]
        found.by_topic.append((topic.topic, topic.topic_id, places))
        if known is None:
            _fail_all(places, Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION)
        elif not await client.who.may_read(known.name):
            service.counters.count("reads_denied")
            _fail_all(places, Code.TOPIC_AUTHORIZATION_FAILED)
        else:
            for place in places:
                await _place(service, known, place)
    return found


def _fail_all(places: list[Place], code: Code) -> None:
    for place in places:
        place.fail(code)


async def _place(service: Service, topic: KnownTopic, place: Place) -> None:
    asked = place.asked
    log = service.tier.log(topic.topic_id, asked.partition)
    if log is None or asked.fetch_offset >= log.end:
        return
    code = await epoch_error(service, topic, asked.partition, asked.current_leader_epoch)
    if code != Code.NONE:
        place.fail(code)
    elif asked.fetch_offset >= log.start:
        place.log = log
    else:
        await _below(service, topic, place, log)


async def _below(service: Service, topic: KnownTopic, place: Place, log: TieredLog) -> None:
    """Below what is in the store: the broker may have kept more."""
    marks = await service.marks.of(topic, place.asked.partition)
    if marks.local_start < 0:
        place.fail(Code.KAFKA_STORAGE_ERROR)
    elif place.asked.fetch_offset < min(marks.local_start, log.start):
        service.counters.count("out_of_range")
        place.fail(Code.OFFSET_OUT_OF_RANGE)


async def epoch_error(service: Service, topic: KnownTopic, partition: int, epoch: int) -> Code:
    """What a leader would say to a client that believes in this epoch of it; -1 is not looked at."""
    led = topic.partitions.get(partition)
    if led is not None and epoch > led.epoch:
        newer = await service.cluster.refreshed(topic)
        led = newer.partitions.get(partition) if newer is not None else None
    if led is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if epoch < 0 or epoch == led.epoch or led.epoch < 0:
        return Code.NONE
    return Code.FENCED_LEADER_EPOCH if epoch < led.epoch else Code.UNKNOWN_LEADER_EPOCH


async def _read(
    service: Service, client: Client, request: FetchRequest, tiered: list[Place], together: int
) -> None:
    """A few of them each time, by turns: those that are not read now are answered with nothing."""
    if not tiered:
        return
    at_once = service.limits.tiered_at_once
    if together < request.max_bytes:
        at_once = min(at_once, max(1, together // PARTITION_BYTES_MIN))
    first = client.turn % len(tiered)
    if len(tiered) > at_once:
        client.turn += at_once
        service.counters.count("turns_put_off", len(tiered) - at_once)
    in_turn = [*tiered[first:], *tiered[:first]]
    each_bytes = max(PARTITION_BYTES_MIN, together // min(len(tiered), at_once))
    await asyncio.gather(
        *(
            _read_one(service, request, place, min(each_bytes, together, place.asked.partition_max_bytes))
            for place in in_turn[:at_once]
        ),
        *(_empty(service, place) for place in in_turn[at_once:]),
    )


async def _read_one(service: Service, request: FetchRequest, place: Place, max_bytes: int) -> None:
    assert place.log is not None
    assert place.topic is not None
    committed = request.isolation_level == READ_COMMITTED
    reading = service.reads.batches(
        place.log, place.asked.fetch_offset, max_bytes=max_bytes, committed=committed
    )
    found, marks = await asyncio.gather(reading, service.marks.of(place.topic, place.asked.partition))
    if isinstance(found, NotRead):
        place.fail(found.code)
        return
    aborted = tuple(AbortedTransaction(producer_id=one, first_offset=first) for one, first in found.aborted)
    place.answer = _data(place, place.log, marks, (found.content,), aborted=aborted if committed else None)


async def _empty(service: Service, place: Place) -> None:
    assert place.log is not None
    assert place.topic is not None
    marks = await service.marks.of(place.topic, place.asked.partition)
    place.answer = _data(place, place.log, marks, (), aborted=None)


def _data(
    place: Place,
    log: TieredLog,
    marks: Marks,
    records: tuple[bytes, ...],
    *,
    aborted: tuple[AbortedTransaction, ...] | None,
) -> PartitionData:
    """The leader's marks, never below what the store has: all of it is committed (T1)."""
    return PartitionData(
        partition_index=place.asked.partition,
        error_code=Code.NONE,
        high_watermark=max(marks.high_watermark, log.end),
        last_stable_offset=max(marks.last_stable, log.end),
        log_start_offset=log_start(log, marks),
        aborted_transactions=aborted,
        records=records,
    )


def log_start(log: TieredLog | None, marks: Marks) -> int:
    """The first offset that can be read, from the store or from the leader."""
    known = [each for each in (log.start if log is not None else -1, marks.local_start) if each >= 0]
    return min(known, default=-1)


async def _relay(
    service: Service,
    client: Client,
    tails: Tails,
    held: ExitStack,
    request: FetchRequest,
    tail: list[Place],
    *,
    at_once: bool,
    began_s: float,
) -> None:
    """Ask the leaders; with `at_once` nobody waits for news."""
    wanted: list[Wanted] = []
    for place in tail:
        assert place.topic is not None
        led = place.topic.partitions.get(place.asked.partition)
        if led is None:
            place.fail(Code.UNKNOWN_TOPIC_OR_PARTITION)
        elif led.leader is None:
            service.cluster.doubt(place.topic.name)
            place.fail(Code.NOT_LEADER_OR_FOLLOWER)
        else:
            wanted.append(Wanted(topic=place.topic, asked=place.asked, leader=led.leader))
    wait_ms = min(max(0, request.max_wait_ms), service.limits.tail_wait_ms_max)
    if tail and request.max_wait_ms > service.limits.tail_wait_ms_max:
        service.counters.count("waits_cut")
    if client.reads_history_until_s > began_s:
        wait_ms = min(wait_ms, HISTORY_WAIT_MS)
    answers = await tails.ask(request, wanted, held, wait_ms=0 if at_once else wait_ms, soon=at_once)
    by_key = {(each.topic.topic_id, each.asked.partition): answers[each.key] for each in wanted}
    for place in tail:
        if place.answer is None:
            assert place.topic is not None
            found = by_key[place.topic.topic_id, place.asked.partition]
            place.answer = await _passed_on(service, place, found)


async def _passed_on(service: Service, place: Place, found: PartitionData | None) -> PartitionData:
    """A leader's answer as ours; None where it has not answered yet."""
    topic, asked = place.topic, place.asked
    assert topic is not None
    log = service.tier.log(topic.topic_id, asked.partition)
    if found is None:
        marks = await service.marks.of(topic, asked.partition)
        return PartitionData(
            partition_index=asked.partition,
            error_code=Code.NONE,
            high_watermark=marks.high_watermark,
            last_stable_offset=marks.last_stable,
            log_start_offset=log_start(log, marks),
            aborted_transactions=None,
            records=(),
        )
    code = found.error_code
    if code == Code.OFFSET_OUT_OF_RANGE:
        code = await _out_of_range(service, topic, asked, log)
    if code != Code.NONE:
        place.fail(code)
        assert place.answer is not None
        return place.answer
    marks = Marks(
        high_watermark=found.high_watermark,
        last_stable=found.last_stable_offset,
        local_start=found.log_start_offset,
    )
    service.marks.learn(topic.topic_id, asked.partition, marks)
    return PartitionData(
        partition_index=asked.partition,
        error_code=Code.NONE,
        high_watermark=found.high_watermark,
        last_stable_offset=found.last_stable_offset,
        log_start_offset=log_start(log, marks),
        aborted_transactions=found.aborted_transactions,
        records=found.records or (),
    )


async def _out_of_range(
    service: Service, topic: KnownTopic, asked: FetchPartition, log: TieredLog | None
) -> Code:
    """The leader has not this offset. Whether nobody has, or it went to the store a moment ago."""
    try:
        marks = await service.marks.fresh(topic, asked.partition)
    except (UpstreamAway, asyncio.TimeoutError):
        return Code.KAFKA_STORAGE_ERROR
    start = log_start(log, marks)
    if start <= asked.fetch_offset <= marks.high_watermark:
        service.counters.count("seam_retries")
        return Code.KAFKA_STORAGE_ERROR
    service.counters.count("out_of_range")
    return Code.OFFSET_OUT_OF_RANGE


def _count(service: Service, client: Client, tiered: list[Place], tail: list[Place], seconds: float) -> None:
    for kind, places in (("tier", tiered), ("tail", tail)):
        for place in places:
            records = place.answer.records if place.answer is not None else None
            if not records:
                continue
            assert place.topic is not None
            service.counters.count(f"{kind}_fetches")
            service.counters.count(f"{kind}_bytes", _size(place))
            at = (place.topic.topic_id, place.asked.partition)
            if client.at_tail.get(at) is False and kind == "tail":
                service.counters.count("handovers")
            client.at_tail[at] = kind == "tail"
    which = "both" if tiered and tail else "store" if tiered else "leader"
    service.timing.took(which, seconds)


def _response(places: Places) -> FetchResponse:
    responses = []
    for name, topic_id, each in places.by_topic:
        answers = tuple(place.answer for place in each if place.answer is not None)
        assert len(answers) == len(each), "a partition without an answer"
        responses.append(FetchedTopic(topic=name, topic_id=topic_id, partitions=answers))
    return FetchResponse(responses=tuple(responses))
