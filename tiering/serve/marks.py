"""High watermark, last stable offset and local start of a partition, as its leader has them.

Every answer carries the leader's own, read from the store or not: a client compares them with what it has
(KAFKA_FACTS 22). What passes by in relayed answers is kept; what is older than FRESH_S is asked again, once
for all who want it at that moment.

Owns these three numbers. Refuses to hold up a read from the store where the leader is away: what was last
known is good enough there, as all that is in the store lies below all three.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, replace

from tiering.serve.cluster import Cluster, KnownTopic
from tiering.serve.counters import Counters
from tiering.serve.errors import UpstreamAway
from tiering.serve.protocol.apis import APIS, LIST_OFFSETS
from tiering.serve.protocol.asking import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.serve.protocol.codes import LEADER_MOVED, Code
from tiering.serve.upstream import Upstream

FRESH_S = 1.0
WAIT_S = 2.0  # for a leader, where what was known before will do
KNOWN_MAX = 50_000
LATEST, EARLIEST = -1, -2
READ_COMMITTED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """-1 is not known."""

    high_watermark: int = -1
    last_stable: int = -1
    local_start: int = -1

    @property
    def is_whole(self) -> bool:
        return min(self.high_watermark, self.last_stable, self.local_start) >= 0


NOTHING_KNOWN = Marks()


class MarksOf:
    """For one event loop."""

    def __init__(self, cluster: Cluster, counters: Counters) -> None:
        self._cluster = cluster
        self._counters = counters
        self._known: OrderedDict[tuple[str, int], tuple[float, Marks]] = OrderedDict()
        self._asking: dict[tuple[str, int], asyncio.Task[Marks]] = {}

    async def of(self, topic: KnownTopic, partition: int) -> Marks:
        """As fresh as can be had soon; `NOTHING_KNOWN` where nobody ever said."""
        key = (topic.topic_id, partition)
        seen_s, known = self._known.get(key, (-FRESH_S, NOTHING_KNOWN))
        if time.monotonic() - seen_s < FRESH_S and known.is_whole:
            return known
        try:
            return await self.fresh(topic, partition)
        except (UpstreamAway, asyncio.TimeoutError):
            return known

    async def fresh(self, topic: KnownTopic, partition: int) -> Marks:
        """As its leader has them now. Raises UpstreamAway or TimeoutError where it does not say."""
        key = (topic.topic_id, partition)
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._ask(topic, partition))
            self._asking[key] = asking
            asking.add_done_callback(lambda ended: self._ended(key, ended))
        return await asyncio.wait_for(asyncio.shield(asking), WAIT_S)

    def learn(self, topic_id: str, partition: int, marks: Marks) -> None:
        """What a relayed answer said; -1 leaves what was known."""
        key = (topic_id, partition)
        _, known = self._known.get(key, (0.0, NOTHING_KNOWN))
        news = {
            name: value
            for name, value in (
                ("high_watermark", marks.high_watermark),
                ("last_stable", marks.last_stable),
                ("local_start", marks.local_start),
            )
            if value >= 0
        }
        self._known[key] = (time.monotonic(), replace(known, **news))
        self._known.move_to_end(key)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
            self._counters.count("forgotten")

    def close(self) -> None:
        for asking in self._asking.values():
            asking.cancel()

    def _ended(self, key: tuple[str, int], asking: asyncio.Task[Marks]) -> None:
        self._asking.pop(key, None)
        if not asking.cancelled():
            asking.exception()  # whoever waited has it; nobody may wait any more

    async def _ask(self, topic: KnownTopic, partition: int) -> Marks:
        led = topic.partitions.get(partition)
        if led is None or led.leader is None:
            self._cluster.doubt(topic.name)
            raise UpstreamAway(address="-", why=f"{topic.name}-{partition} has no leader")
        try:
            upstream = await self._cluster.own(led.leader)
            asked = (
                _offset(upstream, topic.name, partition, LATEST, 0),
                _offset(upstream, topic.name, partition, LATEST, READ_COMMITTED),
                _offset(upstream, topic.name, partition, EARLIEST, 0),
            )
            high_watermark, last_stable, local_start = await asyncio.gather(*asked)
        except UpstreamAway:
            self._cluster.doubt(topic.name)
            raise
        found = Marks(high_watermark=high_watermark, last_stable=last_stable, local_start=local_start)
        self.learn(topic.topic_id, partition, found)
        return found


async def _offset(upstream: Upstream, topic: str, partition: int, at: int, isolation: int) -> int:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=at)
    request = ListOffsetsRequest(
        isolation_level=isolation, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),)
    )
    answer = await upstream.ask(APIS[LIST_OFFSETS], request)
    [found] = [each for topics in answer.topics for each in topics.partitions]
    if found.error_code != Code.NONE:
        moved = "it leads no more" if found.error_code in LEADER_MOVED else f"error {found.error_code}"
        raise UpstreamAway(address=str(upstream.address), why=f"{topic}-{partition}: {moved}")
    offset: int = found.offset
    return offset
