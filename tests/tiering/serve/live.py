"""The endpoint in this process, in a thread of its own, before a real broker and a real bucket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.tiering.serve.looping import READY_S, Looping
from tiering.reader.interface import ChunkCache, Objects, ReaderLimits
from tiering.reader.reader import TieredReader
from tiering.segments.kafka import Follower, SegmentsTopic, check_topic, empty_table, topic_ends
from tiering.serve.counters import Counters
from tiering.serve.endpoint import Endpoint, Plan
from tiering.serve.tier import TierTable
from tiering.serve.timing import Timing
from tiering.serve.upstream import Address

ANY_PORT = Address("127.0.0.1", 0)
LIMITS = ReaderLimits(chunk_bytes=20_000, ahead_chunks=4, fetchers=4)


@dataclass(slots=True, kw_only=True)
class Served:
    """An endpoint that runs. `troubles` is what it said of the store and of itself."""

    endpoint: Endpoint
    counters: Counters
    tier: TierTable
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    troubles: list[tuple[str, Exception]] = field(default_factory=list)
    looping: Looping | None = None

    @property
    def bootstrap(self) -> str:
        return str(self.endpoint.nodes[0])

    def end(self) -> None:
        """Drain, as on SIGTERM."""
        assert self.looping is not None
        if self.looping.is_running:
            self.loop.call_soon_threadsafe(self.stop.set)
        self.looping.join()


def start(tier: TierTable, reader: TieredReader, plan: Plan) -> Served:
    """Serve until `end`."""
    found: list[Served] = []

    async def run(ready: Callable[[], None]) -> None:
        troubles: list[tuple[str, Exception]] = []
        counters = Counters()
        endpoint = Endpoint(
            plan,
            tier,
            reader,
            counters=counters,
            timing=Timing(),
            on_trouble=lambda what, error: troubles.append((what, error)),
        )
        stop = asyncio.Event()
        found.append(
            Served(
                endpoint=endpoint,
                counters=counters,
                tier=tier,
                loop=asyncio.get_running_loop(),
                stop=stop,
                troubles=troubles,
            )
        )
        await endpoint.run(stop, ready)

    looping = Looping(run)
    found[0].looping = looping
    return found[0]


@contextmanager
def served(
    settings: Mapping[str, str],
    objects: Objects,
    *,
    cache: ChunkCache | None = None,
    limits: ReaderLimits = LIMITS,
    **plan: Any,
) -> Iterator[Served]:
    """An endpoint on any free port, whose table follows the topic of metadata."""
    topic: SegmentsTopic = check_topic(settings)
    table = empty_table(topic, topic_ends(settings, topic))
    tier = TierTable(table, topic.identity.cluster_id)
    with ExitStack() as stack:
        follower = stack.enter_context(Follower(settings, topic, tier.applied, positions={}))
        assert follower.wait_caught_up(READY_S)
        reader = stack.enter_context(TieredReader(objects, cache=cache, limits=limits))
        found = start(tier, reader, Plan(settings=settings, **{"listen": ANY_PORT, **plan}))
        stack.callback(found.end)
        yield found
