"""A consumer group that is scaled as KEDA and HPA would: real consumers in threads, each with so much to do
a record.
"""

from __future__ import annotations

from itertools import count
from math import ceil
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer

from seawall.local.kafka import SILENT

COMMIT_EVERY = 10


class Workload:
    """Consumers of a group, as many as it was last scaled to. Each record is `work_s` of work."""

    def __init__(self, bootstrap: str, *, group: str, topic: str, work_s: float) -> None:
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": "200",
            "session.timeout.ms": "6000",
            "partition.assignment.strategy": "cooperative-sticky",
        }
        self._topic = topic
        self._work_s = work_s
        self._numbers = count()
        self._running: list[tuple[Event, Thread]] = []

    @property
    def replicas(self) -> int:
        return len(self._running)

    def scale(self, replicas: float) -> None:
        """To the next whole number, as HPA does."""
        wanted = ceil(replicas)
        while len(self._running) < wanted:
            stop = Event()
            thread = Thread(target=self._consume, args=(stop,), name=f"consumer-{next(self._numbers)}")
            self._running.append((stop, thread))
            thread.start()
        while len(self._running) > wanted:
            stop, thread = self._running.pop()
            stop.set()
            thread.join()

    def _consume(self, stop: Event) -> None:
        consumer = Consumer(self._config, logger=SILENT)
        consumer.subscribe([self._topic])
        done = 0
        try:
            while not stop.is_set():
                message = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    stop.wait(self._work_s)  # the work
                    done += 1
                if done >= COMMIT_EVERY or (done and message is None):
                    consumer.commit(asynchronous=True)
                    done = 0
            if done:
                consumer.commit(asynchronous=False)
        finally:
            consumer.close()
