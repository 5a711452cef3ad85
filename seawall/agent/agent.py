"""The agent itself: makes its parts from the settings, runs the loops, and ends them.

    upload           a change in a log dir, or the rescan, begins a pass over all logs
    follower         applies the metadata topic to the table, and says what the table holds then
    warning          says when local retention comes nearer than the upload
    expiry, trim     remove what the policy wants removed, after looking again
    snapshot         keeps the table on disk
    observe_…        look at the broker, and say what they see (`observing`)
    heartbeat        says how far the events are counted
    evidence         publishes events, hears other agents
    http             answers probes

A stop (SIGTERM, SIGINT) lets the steps that are being taken come to their end, for STOP_GRACE_S at most:
what is cut off then is what a kill -9 would cut off, and the next agent finds it.

With `agent.observe_only` there is no table, no bucket and no loop but those of the evidence: `observe_only`.

Owns the order of start and end. Refuses to begin before the table has caught up: until then it copies nothing
and removes nothing (T2, T4, T5 go by the table). It observes from the start.

Invariant: whatever ends a loop ends the process with a word on why, or the loop begins again; never a process
that is alive and does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from threading import Event, Lock
from typing import Any

from prometheus_client import CollectorRegistry

from rules.events import TrimCertified, TrimOutcome
from seawall import connections
from seawall.agent import host
from seawall.agent.discovery import Discovery
from seawall.agent.errors import BucketUnfit
from seawall.agent.health import Health
from seawall.agent.http import HttpEndpoint
from seawall.agent.leadership import SharedLeadership
from seawall.agent.lock import locked
from seawall.agent.loops import Loop, LoopContext, turn
from seawall.agent.metrics import AgentMetrics, Tally
from seawall.agent.observe_only import ObserveOnly
from seawall.agent.observing import Observing
from seawall.agent.policy import PolicyWatch
from seawall.agent.posts import Ground, posts
from seawall.agent.publishing import Publishing, open_spool
from seawall.agent.rates import Uploaders
from seawall.agent.removing import Removing, Told
from seawall.agent.sink import LoggedSink
from seawall.agent.snapshots import Snapshots
from seawall.agent.table import open_table
from seawall.agent.told import told_before
from seawall.agent.watching import Watching
from seawall.agent.world import CLIENT_ID, CLOCKWORK, World, open_cluster
from seawall.settings import Settings
from tiering.cluster.file_events import Look
from tiering.cluster.host import HostSurvey, LocalPartition
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.log_dirs import Surveyor, one_broker, read_identities
from tiering.cluster.topics import TopicFilter
from tiering.errors import StatedError
from tiering.retention.watch import RetentionWatch
from tiering.store.keys import KeyLayout
from tiering.store.patient import PatientStore
from tiering.uploader.aux_source import AuxSource
from tiering.uploader.copy import Lead, Ports
from tiering.uploader.holder import HoldLimits, SegmentHolder
from tiering.uploader.one_log import Cluster, Tools
from tiering.uploader.service import UploadService
from tiering.uploader.status import LogStatus, ServiceLimits

STOP_GRACE_S = 20.0
LOOK_S = 1.0  # so soon a stop is heard
CATCH_UP_STEP_S = 0.5


class Stopped(StatedError):
    """the agent was asked to stop"""


def run(settings: Settings, world: World) -> None:
    """Run until `world.stop` is set. Raises StatedError where it cannot start, or cannot go on."""
    paths = host.log_dirs(settings.agent)
    found, _ = read_identities(paths)
    broker = one_broker(found, paths)
    folder = host.state_folder(settings.agent, broker, world.environ)
    made = ObserveOnly if settings.agent.observe_only else _Agent
    with locked(folder, broker), ExitStack() as stack:
        made(settings, world, broker, paths, folder, stack).run()


class _Agent:
    """One run. Each part is made in `__init__` and put on the stack that ends it."""

    def __init__(
        self,
        settings: Settings,
        world: World,
        broker: BrokerIdentity,
        paths: tuple[Path, ...],
        folder: Path,
        stack: ExitStack,
    ) -> None:
        self.settings, self.world, self.broker, self.folder = settings, world, broker, folder
        self.health, self.tally = Health(now_ms=CLOCKWORK.now_ms), Tally()
        self.cluster = open_cluster(settings, broker)
        self.stack = stack
        self.survey_lock = Lock()  # the loops look at the same log dirs
        self.context = LoopContext(health=self.health, tally=self.tally, log=world.log, stop=world.stop)
        self.cut_off = Event()  # when the grace of a stop is over
        self.health.doubt("table", "the metadata topic was not read yet")
        self.policy = PolicyWatch(
            self._read_policy(),
            named=settings.agent.topics,
            excluded=settings.agent.exclude_topics,
            now_ms=CLOCKWORK.now_ms,
        )
        self.leadership = SharedLeadership(self.cluster, broker_id=broker.broker_id, log_dirs=paths)
        self.surveyor = Surveyor(
            paths, topics=TopicFilter(exclude=settings.agent.exclude_topics), now_ns=time.time_ns
        )
        self.spool = stack.enter_context(open_spool(folder, broker, world.log))
        self.sink = LoggedSink(keeper=self.spool, tally=self.tally, log=world.log)
        self.store = self._open_store()
        self.uploaders = Uploaders(self.store, self.policy.rate_of, sleep=self._sleep, stack=stack)
        self.holder = SegmentHolder(
            HoldLimits(count_max=settings.agent.hold_segments_max, bytes_max=settings.agent.hold_bytes_max)
        )
        self.config = connections.kafka_config(settings, client_id=CLIENT_ID)
        self.publishing = Publishing(
            config=self.config, spool=self.spool, tally=self.tally, clockwork=CLOCKWORK, stack=stack
        )
        table = open_table(
            settings.agent,
            config=self.config,
            folder=folder,
            spool=self.spool,
            sink=self.sink,
            clockwork=CLOCKWORK,
            stack=stack,
        )
        self.topic, self.appender, self.metadata = table.topic, table.appender, table.metadata
        self.evidence, self.follower = table.evidence, table.follower
        ground = Ground(
            broker=broker,
            log_dirs=paths,
            folder=folder,
            config=self.config,
            cluster=self.cluster,
            settings=settings.agent,
            sink=self.sink,
            health=self.health,
            clockwork=CLOCKWORK,
        )
        self.observing = Observing(posts(ground), ground)
        self.publishing.metadata_offset = self.observing.metadata_offset
        self.service = self._service()
        self.discovery = Discovery(
            rescan_s=settings.agent.rescan_s, wait_s=world.stop.wait, log=world.log, stack=stack
        )
        self.watching = Watching(
            RetentionWatch(
                survey=self._survey,
                cluster=self._cluster(),
                metadata=self.metadata,
                is_tiered=self.policy.is_tiered,
                sink=self.sink,
                now_ms=CLOCKWORK.now_ms,
                new_id=CLOCKWORK.new_id,
            )
        )

    def run(self) -> None:
        http = self._serve()
        self.world.log.info(
            "started",
            broker=self.broker.broker_id,
            cluster=self.broker.cluster_id,
            listen=http.address,
            state=str(self.folder),
            bucket=self.store.bucket,
            leadership="metadata log" if self.leadership.metadata_log else "admin API",
        )
        self.world.on_listening(http.address)
        try:
            self.observing.begin(self.context, self.stack)
            self.stack.enter_context(
                Loop(
                    "heartbeat",
                    self.publishing.beat,
                    self.context,
                    every_s=self.settings.agent.heartbeat_every_s,
                )
            )
            self._catch_up()
            self._begin_loops()
            while not self.world.stop.is_set():
                self._turn()
        finally:
            self._end()

    def _begin_loops(self) -> None:
        """What needs a table that is caught up. They end with the stack, after the turns they are in."""
        if self.world.stop.is_set():
            return
        removing = Removing(
            config=self.config,
            broker_id=self.broker.broker_id,
            topic=self.topic,
            metadata=self.metadata,
            appender=self.appender,
            cluster=self._cluster(),
            describer=self.cluster,
            survey=self._survey,
            store=self.store,
            policy=self.policy,
            digests=self.evidence.states,
            sink=self.sink,
            now_ms=CLOCKWORK.now_ms,
            new_id=CLOCKWORK.new_id,
            sleep=self._sleep,
        )
        agent = self.settings.agent
        trims = self.spool.kept({TrimCertified.kind, TrimOutcome.kind})

        def told(name: str, run_once: Callable[[], Any]) -> Callable[[], None]:
            def is_full() -> bool:
                return self.spool.is_full

            said = Told(
                name,
                run_once,
                log=self.world.log,
                evidence_is_full=is_full,
                kept_for=self.tally.kept_for,
            )
            return said.run_once

        snapshots = Snapshots(
            self.folder, config=self.config, topic=self.topic, metadata=self.metadata, now_ms=CLOCKWORK.now_ms
        )
        for name, act, every_s in (
            ("expiry", told("expiry", removing.remote().run_once), agent.remove_every_s),
            ("trim", told("trim", removing.local(trims).run_once), agent.remove_every_s),
            ("snapshot", snapshots.save, agent.snapshot_every_s),
            ("warning", self.watching.run_once, agent.watch_every_s),
        ):
            self.stack.enter_context(Loop(name, act, self.context, every_s=every_s))

    def _turn(self) -> None:
        """Wait for a reason to look, and begin a pass."""
        self.health.beat("upload")
        if self.follower.failure is not None:
            raise self.follower.failure
        self.health.doubt("metadata topic", self.follower.trouble or "")
        troubles = (self.publishing.trouble(), self.evidence.trouble())
        self.health.doubt("evidence", "; ".join(each for each in troubles if each))
        if self.discovery.wait(LOOK_S) is Look.NOT_YET and not self._has_due():
            return
        self.policy.refresh()
        self.health.doubt("policy", "" if self.policy.is_known else self.policy.trouble)
        turn("pass", self.service.start_pass, self.context)

    def _has_due(self) -> bool:
        """Whether a log's back-off is over; one that waits for others is looked at with the next rescan."""
        now = CLOCKWORK.now_ms()
        return any(
            each.state == "failed" and each.next_try_ms <= now for each in self.service.statuses().values()
        )

    def _survey(self) -> HostSurvey:
        with self.survey_lock:
            found = self.surveyor.survey()
            self.leadership.surveyed(found)
            self.discovery.surveyed(found)
        self.health.doubt("log dirs", "; ".join(f"{each.path}: {each.reason}" for each in found.offline))
        return found

    def _catch_up(self) -> None:
        while not self.world.stop.is_set():
            self.health.beat("catch up")
            if self.follower.wait_caught_up(CATCH_UP_STEP_S):
                break
            behind = sum((self.follower.lag() or {}).values())
            self.health.doubt("table", f"{behind} records behind the metadata topic's end")
        self.health.doubt("table", "")
        self.health.ended("catch up")
        self.world.log.info("caught_up", positions=sum(self.follower.positions().values()))

    def _end(self) -> None:
        self.world.log.info("stopping")
        self.world.stop.set()
        if not self.service.wait_idle(STOP_GRACE_S):
            self.world.log.warning("cut_off", why=f"steps were still being taken after {STOP_GRACE_S:g} s")
        self.cut_off.set()
        self.service.close()
        self.world.log.info("stopped")

    def _read_policy(self) -> Callable[[], Any]:
        from seawall.policy.change_log import in_force
        from seawall.policy.kafka import open_cluster

        opened = open_cluster(self.settings)

        def read() -> Any:
            applied = in_force(opened.changes.read())
            return None if applied is None else applied.policy

        return read

    def _open_store(self) -> PatientStore:
        store = connections.segment_store(
            self.settings,
            bytes_per_s=self.settings.agent.upload_bytes_per_s,
            sleep=self._sleep,
            on_retry=self.tally.retried,
        )
        if not store.keeps_versions():
            raise BucketUnfit(bucket=store.bucket)
        return store

    def _sleep(self, seconds: float) -> None:
        """Wait, unless the grace of a stop is over."""
        if self.cut_off.wait(seconds):
            raise Stopped

    def _cluster(self) -> Cluster:
        return Cluster(leadership=self.leadership, offsets=self.cluster, settings=self.cluster)

    def _service(self) -> UploadService:
        keys = connections.key_layout(self.settings)
        return UploadService(
            survey=self._survey,
            tools=Tools(
                cluster=self._cluster(),
                metadata=self.metadata,
                holder=self.holder,
                ports=lambda lead, local: self._ports(lead, local, keys),
                sink=self.sink,
                now_ms=CLOCKWORK.now_ms,
                new_id=CLOCKWORK.new_id,
                stopping=self.world.stop.is_set,
                was_told=told_before(self.spool, CLOCKWORK.now_ms),
            ),
            is_tiered=self.policy.is_tiered,
            limits=ServiceLimits(workers=self.settings.agent.workers),
            on_error=self._on_error,
        )

    def _ports(self, lead: Lead, local: LocalPartition, keys: KeyLayout) -> Ports:
        return Ports(
            tier=self.metadata,
            lead=lead,
            objects=self.uploaders.of(local.partition.topic),
            keys=keys,
            aux=AuxSource(directory=local.path, epochs=local.epochs).gather,
            sink=self.sink,
            now_ms=CLOCKWORK.now_ms,
            new_id=CLOCKWORK.new_id,
        )

    def _on_error(self, status: LogStatus, error: Exception) -> None:
        self.tally.error(type(error).__name__)
        is_stated = isinstance(error, StatedError)
        self.world.log.warning(
            "log_failed",
            log=f"{status.topic}-{status.log.partition}",
            error=type(error).__name__,
            why=str(error) if is_stated else repr(error),
            **({} if is_stated else {"exc_info": error}),
        )

    def _serve(self) -> HttpEndpoint:
        registry = CollectorRegistry()
        registry.register(
            AgentMetrics(
                statuses=self.service.statuses,
                held=self.holder.totals,
                metadata_lag=self.follower.lag,
                doubts=self.health.doubts,
                tally=self.tally,
                now_ms=CLOCKWORK.now_ms,
                more=lambda: chain(
                    self.publishing.metrics(), self.observing.metrics(), self.watching.metrics()
                ),
            )
        )
        http = HttpEndpoint(self.settings.agent.listen, health=self.health, registry=registry)
        self.stack.callback(http.close)
        return http
