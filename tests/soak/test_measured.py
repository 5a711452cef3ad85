"""What growth is, and what a process holds."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable

import pytest

from seawall.local.waiting import wait_until
from tests.soak.bounds import HANDLES, MEMORY, THREADS
from tests.soak.measured import MIB, At, Behind, Bound, beyond, grown, held_by

A_LITTLE = Bound(part=0.05, on_top=4.0)


def each_second(values: Iterable[float]) -> list[At]:
    return [At(float(second), value) for second, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "is_growth"),
    [
        ([100.0] * 100, False),
        ([10.0 + each for each in range(30)] + [100.0] * 70, False),  # warming up
        ([100.0, 300.0] * 50, False),  # up and down
        ([100.0] * 70 + [900.0] * 8 + [100.0] * 22, False),  # once, and back again
        ([100.0 + each for each in range(100)], True),
        ([100.0] * 50 + [100.0 + each for each in range(50)], True),
        ([100.0] * 85 + [200.0] * 15, True),  # a step, and not back again
        ([100.0 - each for each in range(100)], False),
    ],
)
def test_growth_is_a_rise_behind_the_warming_up_that_stays(values: list[float], is_growth: bool) -> None:
    """Not what a start takes, and not what comes and goes; a single step late in it is one."""
    assert bool(grown("it", each_second(values), A_LITTLE)) is is_growth


def test_what_is_allowed_is_of_the_whole_of_the_judged_part() -> None:
    """A rise of one a second from second 40 on, of 100, is 59 in all: 60 pass it and 58 do not."""
    rising = each_second(float(each) for each in range(100))
    assert not grown("it", rising, Bound(part=0.0, on_top=60.0))
    assert grown("it", rising, Bound(part=0.0, on_top=58.0))


def test_too_few_samples_are_no_verdict() -> None:
    """Nobody looked, which is not the same as that nothing grew."""
    assert "too few" in grown("it", each_second([1.0] * 3), MEMORY)[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_leak_is_seen_in_an_hour_and_noise_is_not(seed: int) -> None:
    """At a sample every ten seconds: a handle or thread each three minutes, and a MiB each, are beyond
    every bound, whatever else goes up and down beside them; the same without the leak is within it."""
    chance = random.Random(seed)
    for bound, begin, noise, every_s in ((HANDLES, 50, 4, 180), (THREADS, 30, 3, 180), (MEMORY, 150, 4, 60)):
        unit = MIB if bound is MEMORY else 1
        level = [unit * (begin + chance.uniform(0, noise)) for _ in range(360)]
        quiet = [At(10.0 * each, value) for each, value in enumerate(level)]
        leaking = [At(at_s, value + unit * at_s / every_s) for at_s, value in quiet]
        assert not grown("level", quiet, bound)
        assert grown("leaking", leaking, bound)


def test_a_lag_in_time_is_the_age_of_the_oldest_that_has_not_arrived() -> None:
    """Told 10 each second, and none arrives from the third second on: what was told after the look of the
    second before has waited since then; once all has arrived nothing waits."""
    behind = Behind()
    assert behind.age_s(0.0, 10, 10) == 0.0
    assert behind.age_s(1.0, 20, 10) == 1.0
    assert behind.age_s(2.0, 30, 20) == 1.0
    assert [behind.age_s(float(each), 10 * each + 10, 20) for each in (3, 4, 5)] == [2.0, 3.0, 4.0]
    assert behind.age_s(6.0, 70, 65) == 1.0
    assert behind.age_s(7.0, 80, 80) == 0.0


def test_the_worst_moment_counts() -> None:
    """One sample above the limit is told with the limit."""
    assert beyond("lag", [1.0, 9.0, 2.0], 8.0) == ["lag: 9.0, where 8.0 is allowed"]
    assert beyond("lag", [], 8.0) == []


def test_what_a_process_holds_is_that_of_its_children_too() -> None:
    """A program that starts another one cannot hide in it."""
    alone = held_by(os.getpid())
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; sys.stdin.read()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as parent:
        wait_until(
            lambda: (found := held_by(parent.pid)) is not None and found.threads >= 2,
            name="the child",
            wanted="to be seen",
            deadline_s=60.0,
        )
        parent.kill()  # its child reads the end of the pipe

    assert alone is not None
    assert alone.memory_bytes > MIB
    assert alone.handles >= 1
    assert held_by(parent.pid) is None
