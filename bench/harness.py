"""Runs a comparison in alternating rounds and prints it as one JSON line.

    bench, peer     what was measured, against whom
    ours, theirs    the medians, in `unit`; lower is better
    ratio           the median of the rounds' ratios, above 1 where we are better
    runs            every round, as [ours, theirs]
    spread          the smallest and the largest ratio among them

Rounds alternate, so that what else the machine does falls on both. Nothing here passes or fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

ROUNDS = 5
# Python keeps what it compiled and writes in blocks, unless it is told not to.
_NOT_A_USERS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished child process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def compare(
    bench: str,
    peer: str,
    *,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    unit: str = "s",
    rounds: int = ROUNDS,
    more: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Measure both, `rounds` times in turn, after one round that is not counted. Lower values are better."""
    assert rounds >= 5
    ours(), theirs()
    runs = [(ours(), theirs()) for _ in range(rounds)]
    ratios = [their / our for our, their in runs]
    line = {
        "bench": bench,
        "peer": peer,
        "ours": round(median(our for our, _ in runs), 4),
        "theirs": round(median(their for _, their in runs), 4),
        "unit": unit,
        "ratio": round(median(ratios), 3),
        "runs": [[round(our, 4), round(their, 4)] for our, their in runs],
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        **more(),
    }
    print(json.dumps(line), flush=True)  # noqa: T201 the benchmark's one output


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run(command: Sequence[object]) -> Ran:
    """Run a command with its output thrown away; its failure is ours."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name not in _NOT_A_USERS},
    )
    assert child.stderr is not None
    complaint = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began
    if child.returncode != 0:
        sys.stderr.buffer.write(complaint)
        raise SystemExit(f"bench: {command[0]} ended with {child.returncode}")
    return Ran(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * 1024,  # Linux counts it in KiB
    )
