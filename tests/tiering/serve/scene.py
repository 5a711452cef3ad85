"""An endpoint before brokers of our own making and a tier in memory: nothing real, all of it to be struck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.encode.record_batch import PlainRecord
from tests.tiering.reader.tier import T0_MS, LogOfBatches, Tier
from tests.tiering.segments.strategies import LOG
from tests.tiering.segments.topic import TOPIC as METADATA_TOPIC
from tests.tiering.serve.broker import TOPIC, TOPIC_ID, FakeBroker, Partition, World
from tests.tiering.serve.looping import READY_S, Looping
from tests.tiering.serve.wire import WireClient
from tiering.reader.interface import ChunkCache, Objects, ReaderLimits
from tiering.reader.reader import TieredReader
from tiering.serve.counters import Counters
from tiering.serve.endpoint import Endpoint, Plan
from tiering.serve.protocol import apis
from tiering.serve.protocol.fetching import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tiering.serve.tier import TierTable
from tiering.serve.timing import Timing
from tiering.serve.upstream import Address

TIERED = LOG.partition
SMALL = ReaderLimits(chunk_bytes=400, ahead_chunks=3, fetchers=4)
T = TypeVar("T")


def some(count: int, *, text: str = "value", at_ms: int = T0_MS) -> list[PlainRecord]:
    return [PlainRecord(offset=0, timestamp_ms=at_ms + n, value=text.encode()) for n in range(count)]


def a_log(batches: int, each: int = 2) -> LogOfBatches:
    log = LogOfBatches()
    for number in range(batches):
        log.append(some(each, at_ms=T0_MS + log.end, text=f"value {number}"))
    return log


@dataclass(slots=True)
class Scene:
    """What is there. `troubles` is what the endpoint said."""

    world: World
    tier: Tier
    plan: dict[str, Any] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    troubles: list[tuple[str, Exception]] = field(default_factory=list)
    cache: ChunkCache | None = None
    endpoints: list[Endpoint] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop | None = None
    _stops: list[asyncio.Event] = field(default_factory=list)

    @property
    def address(self) -> str:
        return str(self.endpoints[0].nodes[0])

    def client(self, **how: Any) -> WireClient:
        return WireClient(self.address, **how)

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float = READY_S) -> T:
        """In the endpoint's own loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def drain(self) -> None:
        """As on SIGTERM; returns at once."""
        assert self._loop is not None
        with suppress(RuntimeError):  # it has ended already
            for stop in self._stops:
                self._loop.call_soon_threadsafe(stop.set)

    def fetched(self, client: WireClient, offset: int, **how: Any) -> PartitionData:
        """The answer for the tiered partition."""
        return fetched(client, offset, **how)


def fetch_of(
    *wanted: tuple[int, int],
    max_bytes: int = 1_000_000,
    partition_max_bytes: int = 100_000,
    max_wait_ms: int = 200,
    committed: bool = False,
    epoch: int = -1,
) -> FetchRequest:
    """Of partitions of the one topic, each with an offset."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=int(committed),
        topics=(
            FetchTopic(
                topic=TOPIC,
                topic_id=TOPIC_ID,
                partitions=tuple(
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=epoch,
                    )
                    for partition, offset in wanted
                ),
            ),
        ),
    )


def fetched(client: WireClient, offset: int, *, version: int = 13, **how: Any) -> PartitionData:
    answer = client.ask(apis.FETCH, version, fetch_of((TIERED, offset), **how))
    found: PartitionData = answer.responses[0].partitions[0]
    return found


def read_all(client: WireClient, start: int, end: int, **how: Any) -> bytes:
    """The batches of `[start, end)`, as a consumer that goes on by what it got."""
    found, offset = bytearray(), start
    while offset < end:
        data = fetched(client, offset, **how)
        assert data.error_code == 0, data.error_code
        content = b"".join(data.records or ())
        assert content, f"nothing at {offset}"
        found += content
        offset = next_offset(content)
    return bytes(found)


def next_offset(content: bytes) -> int:
    """Behind the last batch."""
    at, following = 0, -1
    while at < len(content):
        base = int.from_bytes(content[at : at + 8], "big")
        length = int.from_bytes(content[at + 8 : at + 12], "big")
        following = base + int.from_bytes(content[at + 23 : at + 27], "big") + 1
        at += 12 + length
    return following


@contextmanager
def staged(
    partition: Partition,
    tier: Tier,
    *,
    brokers: int = 1,
    others: int = 0,
    endpoints: int = 1,
    objects: Callable[[Objects], Objects] = lambda objects: objects,
    reading: ReaderLimits = SMALL,
    cache: ChunkCache | None = None,
    before: Callable[[World], None] = lambda _: None,
    **plan: Any,
) -> Iterator[Scene]:
    """Everything started, and ended. `others` are partitions that are not tiered, of a log that is empty."""
    world = World(partitions={TIERED: partition})
    for number in range(others):
        world.partitions[number] = Partition(LogOfBatches())
    before(world)
    scene = Scene(world=world, tier=tier, cache=cache)
    table = TierTable(tier.table, METADATA_TOPIC.cluster_id)

    async def run(ready: Callable[[], None]) -> None:
        scene._loop = asyncio.get_running_loop()
        for number in range(1, brokers + 1):
            await FakeBroker(world, number).start()
        settings = {
            "bootstrap.servers": ",".join(each.address for each in world.brokers.values()),
            **plan.pop("settings", {}),
        }
        with TieredReader(objects(tier.objects), cache=cache, limits=reading) as reader:
            running = []
            for _ in range(endpoints):
                stop, listening = asyncio.Event(), asyncio.Event()
                endpoint = Endpoint(
                    Plan(settings=settings, **{"listen": Address("127.0.0.1", 0), "drain_s": 3.0, **plan}),
                    table,
                    reader,
                    counters=scene.counters,
                    timing=Timing(),
                    on_trouble=lambda what, error: scene.troubles.append((what, error)),
                )
                scene.endpoints.append(endpoint)
                scene._stops.append(stop)
                running.append(asyncio.create_task(endpoint.run(stop, listening.set)))
                await asyncio.wait(
                    [running[-1], asyncio.create_task(listening.wait())],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            ready()
            await asyncio.gather(*running)
        for each in world.brokers.values():
            await each.stop()

    looping = Looping(run)
    try:
        yield scene
    finally:
        world.hangs = False
        scene.drain()
        looping.join()
