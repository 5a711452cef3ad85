"""One contract for threads, the event loop and processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.workers.consumer.handlers import echo, echo_later, for_ever
from workers.consumer.executors.eventloop import EventLoop
from workers.consumer.executors.processes import Processes, in_process
from workers.consumer.executors.threads import Threads
from workers.consumer.outcomes import Raised, Result, Skip
from workers.consumer.ports import Executor, ExecutorBroken
from workers.consumer.records import Partition, Record
from workers.consumer.work import Work

DEADLINE_S = 90.0
KINDS: dict[str, Callable[[], Executor]] = {
    "threads": lambda: Threads(echo, threads=4),
    "event loop": lambda: EventLoop(echo_later, tasks=4),
    "processes of threads": lambda: Processes(echo, processes=2, at_once=2),
    "processes of event loops": lambda: Processes(echo_later, processes=2, at_once=2),
}


@pytest.fixture(params=KINDS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made = KINDS[request.param]()
    yield made
    made.close(deadline_s=0)


def works(*values: bytes) -> list[Work]:
    return [
        Work(Record(Partition("t", 0), offset, b"k", value), epoch=1, lane=None, number=offset, size_bytes=1)
        for offset, value in enumerate(values)
    ]


def collected(executor: Executor, count: int) -> dict[int, Result]:
    found: dict[int, Result] = {}
    last_moment = time.monotonic() + DEADLINE_S
    while len(found) < count and time.monotonic() < last_moment:
        found.update((work.record.offset, result) for work, result in executor.collect(1.0))
    return found


def test_every_record_comes_back_with_its_own_outcome(executor: Executor) -> None:
    """Each once, and the record reaches the handler as it was."""
    given = works(*[b"x"] * 50)
    for start in range(0, 50, 10):
        executor.submit(given[start : start + 10])

    found = collected(executor, 50)

    assert found == {offset: Skip(f"t-0@{offset} attempt 0") for offset in range(50)}
    assert executor.collect(0) == []


def test_what_a_handler_raises_is_a_value(executor: Executor) -> None:
    """So is what it returns without it being an outcome: a forgotten return is not done."""
    executor.submit(works(b"raise", b"nothing", b"x"))

    found = collected(executor, 3)

    assert found[0] == Raised("KeyError: 'as told'")
    assert found[1] == Raised("the handler returned NoneType, which is no outcome")
    assert isinstance(found[2], Skip)


def test_it_ends_when_what_it_was_given_is_finished(executor: Executor) -> None:
    """Within the deadline, and with nobody left."""
    executor.submit(works(b"slow"))

    assert executor.close(deadline_s=DEADLINE_S) == 0


def test_a_handler_that_ends_its_thread_breaks_the_whole() -> None:
    """SystemExit is no exception to be tried again: its record would be lost with the thread."""
    for made in (Threads(echo, threads=1), EventLoop(echo_later, tasks=1)):
        made.submit(works(b"exit"))
        with pytest.raises(ExecutorBroken, match="SystemExit"):
            collected(made, 1)


def test_a_process_that_dies_breaks_the_whole() -> None:
    """kill -9 of a child: its records are not finished, and the supervisor is told so."""
    made = Processes(echo, processes=2, at_once=2)
    made.submit(works(b"die", b"x", b"x"))

    with pytest.raises(ExecutorBroken, match=r"ended with -9, and \d records with it"):
        collected(made, 3)
    assert made.close(deadline_s=0) == 0


def test_a_coroutine_that_never_ends_is_taken_back() -> None:
    """At the deadline it is cancelled, which a thread cannot be."""
    made = in_process(for_ever, at_once=2)
    made.submit(works(b"x"))

    assert made.close(deadline_s=0.05) == 0


def test_a_thread_that_does_not_end_is_counted() -> None:
    """Nothing can end it; who asked is told."""
    made = in_process(echo, at_once=1)
    made.submit(works(b"slow"))

    assert made.close(deadline_s=0) == 1
    assert made.close(deadline_s=DEADLINE_S) == 0
