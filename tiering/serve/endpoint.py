"""The endpoint put together: the cluster, the store, the table, and the clients in between.

Owns the order of starting and stopping: nothing listens before a broker has answered, and clients have their
last answers before anything behind them is closed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tiering.reader.reader import TieredReader
from tiering.serve.budget import Budget
from tiering.serve.cluster import Cluster
from tiering.serve.coordinators import Coordinators
from tiering.serve.counters import Counters
from tiering.serve.marks import MarksOf
from tiering.serve.reads import ANSWER_S, Reads
from tiering.serve.server import DRAIN_S, Access, Server, bind, check_exposed
from tiering.serve.service import Limits, Service
from tiering.serve.tier import TierTable
from tiering.serve.timing import Timing
from tiering.serve.upstream import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to serve. `advertised` is how clients reach `listen`, where that is another address."""

    settings: Mapping[str, str]  # how this service reaches the cluster, by librdkafka's names
    listen: Address
    nodes: int = 1
    advertised: Address | None = None
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    skip_gaps: bool = False
    answer_s: float = ANSWER_S
    drain_s: float = DRAIN_S


class Endpoint:
    """Made where its loop runs. `on_trouble` hears what is wrong with the store, and what is our defect."""

    def __init__(
        self,
        plan: Plan,
        tier: TierTable,
        reader: TieredReader,
        *,
        counters: Counters,
        timing: Timing,
        on_trouble: Callable[[str, Exception], None],
    ) -> None:
        check_exposed(plan.listen, plan.access)
        self._plan = plan
        self._sockets = bind(plan.listen, plan.nodes)
        self.nodes = _advertised(plan, self._sockets)
        limits = plan.limits
        cluster = Cluster(plan.settings, counters)
        reads = Reads(
            reader, counters, skip_gaps=plan.skip_gaps, on_trouble=on_trouble, answer_s=plan.answer_s
        )
        self.service = Service(
            cluster=cluster,
            marks=MarksOf(cluster, counters),
            tier=tier,
            reads=reads,
            coordinators=Coordinators(counters),
            counters=counters,
            timing=timing,
            budget=Budget(
                limits.answers_bytes_max,
                counters,
                share_bytes=limits.answers_bytes_max // 2 // limits.connections_max,
                waits="budget_waits",
            ),
            requests=Budget(
                limits.requests_bytes_max,
                counters,
                share_bytes=limits.request_bytes_max,
                waits="request_waits",
            ),
            nodes=self.nodes,
            limits=limits,
        )
        self.server = Server(
            self.service,
            plan.access,
            plan.settings,
            on_defect=lambda defect: on_trouble("defect", defect),
        )

    async def run(self, stop: asyncio.Event, on_listening: Callable[[], None]) -> None:
        """Serve until `stop` is set, and the last client is gone. Raises UpstreamAway at the start."""
        try:
            await self.service.cluster.start()
            await self.server.start(self._sockets)
            on_listening()
            await stop.wait()
            await self.server.drain(self._plan.drain_s)
        finally:
            for each in self._sockets:
                each.close()
            self.service.marks.close()
            self.service.cluster.close()
            self.service.reads.close()


def _advertised(plan: Plan, bound: Sequence[socket.socket]) -> tuple[Address, ...]:
    if plan.advertised is not None:
        host, port = plan.advertised
        return tuple(Address(host, port + number) for number in range(len(bound)))
    return tuple(Address(plan.listen.host, each.getsockname()[1]) for each in bound)
