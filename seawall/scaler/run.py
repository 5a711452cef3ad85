"""The scaler's process: its clusters, its topic, its desk, and the two addresses that it listens on.

Owns how settings become these, and that the topic is there and has one order for all. Refuses to begin where
it cannot share what it knows: two replicas that differ would scale a group to and fro.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from seawall import connections
from seawall.agent.health import Health
from seawall.agent.http import HttpEndpoint
from seawall.metrics.collected import Collected
from seawall.scaler.errors import ScalerNotInstalled, ScalerNotListening, ScalerTopicUnusable
from seawall.scaler.metrics import collected
from seawall.settings import Settings, load
from seawall.settings.errors import SettingsRefused
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.new_topic.kafka import make_topic
from workers.scaler.chain import Link
from workers.scaler.desk import Around, Desk
from workers.scaler.kafka import KafkaGroups
from workers.scaler.options import DEFAULT_CLUSTER
from workers.scaler.shared.kafka import TOPIC_SETTINGS, KafkaLog
from workers.scaler.values import Move

if TYPE_CHECKING:
    from workers.scaler.serving.tls import Tls

CLIENT_ID = "seawall-scaler"
TOPIC_DEADLINE_S = 30.0
SETTLE_S = 0.1
REPLICAS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the process gets from outside, beside its settings."""

    log: Any  # a structlog logger
    on_listening: Callable[[str, str], None] = lambda *_: None  # gRPC, and metrics


def run(settings: Settings, world: World) -> None:
    """Until SIGTERM or SIGINT."""
    try:
        from workers.scaler.serving.grpc import serve
    except ImportError as missing:
        raise ScalerNotInstalled(missing=missing.name or "grpcio") from missing
    tls = tls_of(settings)
    config = connections.kafka_config(settings, client_id=CLIENT_ID)
    groups = {DEFAULT_CLUSTER: KafkaGroups(config)}
    for name, file in other_clusters(settings).items():
        groups[name] = KafkaGroups(config_of(file))
    ensure_topic(settings)
    shared = KafkaLog(config, topic=settings.scaler.topic)
    by = f"{socket.gethostname()}:{os.getpid()}"
    around = Around(
        groups=groups,
        shared=shared,
        monotonic_s=time.monotonic,
        wall_s=time.time,
        chance=random.random,
        by=by,
    )
    with closing(shared), Desk(around) as desk:
        desk.on_change(Told(by=by, log=world.log))
        health = _Health(desk)
        registry = CollectorRegistry()
        registry.register(Collected(collected=lambda: collected(desk)))
        endpoint = HttpEndpoint(settings.scaler.metrics_listen, health=health, registry=registry)
        try:
            asyncio.run(_served(serve, desk, settings.scaler.listen, tls, world, endpoint))
        except OSError as refused:
            raise ScalerNotListening(address=settings.scaler.listen, why=str(refused)) from refused
        finally:
            endpoint.close()


async def _served(
    serve: Any, desk: Desk, listen: str, tls: Tls | None, world: World, endpoint: HttpEndpoint
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def listening(address: str) -> None:
        world.log.info("scaler_listening", address=address, metrics=endpoint.address, tls=tls is not None)
        world.on_listening(address, endpoint.address)

    await serve(desk, listen, tls=tls, stop=stop, on_listening=listening)


class _Health(Health):
    """Ready is who has read what is known; before, every call is answered with UNAVAILABLE."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(now_ms=lambda: time.time_ns() // 1_000_000)
        self._desk = desk

    def doubts(self) -> dict[str, str]:
        return {} if self._desk.is_ready else {"log": "what was known before is being read"}


class Told:
    """One line in the log for each decision and each new alert, by the replica that wrote the link."""

    def __init__(self, *, by: str, log: Any) -> None:
        self._by = by
        self._log = log
        self._alerts: dict[str, frozenset[str]] = {}

    def __call__(self, link: Link) -> None:
        if link.by != self._by:
            return
        name = link.object_key.rpartition("/")[0]
        word = link.word
        if word.move is not Move.HOLD:
            self._log.info(
                "scaler_moved",
                object=name,
                move=word.move.value,
                replicas=word.replicas,
                lag_records=word.lag_records,
                why=word.reasons[-1].text,
            )
        # An alert's words have numbers that change: what it is about is before the colon.
        subjects = {alert.partition(":")[0]: alert for alert in word.alerts}
        for subject in sorted(subjects.keys() - self._alerts.get(name, frozenset())):
            self._log.warning("scaler_alert", object=name, alert=subjects[subject])
        self._alerts[name] = frozenset(subjects)


def tls_of(settings: Settings) -> Tls | None:
    """The certificates that are set. Raises SettingsRefused where only a part of them is."""
    from workers.scaler.serving.tls import Tls

    told = settings.scaler
    if told.tls_cert is None and told.tls_key is None and told.tls_client_ca is None:
        return None
    if told.tls_cert is None or told.tls_key is None:
        problem = "`scaler.tls_cert` and `scaler.tls_key` go together, and scaler.tls_client_ca needs both"
        raise SettingsRefused.for_problems((problem,))
    ca = None if told.tls_client_ca is None else Path(told.tls_client_ca)
    return Tls(cert=Path(told.tls_cert), key=Path(told.tls_key), client_ca=ca)


def other_clusters(settings: Settings) -> Mapping[str, Path]:
    """By their names. Raises SettingsRefused."""
    found: dict[str, Path] = {}
    for each in settings.scaler.clusters:
        name, equals, file = each.partition("=")
        if not (name and equals and file) or name == DEFAULT_CLUSTER or name in found:
            problem = (
                f"`scaler.clusters`: {each!r} must be NAME=FILE, each name once, none {DEFAULT_CLUSTER!r}"
            )
            raise SettingsRefused.for_problems((problem,))
        found[name] = Path(file)
    return found


def config_of(file: Path) -> dict[str, str]:
    """Another cluster's, from its file alone: the environment is about the scaler's own, and a variable that
    beat the file would have every name stand for that one."""
    return connections.kafka_config(load(file=file, environ={}).settings, client_id=CLIENT_ID)


def ensure_topic(settings: Settings) -> None:
    """The shared topic, made if there is none. Raises ScalerTopicUnusable, or a ClusterError."""
    topic = settings.scaler.topic
    cluster = connections.open_cluster(settings, client_id=CLIENT_ID)
    last_moment = time.monotonic() + TOPIC_DEADLINE_S
    is_made = False
    while True:
        found = cluster.describe_topics([topic])[topic]
        if not isinstance(found, Unknown):
            break
        if found.cause is Cause.NO_SUCH_TOPIC and not is_made:
            copies = settings.scaler.topic_replicas or min(REPLICAS, len(cluster.identity().broker_ids))
            refusal = make_topic(
                connections.kafka_config(settings, client_id=CLIENT_ID),
                topic,
                partitions=1,
                replication=copies,
                settings=TOPIC_SETTINGS,
                deadline_s=TOPIC_DEADLINE_S,
            )
            if refusal is not None:
                raise ScalerTopicUnusable(topic=topic, what="made", why=refusal)
            is_made = True
        elif time.monotonic() >= last_moment:
            raise ScalerTopicUnusable(topic=topic, what="described", why=found.reason)
        time.sleep(SETTLE_S)
    if len(found.partitions) != 1:
        why = f"it has {len(found.partitions)} partitions, and one order needs one"
        raise ScalerTopicUnusable(topic=topic, what="used", why=why)
