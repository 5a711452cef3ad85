"""Calls that are no records, run by the executor that runs handlers: one way to have threads, not two.

    tasks.submit(name, call)    to be run, in the order of arrival
    tasks.collect(timeout_s)    what has come to its end, with the name it was given
    in_order(items, call, ...)  what the call says of each item, in the items' order

Who submits also collects, in one thread, and keeps count of what is out. There is no offset to commit and
nothing is tried again: a call that raises is raised where it is collected.

Owns the threads. Invariant: each call that was submitted is collected once, or `collect` has raised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Event
from types import TracebackType
from typing import Generic, TypeVar

from workers.consumer.executors.threads import Threads
from workers.consumer.outcomes import Done, Outcome
from workers.consumer.records import Partition, Record
from workers.consumer.work import Work

N = TypeVar("N")
T = TypeVar("T")

TICK_S = 60.0
AHEAD_A_THREAD = 2

_NOWHERE = Partition("", 0)


@dataclass(frozen=True, slots=True)
class _Said(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


class Tasks(Generic[N, T]):
    """`threads` calls at a time. Leaving it waits for those that run, up to `deadline_s`."""

    def __init__(self, *, threads: int, deadline_s: float = 60.0) -> None:
        self._calls: dict[int, tuple[N, Callable[[], T]]] = {}
        self._ended: dict[int, _Said[T] | _Raised] = {}
        self._came: deque[int] = deque()  # ended, and not handed out yet
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
        """Those that ended since, waiting for the first. Raises what one of them did, or ExecutorBroken; what
        came with it is had the next time.
        """
        if not self._came:
            self._came.extend(work.number for work, _ in self._threads.collect(timeout_s))
        found: list[tuple[N, T]] = []
        while self._came:
            if found and isinstance(self._ended[self._came[0]], _Raised):
                break
            number = self._came.popleft()
            name, _ = self._calls.pop(number)
            ended = self._ended.pop(number)
            if isinstance(ended, _Raised):
                raise ended.error
            found.append((name, ended.value))
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
            self._ended[record.offset] = _Said(call())
        except Exception as error:  # noqa: BLE001 raised again where it is collected
            self._ended[record.offset] = _Raised(error)
        return Done()


def in_order(
    items: Iterable[N], call: Callable[[N], T], *, threads: int, ahead: int | None = None
) -> Generator[T, None, None]:
    """What `call` says of each, as far as it is asked for; `threads` of them run side by side.

    No more than `ahead` are begun or wait to be taken (two a thread), so items may be without end. What a
    call raises is raised in its turn. Whoever leaves, by that or by not asking on, waits for those that run,
    however long, and no other is begun: nothing goes on behind the caller's back.
    """
    source, ahead = iter(items), ahead or threads * AHEAD_A_THREAD
    ended: dict[int, _Said[T] | _Raised | None] = {}
    stopping = Event()
    begun = taken = 0

    def tried(item: N) -> _Said[T] | _Raised | None:
        try:
            return None if stopping.is_set() else _Said(call(item))
        except BaseException as error:  # noqa: BLE001 raised again in its turn, by the caller's own thread
            return _Raised(error)

    with Tasks[int, _Said[T] | _Raised | None](threads=threads) as tasks:
        try:
            while True:
                for item in islice(source, ahead - (begun - taken)):
                    tasks.submit(begun, partial(tried, item))
                    begun += 1
                if taken == begun:
                    return
                while taken not in ended:
                    ended.update(tasks.collect(TICK_S))
                found, taken = ended.pop(taken), taken + 1
                if isinstance(found, _Raised):
                    raise found.error
                assert found is not None, "nobody is stopping yet"
                yield found.value
        finally:
            stopping.set()
            while tasks.out:
                tasks.collect(TICK_S)
