"""Reads what a broker writes of Kafka's own tier, where it has one.

The broker is asked, once a minute until it says yes: `remote.log.storage.system.enable` decides, and its
metadata manager must be Kafka's own, which keeps its records in a topic. Once it was on, the topic is read
for as long as the agent lives.

Owns when to ask. Refuses to take no answer for a no: before the first one, there is no look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from audit_engine.observers.kip405.kafka import is_written_by
from audit_engine.observers.kip405.observer import Observer
from seawall.agent.errors import StorageUntold
from tiering.cluster.interface import BrokerSettings, Unknown

ASK_EVERY_MS = 60_000


class BrokerSource(Protocol):
    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown: ...


class KafkaTier:
    """For one thread."""

    def __init__(
        self, observer: Observer, cluster: BrokerSource, *, broker_id: int, now_ms: Callable[[], int]
    ) -> None:
        self._observer = observer
        self._cluster = cluster
        self._broker_id = broker_id
        self._now_ms = now_ms
        self._is_on: bool | None = None
        self._asked_ms = 0

    def run_once(self) -> int:
        """Read on, if there is anything to be read. Raises StorageUntold while the broker never answered."""
        if not self._is_on and (self._is_on is None or self._now_ms() - self._asked_ms >= ASK_EVERY_MS):
            self._ask()
        return self._observer.run_once() if self._is_on else 0

    def close(self) -> None:
        self._observer.close()

    def _ask(self) -> None:
        found = self._cluster.broker_settings(self._broker_id)
        if not isinstance(found, Unknown):
            self._is_on = is_written_by(found)
        elif self._is_on is None:
            raise StorageUntold(broker_id=self._broker_id, why=found.reason)
        self._asked_ms = self._now_ms()
