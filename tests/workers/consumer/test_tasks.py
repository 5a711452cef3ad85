"""Calls that are no records, by the threads that run handlers."""

from __future__ import annotations

from threading import Barrier, Event

import pytest

from workers.consumer.ports import ExecutorBroken
from workers.consumer.tasks import Tasks

DEADLINE_S = 60.0


def _all(tasks: Tasks[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    while tasks.out:
        found |= dict(tasks.collect(DEADLINE_S))
    return found


def test_each_call_is_collected_once_under_its_name() -> None:
    """More than there are threads; nothing is out when all are collected."""
    with Tasks[str, int](threads=3) as tasks:
        for number in range(50):
            tasks.submit(f"n{number}", lambda number=number: number)  # type: ignore[misc]
        found = _all(tasks)

    assert found == {f"n{number}": number for number in range(50)}


def test_as_many_run_at_once_as_there_are_threads() -> None:
    """Three that wait for each other all come to their end."""
    together = Barrier(3)
    with Tasks[str, int](threads=3) as tasks:
        for name in "abc":
            tasks.submit(name, lambda: together.wait(DEADLINE_S))
        found = _all(tasks)

    assert sorted(found.values()) == [0, 1, 2]


def test_what_a_call_raises_is_raised_where_it_is_collected() -> None:
    """And the others can still be collected."""

    def fail() -> int:
        raise LookupError("not there")

    with Tasks[str, int](threads=1) as tasks:
        tasks.submit("bad", fail)
        with pytest.raises(LookupError, match="not there"):
            tasks.collect(DEADLINE_S)
        tasks.submit("good", lambda: 1)
        found = _all(tasks)

    assert found == {"good": 1}


def test_a_thread_that_is_lost_is_said() -> None:
    """What ends a thread, and not only its call, is not waited for."""

    def end() -> int:
        raise SystemExit

    with Tasks[str, int](threads=1) as tasks:
        tasks.submit("last", end)
        with pytest.raises(ExecutorBroken):
            tasks.collect(DEADLINE_S)


def test_nothing_is_collected_before_it_has_ended() -> None:
    """Collecting waits no longer than it was told to."""
    may_end = Event()
    with Tasks[str, bool](threads=1) as tasks:
        tasks.submit("slow", lambda: may_end.wait(DEADLINE_S))
        before = tasks.collect(0)
        may_end.set()
        after = tasks.collect(DEADLINE_S)

    assert (before, after) == ([], [("slow", True)])
