"""Calls that are no records, by the threads that run handlers."""

from __future__ import annotations

from itertools import count
from threading import Barrier, Event, Lock

import pytest

from workers.consumer.ports import ExecutorBroken
from workers.consumer.tasks import Tasks, in_order

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


def test_what_came_with_a_failure_is_not_lost_by_it() -> None:
    """Of calls that end at once each is collected, before or after the one that raises. An exception may also
    be what a call returns: that is its answer."""
    may_end = Event()

    def call(number: int) -> int | Exception:
        may_end.wait(DEADLINE_S)
        if number == 1:
            raise LookupError("not there")
        return KeyError(number) if number == 2 else number

    found: list[str] = []
    with Tasks[str, int | Exception](threads=4) as tasks:
        for number in range(4):
            tasks.submit(f"n{number}", lambda number=number: call(number))  # type: ignore[misc]
        may_end.set()
        while tasks.out:
            try:
                found += [name for name, _ in tasks.collect(DEADLINE_S)]
            except LookupError:
                found.append("raised")

    assert sorted(found) == ["n0", "n2", "n3", "raised"]


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


def test_answers_come_in_the_order_of_the_items() -> None:
    """Whichever ends first; and as many run at once as there are threads."""
    together = Barrier(3)
    last_may_end = Event()

    def call(number: int) -> int:
        together.wait(DEADLINE_S)
        assert number != 0 or last_may_end.wait(DEADLINE_S)  # the first ends last
        if number == 2:
            last_may_end.set()
        return number * 10

    assert list(in_order(range(3), call, threads=3)) == [0, 10, 20]
    assert list(in_order([], call, threads=3)) == []


def test_items_without_end_are_begun_no_further_than_it_was_told() -> None:
    """Who takes five has had no more than `ahead` begun beyond them."""
    begun, lock = [], Lock()

    def call(number: int) -> int:
        with lock:
            begun.append(number)
        return number

    answers = in_order(count(), call, threads=2, ahead=4)
    taken = [next(answers) for _ in range(5)]
    answers.close()

    assert taken == [0, 1, 2, 3, 4]
    assert max(begun) < 5 + 4


def test_a_failure_comes_in_its_turn_and_nothing_goes_on_behind_it() -> None:
    """Those before it are had; those that run are waited for; none is begun afterwards."""
    ended, may_end = [], Event()

    def call(number: int) -> int:
        if number == 1:
            may_end.set()
            raise LookupError("not there")
        if number == 2:
            assert may_end.wait(DEADLINE_S)
        ended.append(number)
        return number

    answers = in_order(count(), call, threads=2, ahead=3)
    first = next(answers)
    with pytest.raises(LookupError, match="not there"):
        next(answers)

    assert first == 0
    assert set(ended) <= {0, 2, 3}
    assert list(answers) == []


def test_what_would_end_a_thread_is_raised_in_its_turn_too() -> None:
    """By whoever asks: no thread is lost by it, and nothing waits for one."""

    def end(_: int) -> int:
        raise SystemExit(7)

    with pytest.raises(SystemExit):
        list(in_order(range(3), end, threads=1))
