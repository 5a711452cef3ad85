"""Calls that are no records, run by the executor that runs handlers: one way to have threads, not two.

    tasks.submit(name, call)    to be run, in the order of arrival
    tasks.collect(timeout_s)    what has come to its end, with the name it was given

Who submits also collects, in one thread, and keeps count of what is out. There is no offset to commit and
nothing is tried again: a call that raises is raised where it is collected.

Owns the threads. Invariant: each call that was submitted is collected once, or `collect` has raised.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from workers.consumer.executors.threads import Threads
from workers.consumer.outcomes import Done, Outcome
from workers.consumer.records import Partition, Record
from workers.consumer.work import Work

N = TypeVar("N")
T = TypeVar("T")

_NOWHERE = Partition("", 0)


class Tasks(Generic[N, T]):
    """`threads` calls at a time. Leaving it waits for those that run, up to `deadline_s`."""

    def __init__(self, *, threads: int, deadline_s: float = 60.0) -> None:
        self._calls: dict[int, tuple[N, Callable[[], T]]] = {}
        self._ended: dict[int, T | BaseException] = {}
        self._number = 0
        self._deadline_s = deadline_s
        self._threads = Threads(self._handle, threads=threads)

    @property
    def out(self) -> int:
        """Calls that were submitted and are not collected yet."""
        return len(self._calls)

    def submit(self, name: N, call: Callable[[], T]) -> None:
        number, self._number = self._number, self._number + 1
        self._calls[number] = name, call
        record = Record(_NOWHERE, number, None, None)
        self._threads.submit([Work(record, epoch=0, lane=None, number=number, size_bytes=0)])

    def collect(self, timeout_s: float) -> list[tuple[N, T]]:
        """Those that ended since, waiting for the first. Raises what one of them did, or ExecutorBroken."""
        found = []
        for work, _ in self._threads.collect(timeout_s):
            name, _ = self._calls.pop(work.number)
            ended = self._ended.pop(work.number)
            if isinstance(ended, BaseException):
                raise ended
            found.append((name, ended))
        return found

    def __enter__(self) -> Tasks[N, T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.close(deadline_s=self._deadline_s)

    def _handle(self, record: Record) -> Outcome:
        _, call = self._calls[record.offset]
        try:
            self._ended[record.offset] = call()
        except Exception as error:  # noqa: BLE001 raised again where it is collected
            self._ended[record.offset] = error
        return Done()
