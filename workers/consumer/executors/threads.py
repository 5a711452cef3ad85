"""Handlers in threads of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from workers.consumer.outcomes import Handler, Raised, Result, checked
from workers.consumer.ports import ExecutorBroken
from workers.consumer.work import Work

# Work is handed out by one other thread, which gets the interpreter only now and then.
BACKLOG_A_THREAD = 2


class Threads:
    """`threads` handlers at a time; `backlog` more pieces of work, so that no thread waits for the loop."""

    def __init__(self, handler: Handler, *, threads: int = 10, backlog: int | None = None) -> None:
        self.capacity = threads + (threads * BACKLOG_A_THREAD if backlog is None else backlog)
        self._handler = handler
        self._given: SimpleQueue[Work | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[Work, Result] | BaseException] = SimpleQueue()
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, name=f"handler-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, works: Sequence[Work]) -> None:
        for work in works:
            self._given.put(work)

    def collect(self, timeout_s: float) -> Sequence[tuple[Work, Result]]:
        return drained(self._results, timeout_s)

    def close(self, *, deadline_s: float) -> int:
        if not self._closing:
            self._closing = True
            for _ in self._threads:
                self._given.put(None)
        end_s = time.monotonic() + deadline_s
        for thread in self._threads:
            thread.join(max(end_s - time.monotonic(), 0.0))
        return sum(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        given, results, handler = self._given, self._results, self._handler
        while (work := given.get()) is not None:
            result: Result
            try:
                result = checked(handler(work.record))
            except Exception as error:  # noqa: BLE001 the worker's edge: what a handler raises is a value from here
                result = Raised.by(error)
            except BaseException as end:  # noqa: BLE001 this thread is lost, and its record with it
                results.put(end)
                return
            results.put((work, result))


def drained(
    results: SimpleQueue[tuple[Work, Result] | BaseException], timeout_s: float
) -> list[tuple[Work, Result]]:
    """Everything in the queue, waiting for the first."""
    found: list[tuple[Work, Result]] = []
    try:
        each = results.get(timeout=timeout_s) if timeout_s > 0 else results.get_nowait()
        while True:
            if isinstance(each, BaseException):
                raise ExecutorBroken(f"a handler's thread ended: {each!r}") from each
            found.append(each)
            each = results.get_nowait()
    except Empty:
        return found
