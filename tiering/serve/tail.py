"""Fetches at the leaders: one at a time to each, for one client.

Leaders answer when they have something or the wait is over. A client that follows partitions of several
leaders gets what the first of them has; what the others are still asked stays asked, and the next request for
the same offsets takes that answer. So nobody waits for the slowest, and nothing is asked twice.

An answer takes room of the budget for as long as it is here; one that the client does not come for in LEFT_S
is dropped, and asked for again if it comes later.

Owns what is under way. Invariant: an answer is given for the offsets it was asked for, or dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tiering.log.wire import ZERO_UUID, Uuid
from tiering.serve.client import Client
from tiering.serve.cluster import Cluster, KnownTopic
from tiering.serve.counters import Counters
from tiering.serve.errors import UpstreamAway
from tiering.serve.protocol.apis import APIS, FETCH
from tiering.serve.protocol.codes import LEADER_MOVED, Code
from tiering.serve.protocol.fetching import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tiering.serve.upstream import Address

BY_ID_FROM = 13
ANSWER_BEYOND_S = 10.0  # what a leader may take on top of the wait
SOON_S = 0.5  # the same where the store has an answer ready
LEFT_S = 10.0  # answers_left: so long an answer waits for the client's next request
# What Kafka's own consumer knows as an answer to Fetch; any other would stop it.
_PASSED = LEADER_MOVED - {Code.LEADER_NOT_AVAILABLE} | {
    Code.NONE,
    Code.OFFSET_OUT_OF_RANGE,
    Code.CORRUPT_MESSAGE,
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.OFFSET_NOT_AVAILABLE,
}


class Key(NamedTuple):
    """All that an answer depends on."""

    topic_id: str
    partition: int
    offset: int
    epoch: int
    max_bytes: int
    isolation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A partition, and who leads it."""

    topic: KnownTopic
    asked: FetchPartition
    leader: Address

    @property
    def key(self) -> tuple[str, int]:
        return (self.topic.topic_id, self.asked.partition)


Answers: TypeAlias = dict[tuple[str, int], PartitionData]


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    """What a leader is asked, and the room that its answer takes."""

    keys: frozenset[Key]
    task: asyncio.Task[Answers]
    held: ExitStack
    is_left: bool = field(default=False)  # its client was answered without it

    def drop(self) -> None:
        self.task.cancel()
        self.task.add_done_callback(lambda _: self.held.close())


