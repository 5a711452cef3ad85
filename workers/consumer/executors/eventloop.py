"""Coroutine handlers on one event loop, in a thread of its own.

A fixed number of tasks take work from one line: a task is not made for each record, which would cost more
than most of the rest. Results go back once for each turn of the event loop, however many there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from workers.consumer.outcomes import AsyncHandler, Raised, Result, checked
from workers.consumer.ports import ExecutorBroken
from workers.consumer.work import Work

BACKLOG_A_TASK = 2
CANCEL_S = 1.0  # for coroutines to end after they were told to


class EventLoop:
    """`tasks` handlers at a time."""

    def __init__(self, handler: AsyncHandler, *, tasks: int = 100, backlog: int | None = None) -> None:
        self.capacity = tasks + (tasks * BACKLOG_A_TASK if backlog is None else backlog)
        self._handler = handler
        self._tasks_max = tasks
        self._line: deque[Work] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._fresh: list[tuple[Work, Result]] = []
        self._results: SimpleQueue[list[tuple[Work, Result]] | BaseException] = SimpleQueue()
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="handlers", daemon=True)
        self._thread.start()

    def submit(self, works: Sequence[Work]) -> None:
        self._loop.call_soon_threadsafe(self._accept, works)

    def collect(self, timeout_s: float) -> Sequence[tuple[Work, Result]]:
        found: list[tuple[Work, Result]] = []
        try:
            each = self._results.get(timeout=timeout_s) if timeout_s > 0 else self._results.get_nowait()
            while True:
                if isinstance(each, BaseException):
                    raise ExecutorBroken(f"the event loop of the handlers ended: {each!r}") from each
                found += each
                each = self._results.get_nowait()
        except Empty:
            return found

    def close(self, *, deadline_s: float) -> int:
        end_s = time.monotonic() + deadline_s
        if not self._closing:
            self._closing = True
            self._tell_loop(self._release)
        self._thread.join(deadline_s)
        if self._thread.is_alive():  # a coroutine can be taken back, unlike a thread
            self._tell_loop(self._cancel)
            self._thread.join(max(end_s - time.monotonic(), CANCEL_S))
        return len(self._tasks) if self._thread.is_alive() else 0

    def _tell_loop(self, what: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(what)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except BaseException as end:  # noqa: BLE001 a SystemExit in a handler comes out here
            self._results.put(end)
        finally:
            self._loop.close()

    def _accept(self, works: Sequence[Work]) -> None:
        self._line.extend(works)
        wanted = len(works)
        while self._idle and wanted:
            self._idle.pop().set_result(None)
            wanted -= 1
        while wanted and len(self._tasks) < self._tasks_max:
            self._tasks.add(self._loop.create_task(self._work()))
            wanted -= 1

    async def _work(self) -> None:
        line, handler = self._line, self._handler
        while True:
            while line:
                work = line.popleft()
                result: Result
                try:
                    result = checked(await handler(work.record))
                except Exception as error:  # noqa: BLE001 the worker's edge: what a handler raises is a value
                    result = Raised.by(error)
                if not self._fresh:
                    self._loop.call_soon(self._flush)
                self._fresh.append((work, result))
            if self._closing:
                return self._ended()
            waiting = self._loop.create_future()
            self._idle.append(waiting)
            await waiting

    def _flush(self) -> None:
        fresh, self._fresh = self._fresh, []
        self._results.put(fresh)

    def _release(self) -> None:
        """Whoever is idle ends now, the others after their work; the last one stops the loop."""
        for waiting in self._idle:
            waiting.set_result(None)
        self._idle.clear()
        if not self._tasks:
            self._loop.stop()

    def _ended(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.discard(task)
        if not self._tasks:
            self._loop.call_soon(self._loop.stop)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._loop.call_later(0.1, self._loop.stop)
