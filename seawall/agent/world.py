"""What an agent gets from outside: its log, its stop, the clock, and the cluster that its settings name.

Owns the check that log dirs and cluster belong together. Refuses to begin where they do not.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from seawall import connections
from seawall.agent.errors import WrongCluster
from seawall.settings import Settings
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.kafka import KafkaCluster

CLIENT_ID = "seawall-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What an agent gets from outside, beside its settings."""

    environ: Mapping[str, str]
    log: Any  # a structlog logger
    stop: Event  # set when the agent is to end
    on_listening: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clockwork:
    """Time and identity."""

    now_ms: Callable[[], int]
    new_id: Callable[[], str]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


CLOCKWORK = Clockwork(now_ms=now_ms, new_id=new_id)


def open_cluster(settings: Settings, broker: BrokerIdentity) -> KafkaCluster:
    """The cluster of this broker. Raises WrongCluster, ClusterUnreachable."""
    cluster = connections.open_cluster(settings, client_id=CLIENT_ID)
    remote = cluster.identity()
    if remote.cluster_id != broker.cluster_id:
        raise WrongCluster(
            local=broker.cluster_id,
            remote=remote.cluster_id,
            bootstrap=settings.kafka.bootstrap or "",
        )
    return cluster
