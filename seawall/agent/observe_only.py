"""An agent that only looks: evidence of a cluster that Seawall does not tier, or that tiers by itself.

    observe_…     look at the broker, and say what they see
    heartbeat     says how far the events are counted
    http          answers probes

It needs no bucket and has no table. What observes is the same as beside an uploader.

Owns the order of start and end. Refuses to claim, to copy, to trim and to expire: none of that is here.

Invariant: it writes to its own folder and to `__seawall_audit`, and to nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from seawall import connections
from seawall.agent.health import Health
from seawall.agent.http import HttpEndpoint
from seawall.agent.loops import Loop, LoopContext
from seawall.agent.metrics import Tally, of_process
from seawall.agent.observing import Observing
from seawall.agent.posts import Ground, posts
from seawall.agent.publishing import Publishing, open_spool
from seawall.agent.sink import LoggedSink
from seawall.agent.world import CLIENT_ID, CLOCKWORK, World, open_cluster
from seawall.metrics.collected import Collected
from seawall.settings import Settings
from tiering.cluster.interface import BrokerIdentity

LOOK_S = 1.0  # so soon trouble on the way to Kafka is a doubt


class ObserveOnly:
    """One run. Each part is put on the stack that ends it, in the turned order of their making."""

    def __init__(
        self,
        settings: Settings,
        world: World,
        broker: BrokerIdentity,
        paths: tuple[Path, ...],
        folder: Path,
        stack: ExitStack,
    ) -> None:
        self.settings, self.world, self.broker, self.folder, self.stack = (
            settings,
            world,
            broker,
            folder,
            stack,
        )
        self.health, self.tally = Health(now_ms=CLOCKWORK.now_ms), Tally()
        self.context = LoopContext(health=self.health, tally=self.tally, log=world.log, stop=world.stop)
        cluster = open_cluster(settings, broker)
        config = connections.kafka_config(settings, client_id=CLIENT_ID)
        spool = stack.enter_context(open_spool(folder, broker, world.log))
        self.publishing = Publishing(
            config=config, spool=spool, tally=self.tally, clockwork=CLOCKWORK, stack=stack
        )
        ground = Ground(
            broker=broker,
            log_dirs=paths,
            folder=folder,
            config=config,
            cluster=cluster,
            settings=settings.agent,
            sink=LoggedSink(keeper=spool, tally=self.tally, log=world.log),
            health=self.health,
            clockwork=CLOCKWORK,
        )
        self.observing = Observing(posts(ground), ground)
        self.publishing.metadata_offset = self.observing.metadata_offset

    def run(self) -> None:
        registry = CollectorRegistry()
        registry.register(Collected(collected=self._metrics))
        http = HttpEndpoint(self.settings.agent.listen, health=self.health, registry=registry)
        self.stack.callback(http.close)
        self.world.log.info(
            "started",
            broker=self.broker.broker_id,
            cluster=self.broker.cluster_id,
            listen=http.address,
            state=str(self.folder),
            does="observe only",
        )
        self.world.on_listening(http.address)
        self.observing.begin(self.context, self.stack)
        every_s = self.settings.agent.heartbeat_every_s
        self.stack.enter_context(Loop("heartbeat", self.publishing.beat, self.context, every_s=every_s))
        while not self.world.stop.wait(LOOK_S):
            self.health.doubt("evidence", self.publishing.trouble())
        self.world.log.info("stopping")

    def _metrics(self) -> Iterator[Metric]:
        yield from of_process(self.health.doubts(), self.tally)
        yield from self.publishing.metrics()
        yield from self.observing.metrics()
