"""The endpoint's process: the table, the store and its cache, the endpoint, and the address for probes.

Owns how settings become these, the order of starting and ending, and what the log says. Nothing listens to
clients before the table has caught up: an endpoint that does not know of the store would send them to the
leader for everything, and tell them that the log begins there.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from seawall import connections
from seawall.agent.health import Health
from seawall.agent.http import HttpEndpoint
from seawall.metrics.collected import Collected
from seawall.serve.evidence import DamageSaid, damage_said
from seawall.serve.gaps import GapsMet
from seawall.serve.metrics import ServeTold, serve_metrics
from seawall.settings import Settings
from seawall.settings.model import ServeSettings
from tiering.reader.disk_cache import DiskCache
from tiering.reader.errors import GapInRange, ObjectDamaged
from tiering.reader.interface import MIB, ReaderLimits
from tiering.reader.reader import TieredReader
from tiering.segments.findings import Finding
from tiering.segments.kafka import Follower, check_topic, empty_table, topic_ends
from tiering.serve.counters import Counters
from tiering.serve.endpoint import Endpoint, Plan
from tiering.serve.errors import ServeError
from tiering.serve.objects import Coalesced, Recent
from tiering.serve.server import Access, tls_context
from tiering.serve.service import Limits
from tiering.serve.tier import TierTable
from tiering.serve.timing import Timing
from tiering.serve.upstream import Address
from tiering.store.retry import RetryPolicy

CLIENT_ID = "seawall-serve"
CAUGHT_UP_S = 600.0
WATCH_S = 1.0
# A client waits for seconds, not minutes; it comes again by itself.
PATIENCE = RetryPolicy(attempts_max=4, attempt_s=10.0, overall_s=25.0, pause_max_s=3.0)
READING = ReaderLimits(chunk_bytes=MIB, ahead_chunks=6, fetchers=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the process gets from outside, beside its settings."""

    log: Any  # a structlog logger
    on_listening: Callable[[str, str], None] = lambda *_: None  # clients, and probes