class Tails:
    """Of one client. Answers have at most `answer_bytes_max`, whole first batches apart."""

    def __init__(
        self, client: Client, cluster: Cluster, counters: Counters, *, answer_bytes_max: int
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._counters = counters
        self._answer_bytes_max = answer_bytes_max
        self._asked: dict[Address, _Asked] = {}

    async def ask(
        self,
        request: FetchRequest,
        wanted: Sequence[Wanted],
        held: ExitStack,
        *,
        wait_ms: int,
        soon: bool = False,
    ) -> Mapping[tuple[str, int], PartitionData | None]:
        """Each partition's answer; None of those whose leader has none yet. The room is `held`'s then."""
        by_leader: dict[Address, list[Wanted]] = {}
        for each in wanted:
            by_leader.setdefault(each.leader, []).append(each)
        under_way = {
            leader: self._under_way(leader, request, theirs, wait_ms) for leader, theirs in by_leader.items()
        }
        if under_way:
            tasks = [each.task for each in under_way.values()]
            await self._first(tasks, SOON_S if soon else wait_ms / 1000 + ANSWER_BEYOND_S)
        found: dict[tuple[str, int], PartitionData | None] = {}
        for leader, theirs in by_leader.items():
            answers: Answers = {}
            asked = under_way[leader]
            if asked.task.done():
                self._asked.pop(leader, None)
                held.callback(asked.held.close)
                answers = asked.task.result()
            else:
                self._leave(leader, asked)
            for each in theirs:
                found[each.key] = answers.get(each.key)
        return found

    def close(self) -> None:
        for each in self._asked.values():
            each.drop()
        self._asked.clear()

    def _leave(self, leader: Address, asked: _Asked) -> None:
        """Nobody waits for it until the client comes again."""
        if asked.is_left:
            return
        asked.is_left = True
        loop = asyncio.get_running_loop()
        asked.task.add_done_callback(lambda _: loop.call_later(LEFT_S, self._forsake, leader, asked))

    def _forsake(self, leader: Address, asked: _Asked) -> None:
        if self._asked.get(leader) is asked:
            self._counters.count("answers_left")
            self._asked.pop(leader).drop()

    def _under_way(
        self, leader: Address, request: FetchRequest, wanted: list[Wanted], wait_ms: int
    ) -> _Asked:
        keys = frozenset(
            Key(
                each.topic.topic_id,
                each.asked.partition,
                each.asked.fetch_offset,
                each.asked.current_leader_epoch,
                each.asked.partition_max_bytes,
                request.isolation_level,
            )
            for each in wanted
        )
        under_way = self._asked.get(leader)
        if under_way is not None and under_way.keys == keys:
            return under_way
        if under_way is not None:
            under_way.drop()
        held = ExitStack()
        task = asyncio.create_task(self._fetched(leader, request, wanted, wait_ms, held))
        asked = self._asked[leader] = _Asked(keys=keys, task=task, held=held)
        return asked

    async def _first(self, tasks: list[asyncio.Task[Answers]], timeout_s: float) -> None:
        """Until all have answered, or one has something, or the time is up."""
        left = set(tasks)
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while left:
            remaining_s = deadline_s - asyncio.get_running_loop().time()
            done, left = await asyncio.wait(
                left, timeout=max(0.0, remaining_s), return_when=asyncio.FIRST_COMPLETED
            )
            if not done or any(_has_something(each.result()) for each in done):
                return

    async def _fetched(
        self, leader: Address, request: FetchRequest, wanted: list[Wanted], wait_ms: int, held: ExitStack
    ) -> Answers:
        """One leader's answer; where it is away, each partition's error."""
        try:
            upstream = await self._client.upstream(leader)
            asked_bytes = sum(max(0, each.asked.partition_max_bytes) for each in wanted)
            most_bytes = max(1, min(request.max_bytes, self._answer_bytes_max, asked_bytes))
            bytes_max = self._client.budget.room_bytes(most_bytes)
            asked = _request(request, wanted, wait_ms, bytes_max)
            timeout_s = wait_ms / 1000 + ANSWER_BEYOND_S
            answer: FetchResponse = await upstream.ask(APIS[FETCH], asked, timeout_s=timeout_s, held=held)
        except UpstreamAway:
            self._counters.count("leaders_away")
            for each in wanted:
                self._cluster.doubt(each.topic.name)
            return {each.key: _failed(each, Code.NOT_LEADER_OR_FOLLOWER) for each in wanted}
        found = _by_partition(answer, wanted)
        answers: Answers = {}
        for each in wanted:
            data = found.get(each.key)
            code = answer.error_code if data is None else data.error_code
            if code in LEADER_MOVED:
                self._cluster.doubt(each.topic.name)
            if data is None or code not in _PASSED:
                data = _failed(each, code if code in _PASSED and code else Code.UNKNOWN_SERVER_ERROR)
            answers[each.key] = data
        return answers


def _request(request: FetchRequest, wanted: list[Wanted], wait_ms: int, bytes_max: int) -> FetchRequest:
    """Ours to a leader: without a session, and without a rack, so that no follower is ever named."""
    topics: dict[Uuid, list[Wanted]] = {}
    for each in wanted:
        topics.setdefault(each.topic.topic_id, []).append(each)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=request.min_bytes if wait_ms else 0,
        max_bytes=min(request.max_bytes, bytes_max),
        isolation_level=request.isolation_level,
        topics=tuple(
            FetchTopic(
                topic=theirs[0].topic.name,
                topic_id=topic_id,
                partitions=tuple(
                    FetchPartition(
                        partition=each.asked.partition,
                        current_leader_epoch=each.asked.current_leader_epoch,
                        fetch_offset=each.asked.fetch_offset,
                        partition_max_bytes=each.asked.partition_max_bytes,
                    )
                    for each in theirs
                ),
            )
            for topic_id, theirs in topics.items()
        ),
    )


def _by_partition(answer: FetchResponse, wanted: list[Wanted]) -> Answers:
    ids = {each.topic.name: each.topic.topic_id for each in wanted}
    return {
        (topic.topic_id if topic.topic_id != ZERO_UUID else ids[topic.topic], each.partition_index): each
        for topic in answer.responses
        for each in topic.partitions
    }


def _failed(wanted: Wanted, code: int) -> PartitionData:
    return PartitionData(
        partition_index=wanted.asked.partition, error_code=code, high_watermark=-1, records=()
    )


def _has_something(answers: Answers) -> bool:
    return any(each.error_code != Code.NONE or any(map(len, each.records or ())) for each in answers.values())
