"""The observers of an agent: which there are, how often each looks, and what is said of one that cannot.

    posts        the list of them: to hang in another observer is one function and one line here
    Observing    runs each in a loop of its own, with a doubt, metrics, and evidence of its blindness

An observer reads and emits; its look is `run_once`, which raises where it could not look. Then its loop logs
it and the agent is not ready, by the observer's name; and an `evidence_gap` is said when it begins to fail,
and another, over the whole of it, when it looks again. Between them it is not repeated.

Owns the loops. Refuses to know what is observed.

Invariant: an observer that does not look is told by the log, by a doubt, by a metric that stands still, and
by evidence; never by silence alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from audit_engine.observers.broker import holder
from audit_engine.observers.broker.observer import Observer as BrokerObserver
from audit_engine.observers.configs.observer import Observer as ConfigsObserver
from audit_engine.observers.disk.observer import Observer
from audit_engine.observers.kip405.kafka import KafkaMetadataSource
from audit_engine.observers.kip405.observer import Observer as Kip405Observer
from audit_engine.observers.kraft.observer import KraftObserver
from audit_engine.observers.kraft.polled import PolledObserver
from audit_engine.observers.kraft.sight import Scope
from rules.events import EvidenceGap, Source
from seawall.agent.health import Health
from seawall.agent.hosted import HostedTopics
from seawall.agent.kafka_tier import KafkaTier
from seawall.agent.loops import Loop, LoopContext
from seawall.agent.remote_storage import RemoteStorage
from seawall.agent.sink import LoggedSink
from seawall.agent.sparing import Sparing
from seawall.agent.world import Clockwork
from seawall.settings.model import AgentSettings
from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.log_dirs import Surveyor, metadata_log_in
from tiering.cluster.quorum.client import QuorumClient
from tiering.cluster.topics import EveryTopic
from tiering.errors import StatedError

JITTER = 0.2  # of a pause
CONFIGS_EVERY_S = 300.0  # dynamic changes are in the metadata log; a static one takes a restart
POLLED_EVERY_S = 60.0  # where there is none; every topic is asked for


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """An observer as it is hung into the agent.

    `name` is its thread's, its doubt's and its metrics'. `source` is what nobody sees while it fails.
    `seen` says how much the last look saw, by what: {"replicas": 2000}. `metadata_offset` is how far it has
    read `__cluster_metadata`, for heartbeats; None if it does not. `close` is called after its last look.
    """

    name: str
    source: Source
    run_once: Callable[[], object]
    every_s: float
    seen: Callable[[], Mapping[str, int]] = dict
    metadata_offset: Callable[[], int | None] = _nothing
    close: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What observers stand on. `folder` is the agent's own; `config` librdkafka's, secrets and all."""

    broker: BrokerIdentity
    log_dirs: tuple[Path, ...]
    folder: Path
    config: Mapping[str, str]
    cluster: KafkaCluster
    settings: AgentSettings
    sink: LoggedSink
    health: Health
    clockwork: Clockwork


def posts(ground: Ground) -> tuple[Post, ...]:
    """All observers of an agent."""
    return (log_dirs(ground), broker(ground), metadata(ground), configs(ground), kafka_tier(ground))


def log_dirs(ground: Ground) -> Post:
    """The files of every topic, internal ones too: what may be copied is no matter here."""
    clockwork = ground.clockwork
    surveyor = Surveyor(ground.log_dirs, topics=EveryTopic(), now_ns=time.time_ns)
    storage = RemoteStorage(ground.cluster, broker_id=ground.broker.broker_id, now_ms=clockwork.now_ms)

    def survey() -> HostSurvey:
        found = surveyor.survey()
        storage.surveyed(found)
        offline = "; ".join(f"{each.path}: {each.reason}" for each in found.offline)
        ground.health.doubt("log dirs", offline)
        ground.health.doubt("remote storage", storage.trouble)
        return found

    observer = Observer(
        survey=survey,
        sink=ground.sink,
        now_ms=clockwork.now_ms,
        new_id=clockwork.new_id,
        folder=ground.folder,
        has_remote=storage.of,
    )
    return Post(
        name="log_dirs",
        source=Source.LOG_DIR,
        run_once=observer.run_once,
        every_s=ground.settings.observe_every_s,
        seen=lambda: {"replicas": observer.replica_count, "unreadable": observer.unread_count},
        close=observer.close,
    )


