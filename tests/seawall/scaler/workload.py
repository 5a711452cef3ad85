"""A consumer group that is scaled as KEDA and HPA would: real consumers in threads, which do as many records
as a test lets through. So what the group's lag is like is the test's to say, and not the machine's.
"""

from __future__ import annotations

from itertools import count
from math import ceil
from threading import Event, Lock, Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from seawall.local.kafka import SILENT

COMMIT_EVERY = 100
POLL_S = 0.02


class Workload:
    """Consumers of a group, as many as it was last scaled to."""

    def __init__(self, bootstrap: str, *, group: str, topic: str) -> None:
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": "200",
            "session.timeout.ms": "45000",
            "partition.assignment.strategy": "cooperative-sticky",
        }
        self._topic = topic
        self._numbers = count()
        self._running: list[tuple[Event, Thread]] = []
        self._lock = Lock()
        self._left = 0  # that may be done; less than none where a partition came with a record in hand

    @property
    def replicas(self) -> int:
        return len(self._running)

    def let(self, records: int) -> None:
        """So many may be done from now on, whatever was let be done before."""
        with self._lock:
            self._left = records

    def _did(self) -> None:
        with self._lock:
            self._left -= 1

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
        held: frozenset[int] = frozenset()
        try:
            while not stop.is_set():
                held = self._hold(consumer, held)
                message = consumer.poll(POLL_S)
                if message is not None and message.error() is None:
                    self._did()
                    done += 1
                if done >= COMMIT_EVERY or (done and message is None):
                    done = 0 if _committed(consumer) else done
            _committed(consumer)
        finally:
            consumer.close()

    def _hold(self, consumer: Consumer, held: frozenset[int]) -> frozenset[int]:
        """Pause all that is assigned while nothing may be done: polling goes on, and so do rebalances."""
        assigned = consumer.assignment()
        mine = frozenset(each.partition for each in assigned)
        if self._left <= 0:
            if new := [each for each in assigned if each.partition not in held]:
                consumer.pause(new)
            return mine
        if held & mine:
            consumer.resume([each for each in assigned if each.partition in held])
        return frozenset()


def _committed(consumer: Consumer) -> bool:
    """Whether all that is done is; while a rebalance runs it is refused, and has to be asked for again."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as refused:
        return bool(refused.args[0].code() == KafkaError._NO_OFFSET)  # nothing of what is assigned is left
    return True
