"""What growth is, and what a process holds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from seawall.local.waiting import wait_until
from tests.soak.measured import HANDLES, MEMORY, MIB, THREADS, Bound, beyond, grown, held_by

NOTHING = Bound(part=0.0, on_top=0.0)


@pytest.mark.parametrize(
    ("samples", "is_growth"),
    [
        ([100.0] * 40, False),
        ([10.0] * 10 + [100.0] * 30, False),  # warming up
        ([100.0, 300.0] * 20, False),  # up and down
        ([100.0 + each for each in range(40)], True),
        ([100.0] * 20 + [100.0 + 5 * each for each in range(20)], True),
    ],
)
def test_growth_is_what_the_end_has_over_the_middle(samples: list[float], is_growth: bool) -> None:
    """Not what a start takes, and not what comes and goes."""
    assert bool(grown("it", samples, NOTHING)) is is_growth


def test_too_few_samples_are_no_verdict() -> None:
    """Nobody looked, which is not the same as that nothing grew."""
    assert "too few" in grown("it", [1.0] * 3, MEMORY)[0]


def test_a_leak_of_one_for_each_sample_is_seen_in_an_hour() -> None:
    """At a sample every ten seconds: a handle or thread each, and a MiB each, are beyond every bound."""
    steps = range(360)
    assert grown("handles", [50.0 + each for each in steps], HANDLES)
    assert grown("threads", [30.0 + each for each in steps], THREADS)
    assert grown("memory", [150.0 * MIB + each * MIB for each in steps], MEMORY)


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
