"""The observers of an agent, each as it is hung in: which there are, what each needs, how often it looks.

    posts        the list of them: to hang in another observer is one function and one name here

Owns the joining of observers with what they observe. Invariant: none of them writes to what it looks at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audit_engine.observers.broker import holder
from audit_engine.observers.broker.observer import Observer as BrokerObserver
from audit_engine.observers.configs.observer import Observer as ConfigsObserver
from audit_engine.observers.disk.observer import Observer
from audit_engine.observers.kip405.kafka import KafkaMetadataSource
from audit_engine.observers.kip405.observer import Observer as Kip405Observer
from audit_engine.observers.kraft.observer import KraftObserver
from audit_engine.observers.kraft.polled import PolledObserver
from audit_engine.observers.kraft.sight import Scope
from audit_engine.observers.policy.observer import Observer as PolicyObserver
from rules.events import Source
from rules.policy.timeline import Applied
from seawall.agent.health import Health
from seawall.agent.hosted import HostedTopics
from seawall.agent.kafka_tier import KafkaTier
from seawall.agent.remote_storage import RemoteStorage
from seawall.agent.sink import LoggedSink
from seawall.agent.sparing import Sparing
from seawall.agent.world import Clockwork
from seawall.policy.change_log import in_force
from seawall.policy.change_log.kafka import KafkaChangeLog
from seawall.settings.model import AgentSettings
from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.log_dirs import Surveyor, metadata_log_in
from tiering.cluster.quorum.client import QuorumClient
from tiering.cluster.topics import EveryTopic

CONFIGS_EVERY_S = 300.0  # dynamic changes are in the metadata log; a static one takes a restart
POLICY_EVERY_S = 15.0
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
    every = (log_dirs, broker, metadata, configs, policy, kafka_tier)
    return tuple(post(ground) for post in every)


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


def policy(ground: Ground) -> Post:
    """What was declared to Seawall, which is what brokers' doings are held against."""
    opened: list[KafkaChangeLog] = []

    def changes() -> Sequence[Applied]:
        if not opened:
            identity = ground.cluster.identity()
            opened.append(
                KafkaChangeLog(
                    {**ground.config},
                    cluster=ground.cluster,
                    cluster_id=identity.cluster_id,
                    broker_count=len(identity.broker_ids),
                )
            )
        timeline = opened[0].read()
        in_force(timeline)  # raises where the last change cannot be read
        return timeline.applied

    observer = PolicyObserver(
        changes=changes,
        cluster_id=ground.broker.cluster_id,
        sink=ground.sink,
        now_ms=ground.clockwork.now_ms,
        new_id=ground.clockwork.new_id,
        folder=ground.folder,
    )
    asked = Sparing(observer.run_once, every_s=POLICY_EVERY_S, now_ms=ground.clockwork.now_ms)
    return Post(
        name="policy",
        source=Source.SEAWALL,
        run_once=asked.run_once,
        every_s=ground.settings.observe_every_s,
        seen=lambda: {"changes": observer.change_count},
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