def broker(ground: Ground) -> Post:
    """Whether the broker itself runs, and that it started again."""
    observer = BrokerObserver(
        look=lambda: holder.look(ground.log_dirs),
        broker=ground.broker,
        sink=ground.sink,
        now_ms=ground.clockwork.now_ms,
        new_id=ground.clockwork.new_id,
        folder=ground.folder,
    )
    return Post(
        name="broker",
        source=Source.LOG_DIR,
        run_once=observer.run_once,
        every_s=ground.settings.observe_every_s,
        seen=lambda: {"running": int(observer.is_running)},
        close=observer.close,
    )


def metadata(ground: Ground) -> Post:
    """What the cluster's metadata says: its log on this host, or the admin API where the host has none.

    Every host has the same log. Of partitions an agent tells those that its broker has a replica of, so that
    a change is said as often as it is replicated, under one id; topics and settings are told by all.
    """
    directory = metadata_log_in(ground.log_dirs)
    return polled_metadata(ground) if directory is None else metadata_log(ground, directory)


def metadata_log(ground: Ground, directory: Path) -> Post:
    quorum = QuorumClient(ground.config)
    observer = KraftObserver(
        directory=directory,
        quorum=quorum,
        sink=ground.sink,
        cluster_id=ground.broker.cluster_id,
        now_ms=ground.clockwork.now_ms,
        new_id=ground.clockwork.new_id,
        folder=ground.folder,
        scope=Scope(hosted_by=ground.broker.broker_id),
    )

    def run_once() -> None:
        observer.run_once()
        ground.health.doubt("metadata log", observer.trouble)

    def close() -> None:
        observer.close()
        quorum.close()

    return Post(
        name="metadata",
        source=Source.KRAFT,
        run_once=run_once,
        every_s=ground.settings.observe_every_s,
        seen=lambda: {"partitions": observer.partition_count},
        metadata_offset=lambda: observer.metadata_offset,
        close=close,
    )


def polled_metadata(ground: Ground) -> Post:
    observer = PolledObserver(
        source=ground.cluster,
        sink=ground.sink,
        cluster_id=ground.broker.cluster_id,
        broker_id=ground.broker.broker_id,
        now_ms=ground.clockwork.now_ms,
        new_id=ground.clockwork.new_id,
        folder=ground.folder,
        scope=Scope(hosted_by=ground.broker.broker_id),
    )
    return Post(
        name="metadata",
        source=Source.ADMIN,
        run_once=observer.run_once,
        every_s=POLLED_EVERY_S,
        seen=lambda: {"partitions": observer.partition_count},
        close=observer.close,
    )


def configs(ground: Ground) -> Post:
    """What this broker goes by, itself and for each topic that this host has a replica of."""
    hosted = HostedTopics(ground.log_dirs)
    observer = ConfigsObserver(
        source=ground.cluster,
        topics=hosted.names,
        cluster_id=ground.broker.cluster_id,
        sink=ground.sink,
        now_ms=ground.clockwork.now_ms,
        new_id=ground.clockwork.new_id,
        folder=ground.folder,
        brokers=frozenset({ground.broker.broker_id}),
    )
    asked = Sparing(observer.run_once, every_s=CONFIGS_EVERY_S, now_ms=ground.clockwork.now_ms)
    return Post(
        name="configs",
        source=Source.ADMIN,
        run_once=asked.run_once,
        every_s=ground.settings.observe_every_s,
        seen=lambda: {"settings": observer.setting_count},
        close=observer.close,
    )


