"""Every observer beside a cluster, each with its own memory, and all that they said."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

from audit_engine.observers.configs import observer as configs
from audit_engine.observers.disk import observer as disk
from audit_engine.observers.kip405 import observer as kip405
from audit_engine.observers.kip405.kafka import KafkaMetadataSource
from audit_engine.observers.kraft.observer import KraftObserver
from audit_engine.observers.kraft.sight import Scope
from rules.events import Event, LogEvent
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.quorum.client import QuorumClient
from tiering.cluster.topics import TopicFilter
from tiering.log.directory import KRAFT_METADATA_TOPIC

DEADLINE_S = 60.0
ANSWER_S = 1.0  # a dead broker does not answer, however long it is asked

E = TypeVar("E", bound=Event)


class Observer(Protocol):
    def run_once(self) -> int: ...

    def close(self) -> None: ...


class Watch:
    """The observers of `topic` on `cluster`: one of each broker's disk, and one of each other source.

    `configs` asks brokers, dead ones too, and is looked through when the day says so; the others always.
    """

    def __init__(self, cluster: LocalCluster, topic: str, folder: Path) -> None:
        self.topic = topic
        self.said: list[Event] = []
        self._ids = count()
        config = {"bootstrap.servers": cluster.bootstrap}
        client = KafkaCluster(config, monotonic_s=time.monotonic, answer_timeout_s=ANSWER_S)
        self.configs = configs.Observer(
            source=client,
            topics=lambda: [topic],
            cluster_id=cluster.cluster_id,
            sink=self,
            now_ms=_now_ms,
            new_id=self._new_id,
            folder=_made(folder / "configs"),
        )
        self._always: list[Observer] = [
            self._disk(cluster, node_id, _made(folder / f"disk-{node_id}")) for node_id in cluster.nodes
        ]
        self._always.append(
            KraftObserver(
                directory=cluster.log_dirs(1)[0] / f"{KRAFT_METADATA_TOPIC}-0",
                quorum=QuorumClient(config),
                sink=self,
                cluster_id=cluster.cluster_id,
                now_ms=_now_ms,
                new_id=self._new_id,
                folder=_made(folder / "kraft"),
                scope=Scope(takes=lambda name: name == topic),
            )
        )
        if cluster.kip405:
            self._always.append(
                kip405.Observer(
                    source=KafkaMetadataSource(config, client),
                    cluster_id=cluster.cluster_id,
                    sink=self,
                    now_ms=_now_ms,
                    new_id=self._new_id,
                    folder=_made(folder / "kip405"),
                )
            )

    def _disk(self, cluster: LocalCluster, node_id: int, folder: Path) -> disk.Observer:
        topics = TopicFilter(include=(self.topic,))
        surveyor = Surveyor(cluster.log_dirs(node_id), topics=topics, now_ns=time.time_ns)
        return disk.Observer(
            survey=surveyor.survey,
            sink=self,
            now_ms=_now_ms,
            new_id=self._new_id,
            folder=folder,
            has_remote=lambda _: cluster.kip405,
        )

    def emit(self, event: Event) -> None:
        self.said.append(event)

    def emit_many(self, events: Sequence[Event]) -> None:
        self.said += events

    def look(self) -> int:
        return sum(each.run_once() for each in self._always)

    def until(self, is_told: Callable[[], bool], wanted: str) -> None:
        def looked() -> bool:
            self.look()
            return is_told()

        wait_until(looked, name=self.topic, wanted=wanted, deadline_s=DEADLINE_S)

    def rest(self) -> None:
        """Until nobody has anything to say any more."""
        self.until(lambda: not self.look(), "nothing more to say")

    def of(self, kind: type[E], topic_id: str | None = None, broker_id: int | None = None) -> list[E]:
        """What was said of this kind, about this topic, about this broker's replica."""
        found = [each for each in self.said if isinstance(each, kind)]
        if topic_id is not None:
            found = [each for each in found if _topic_id(each) == topic_id]
        if broker_id is not None:
            found = [each for each in found if getattr(each, "broker_id", None) == broker_id]
        return found

    def _new_id(self) -> str:
        return f"e{next(self._ids)}"

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in [*self._always, self.configs]:
            each.close()


def _topic_id(event: Event) -> str | None:
    if isinstance(event, LogEvent):
        return event.log.topic_id
    found: str | None = getattr(event, "topic_id", None)
    return found


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