def run(settings: Settings, world: World) -> None:
    """Until SIGTERM or SIGINT."""
    told = settings.serve
    access = access_of(told)
    config = connections.kafka_config(settings, client_id=CLIENT_ID)
    parts = _Parts(
        objects=Coalesced(connections.segment_store(settings, policy=PATIENCE)),
        disk=None
        if told.cache_dir is None
        else DiskCache(Path(told.cache_dir), limit_bytes=told.cache_bytes),
        log=world.log,
    )
    with ExitStack() as stack:
        topic = check_topic(config)
        table = empty_table(topic, topic_ends(config, topic))
        tier = TierTable(table, topic.identity.cluster_id, on_finding=parts.on_finding)
        follower = stack.enter_context(Follower(config, topic, tier.applied, positions={}))
        if not follower.wait_caught_up(CAUGHT_UP_S):
            raise ServeError(why=f"the metadata topic was not read to its end in {CAUGHT_UP_S:g} s")
        parts.gaps.append(GapsMet(tier, world.log))
        parts.damage.append(stack.enter_context(closing(damage_said(settings, tier, os.environ, world.log))))
        recent = Recent(parts.disk, limit_bytes=told.memory_bytes)
        reader = stack.enter_context(TieredReader(parts.objects, cache=recent, limits=READING))
        process = _Process(parts, tier, follower, reader, recent, world)
        gc.collect()
        gc.freeze()  # table and modules stay: to look through them again and again cost more than answers
        asyncio.run(process.serve(plan_of(told, config, access), told.metrics_listen))
        if follower.failure is not None:
            raise follower.failure


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What there is before the cluster is asked."""

    objects: Coalesced
    disk: DiskCache | None
    log: Any
    damage: list[DamageSaid] = field(default_factory=list)  # none before there is a table
    gaps: list[GapsMet] = field(default_factory=list)  # the same

    def on_finding(self, partition: int, finding: Finding) -> None:
        self.log.warning("metadata_not_followed", partition=partition, why=finding.detail)

    def on_trouble(self, what: str, error: Exception) -> None:
        if what == "defect":
            self.log.error("defect", exc_info=error)
        elif what == "damaged":
            self.log.error("object_damaged", why=str(error))
            for said in self.damage:
                assert isinstance(error, ObjectDamaged)
                said.tell(error)
        elif what == "gap":
            for met in self.gaps:
                assert isinstance(error, GapInRange)
                met.tell(error)
        else:
            self.log.warning("store_trouble", what=what, why=str(error))


class _Process:
    """The endpoint as it runs, and what is told of it."""

    def __init__(
        self,
        parts: _Parts,
        tier: TierTable,
        follower: Follower,
        reader: TieredReader,
        recent: Recent,
        world: World,
    ) -> None:
        self._parts, self._tier, self._follower = parts, tier, follower
        self._reader, self._recent = reader, recent
        self._world = world
        self._counters, self._timing = Counters(), Timing()
        self._health = Health(now_ms=lambda: time.time_ns() // 1_000_000)
        self._health.doubt("clients", "it is starting")

    async def serve(self, plan: Plan, metrics_listen: str) -> None:
        endpoint = Endpoint(
            plan,
            self._tier,
            self._reader,
            counters=self._counters,
            timing=self._timing,
            on_trouble=self._parts.on_trouble,
        )
        registry = CollectorRegistry()
        registry.register(Collected(collected=lambda: serve_metrics(self._told(endpoint))))
        stop = asyncio.Event()
        with closing(HttpEndpoint(metrics_listen, health=self._health, registry=registry)) as http:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self._stopping, stop)
            watching = asyncio.create_task(self._watch(stop))
            try:
                await endpoint.run(stop, lambda: self._listening(endpoint, http))
            finally:
                watching.cancel()
        self._world.log.info("serve_ended")

    def _listening(self, endpoint: Endpoint, http: HttpEndpoint) -> None:
        self._health.doubt("clients", "")
        addresses = ",".join(map(str, endpoint.nodes))
        self._world.log.info("serve_listening", clients=addresses, metrics=http.address)
        self._world.on_listening(addresses, http.address)

    def _stopping(self, stop: asyncio.Event) -> None:
        self._health.doubt("clients", "it is stopping")
        self._world.log.info("serve_draining")
        stop.set()

    async def _watch(self, stop: asyncio.Event) -> None:
        """An endpoint whose table is not followed any more would serve what was: it ends instead."""
        while self._follower.failure is None:
            self._health.beat("loop")
            self._health.doubt("metadata", self._follower.trouble or "")
            await asyncio.sleep(WATCH_S)
        stop.set()

    def _told(self, endpoint: Endpoint) -> ServeTold:
        disk, counts = self._parts.disk, self._counters.all()
        return ServeTold(
            counts={**counts, "forgotten": counts["forgotten"] + self._tier.forgotten},
            timing=self._timing,
            clients=endpoint.server.client_count,
            answers_bytes=endpoint.service.budget.used_bytes,
            requests_bytes=endpoint.service.requests.used_bytes,
            cache_hits={"memory": self._recent.hits, "disk": disk.counters.hits if disk else 0},
            cache_misses=self._recent.misses,
            cache_corrupt=disk.counters.corrupt if disk else 0,
            store_requests=self._reader.counters.requests,
            store_bytes=self._reader.counters.bytes_read,
            store_joined=self._parts.objects.joined,
            metadata_lag_offsets=sum((self._follower.lag() or {}).values()),
        )


def access_of(told: ServeSettings) -> Access:
    if told.tls_client_ca is not None and told.tls_cert is None:
        raise ServeError(why="serve.tls_client_ca wants serve.tls_cert and serve.tls_key beside it")
    tls = None
    if told.tls_cert is not None:
        if told.tls_key is None:
            raise ServeError(why="serve.tls_cert wants serve.tls_key beside it")
        tls = tls_context(told.tls_cert, told.tls_key, told.tls_client_ca)
    return Access(tls=tls, asks_certificates=told.tls_client_ca is not None, sasl=told.sasl)


def plan_of(told: ServeSettings, config: Mapping[str, str], access: Access) -> Plan:
    return Plan(
        settings=config,
        listen=address_of(told.listen),
        nodes=told.nodes,
        advertised=address_of(told.advertise) if told.advertise is not None else None,
        access=access,
        limits=Limits(
            connections_max=told.connections_max,
            connections_per_host_max=told.connections_per_host_max or told.connections_max,
            answers_bytes_max=told.answers_bytes,
        ),
        skip_gaps=told.skip_gaps,
        drain_s=float(told.drain_s),
    )


def address_of(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))
