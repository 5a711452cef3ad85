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
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = 5
# Python keeps what it compiled and writes in blocks, unless it is told not to.
_NOT_A_USERS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
_FRESH = Path(__file__).with_name("fresh.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished child process, its own children included in `cpu_s`; `peak_bytes` is of the largest."""

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
    report(bench, peer, [(ours(), theirs()) for _ in range(rounds)], unit=unit, more=more())


def report(
    bench: str, peer: str, runs: Sequence[tuple[float, float]], *, unit: str = "s", more: dict[str, Any]
) -> None:
    """The line of what was measured already, ours and theirs of each round."""
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
        **more,
    }
    print(json.dumps(line), flush=True)  # noqa: T201 the benchmark's one output


def say(words: str) -> None:
    """To who waits: minutes of silence want a word."""
    print(f"bench: {words}", file=sys.stderr, flush=True)  # noqa: T201 the benchmark's progress


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run(command: Sequence[object]) -> Ran:
    """Run a command with its output thrown away; its failure is ours.

    It is started by `fresh`, a small process that measures it: the peak that the kernel counts of a process
    begins with that of whoever started it, and we hold a benchmark's data.
    """
    reading, writing = os.pipe()
    with open(reading) as measured:  # noqa: PTH123 a descriptor, not a path
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", _FRESH, str(writing), *(str(part) for part in command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name not in _NOT_A_USERS},
            pass_fds=[writing],
        )
        os.close(writing)
        _, complaint = child.communicate()
        if child.returncode != 0:
            sys.stderr.buffer.write(complaint)
            raise SystemExit(f"bench: {command[0]} ended with {child.returncode}")
        wall_s, cpu_s, peak_kib = measured.read().split()
    return Ran(wall_s=float(wall_s), cpu_s=float(cpu_s), peak_bytes=int(peak_kib) * 1024)
