"""Restarts the whole machinery when any part of it fails: nothing is repaired in place, so nothing is lost.

The parts share what is in flight; to mend one of them beside the others would mean to know what the others
have half done. A new run starts at the committed offsets instead, and repeats. What a handler raises is no
failure of the machinery. A new run begins when the last handler of the one before has ended: else a key would
be handled twice at once. Processes that do not end are killed; a thread cannot be, and is told of until it
ends.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from workers.consumer.loop import ParallelConsumer
from workers.consumer.snapshot import Snapshot
from workers.consumer.telling import Tell, as_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The wait doubles from `first_s` to `most_s`; a run that lasted `calm_s` starts it anew."""

    first_s: float = 0.5
    most_s: float = 30.0
    calm_s: float = 60.0
    jitter: float = 0.2

    def wait_s(self, failures: int, chance: float) -> float:
        return min(self.first_s * 2.0 ** min(failures - 1, 60), self.most_s) * (1 - self.jitter * chance)


class Supervisor:
    """`build` makes one whole run: source, executor and consumer, all of them new."""

    def __init__(
        self,
        build: Callable[[], ParallelConsumer],
        *,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[Event, float], object] = Event.wait,
        chance: Callable[[], float] = random.random,
        tell: Tell = as_json,
    ) -> None:
        self._build, self._backoff = build, backoff or Backoff()
        self._clock, self._wait, self._chance, self._tell = clock, wait, chance, tell
        self._current: ParallelConsumer | None = None
        self.restarts = 0

    def run(self, stop: Event) -> None:
        """Until `stop` is set; then in order. Only KeyboardInterrupt and the like come out."""
        failures = 0
        while not stop.is_set():
            began_s = self._clock()
            try:
                self._one_run(stop)
            except Exception as failure:  # noqa: BLE001 the supervisor's edge: any failure restarts the whole
                failures = 1 if self._clock() - began_s >= self._backoff.calm_s else failures + 1
                wait_s = self._backoff.wait_s(failures, self._chance())
                self.restarts += 1
                why = f"{type(failure).__name__}: {failure}"
                self._tell("restarting", why=why, failures=failures, wait_s=round(wait_s, 3))
                self._wait(stop, wait_s)

    def snapshot(self) -> Snapshot | None:
        """Of the run that goes on; None between two of them."""
        current = self._current
        return current.snapshot() if current is not None else None

    def _one_run(self, stop: Event) -> None:
        consumer = self._build()
        try:
            consumer.open()
            self._current = consumer
            consumer.run(stop)
            consumer.close()
        except BaseException:
            self._abort(consumer, stop)
            raise
        finally:
            self._current = None

    def _abort(self, consumer: ParallelConsumer, stop: Event) -> None:
        try:
            left = consumer.abort()
            while left and not stop.is_set():
                self._tell("handlers_still_running", handlers=left)
                left = consumer.wait_for_handlers()
        except Exception as failure:  # noqa: BLE001 the reason for the restart is the one that counts
            self._tell("abort_failed", why=f"{type(failure).__name__}: {failure}")