def kafka_tier(ground: Ground) -> Post:
    """Kafka's own tier, where this broker has it on: the partitions of its topic that are on this broker."""
    broker_id = ground.broker.broker_id
    observer = Kip405Observer(
        source=KafkaMetadataSource(ground.config, ground.cluster),
        cluster_id=ground.broker.cluster_id,
        sink=ground.sink,
        now_ms=ground.clockwork.now_ms,
        new_id=ground.clockwork.new_id,
        folder=ground.folder,
        is_read=lambda brokers: broker_id in brokers,
    )
    tier = KafkaTier(observer, ground.cluster, broker_id=broker_id, now_ms=ground.clockwork.now_ms)
    return Post(
        name="kafka_tier",
        source=Source.REMOTE_LOG_METADATA,
        run_once=tier.run_once,
        every_s=ground.settings.observe_every_s,
        seen=lambda: {"copies": observer.copy_count},
        close=tier.close,
    )


class Observing:
    """Runs the posts from `begin` until the stack ends them, each after the look it is in."""

    def __init__(self, hung: Sequence[Post], ground: Ground) -> None:
        self._manned = [_Manned(each, ground) for each in hung]
        self._ground = ground
        for each in self._manned:
            ground.health.doubt(each.loop_name, "it has not looked yet")

    def begin(self, context: LoopContext, stack: ExitStack) -> None:
        for each in self._manned:
            stack.callback(each.post.close)
            stack.enter_context(
                Loop(
                    each.loop_name,
                    each.run_once,
                    context,
                    every_s=each.post.every_s,
                    first_s=0,
                    jitter=JITTER,
                )
            )

    def metadata_offset(self) -> int | None:
        """How far `__cluster_metadata` was read, by whoever reads it."""
        found = [each.post.metadata_offset() for each in self._manned]
        return next((each for each in found if each is not None), None)

    def metrics(self) -> Iterator[Metric]:
        """When each looked last, how long that took, how much it saw, and how often it could not."""
        last = _gauge("last_look_timestamp_seconds", "When it last looked and could; 0: not yet.")
        took = _gauge("look_seconds", "How long that look took.")
        blind = _gauge("blind", "1 while it cannot look.")
        looks = _counter("looks", "Looks that it could take.")
        failures = _counter("failures", "Looks that it could not.")
        seen = _gauge("seen", "How much of what the last look saw.", "what")
        for each in self._manned:
            labels = [each.post.name]
            last.add_metric(labels, (each.last_look_ms or 0) / 1000)
            took.add_metric(labels, each.took_s)
            blind.add_metric(labels, float(each.is_blind))
            looks.add_metric(labels, each.looks)
            failures.add_metric(labels, each.failures)
            for what, count in each.post.seen().items():
                seen.add_metric([*labels, what], count)
        yield from (last, took, blind, looks, failures, seen)


class _Manned:
    """One post, and how its looks went."""

    def __init__(self, post: Post, ground: Ground) -> None:
        self.post = post
        self.loop_name = f"observe_{post.name}"
        self.last_look_ms: int | None = None
        self.took_s = 0.0
        self.looks = self.failures = 0
        self.is_blind = False
        self._why = ""
        self._ground = ground

    def run_once(self) -> None:
        """One look. What it raises is told as evidence, then left to the loop."""
        began_s = time.monotonic()
        try:
            self.post.run_once()
        except Exception as failed:
            self.failures += 1
            self._why = str(failed) if isinstance(failed, StatedError) else repr(failed)
            if not self.is_blind:
                self.is_blind = True
                self._say_gap("observer_failed")
            raise
        if self.is_blind:
            self._say_gap("observer_was_blind")
            self.is_blind = False
        self.looks += 1
        self.took_s = time.monotonic() - began_s
        self.last_look_ms = self._ground.clockwork.now_ms()

    def _say_gap(self, problem: str) -> None:
        clockwork = self._ground.clockwork
        self._ground.sink.emit(
            EvidenceGap(
                event_id=clockwork.new_id(),
                occurred_at_ms=clockwork.now_ms(),
                cluster_id=self._ground.broker.cluster_id,
                topic_id=None,
                topic=None,
                partition=None,
                source=self.post.source,
                problem=problem,
                detail=f"{self.post.name}: {self._why}",
                gap_start=None,
                gap_end=None,
                not_before_ms=self.last_look_ms,
            )
        )


def _gauge(name: str, what: str, *more: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"seawall_observer_{name}", what, labels=["observer", *more])


def _counter(name: str, what: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"seawall_observer_{name}", what, labels=["observer"])
