"""The endpoint in this process, in a thread of its own, before a real broker and a real bucket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from tiering.reader.interface import ChunkCache, Objects, ReaderLimits
from tiering.reader.reader import TieredReader
from tiering.segments.kafka import Follower, SegmentsTopic, check_topic, empty_table, topic_ends
from tiering.serve.counters import Counters
from tiering.serve.endpoint import Endpoint, Plan
from tiering.serve.tier import TierTable
from tiering.serve.timing import Timing
from tiering.serve.upstream import Address

READY_S = 30.0
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
    thread: Thread
    troubles: list[tuple[str, Exception]] = field(default_factory=list)
    failure: BaseException | None = None

    @property
    def bootstrap(self) -> str:
        return str(self.endpoint.nodes[0])

    def end(self, timeout_s: float = READY_S) -> None:
        """Drain, as on SIGTERM."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.stop.set)
            self.thread.join(timeout_s)
            assert not self.thread.is_alive(), "it does not end"


def start(tier: TierTable, reader: TieredReader, plan: Plan) -> Served:
    """Serve until `end`."""
    ready = Event()
    found: list[Served] = []
    failed: list[BaseException] = []
    counters = Counters()

    async def run() -> None:
        troubles: list[tuple[str, Exception]] = []
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
                thread=thread,
                troubles=troubles,
            )
        )
        await endpoint.run(stop, ready.set)

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001 told to the thread that waits
            failed.append(error)
        finally:
            ready.set()

    thread = Thread(target=work, name="seawall-serve", daemon=True)
    thread.start()
    assert ready.wait(READY_S)
    if failed:
        raise failed[0]
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
