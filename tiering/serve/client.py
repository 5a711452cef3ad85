"""One client's way upstream: a connection of its own to each broker that its requests go to.

So the broker sees each client as a client: its identity where it has one, its long polls, its order. What
is asked for all clients alike (marks, topics) goes over the service's own connections instead.

Owns those connections, closed with the client's. Invariant: no two clients share one.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tiering.serve.budget import Budget
from tiering.serve.cluster import Cluster
from tiering.serve.counters import Counters
from tiering.serve.errors import UpstreamAway
from tiering.serve.upstream import Address, Upstream, open_upstream
from tiering.serve.who import Who

UPSTREAMS_MAX = 64  # upstreams_dropped: brokers that one client's requests go to


class Client:
    """For one connection of a client, and one event loop. Answers for it take room of `budget`."""

    def __init__(self, cluster: Cluster, who: Who | None, budget: Budget, counters: Counters) -> None:
        self.who = who
        self.budget = budget
        self._counters = counters
        self.software = ""
        self.reads_history_until_s = 0.0
        self.at_tail: dict[tuple[str, int], bool] = {}
        self.turn = 0
        self._cluster = cluster
        self._opened: dict[Address, Upstream] = {}
        self._opening: dict[Address, asyncio.Task[Upstream]] = {}

    async def upstream(self, address: Address) -> Upstream:
        """This client's connection to a broker; opened once for all of its requests that wait for it."""
        found = self._opened.get(address)
        if found is not None and not found.is_closed:
            return found
        opening = self._opening.get(address)
        if opening is None:
            opening = asyncio.create_task(self._open(address))
            self._opening[address] = opening
            opening.add_done_callback(lambda ended: self._ended(address, ended))
        return await asyncio.shield(opening)

    async def any_upstream(self) -> Upstream:
        """To a broker that is connected already, else to any that answers."""
        for upstream in self._opened.values():
            if not upstream.is_closed:
                return upstream
        failed = UpstreamAway(address="-", why="no broker is known")
        for address in self._cluster.addresses():
            try:
                return await self.upstream(address)
            except UpstreamAway as away:
                failed = away
        raise failed

    def adopt(self, upstream: Upstream) -> None:
        """A connection that was opened with this client's credentials, to see whether they are right."""
        self._drop(upstream.address)
        self._opened[upstream.address] = upstream

    def close(self) -> None:
        for opening in self._opening.values():
            opening.cancel()
        for address in list(self._opened):
            self._drop(address)

    async def _open(self, address: Address) -> Upstream:
        assert self.who is not None
        opened = await open_upstream(address, self.who.settings, budget=self.budget)
        self._drop(address)
        if len(self._opened) >= UPSTREAMS_MAX:
            self._counters.count("upstreams_dropped")
            self._drop(next(iter(self._opened)))
        self._opened[address] = opened
        return opened

    def _ended(self, address: Address, opening: asyncio.Task[Upstream]) -> None:
        self._opening.pop(address, None)
        if not opening.cancelled():
            opening.exception()  # whoever waited has it

    def _drop(self, address: Address) -> None:
        with suppress(KeyError):
            self._opened.pop(address).close()
