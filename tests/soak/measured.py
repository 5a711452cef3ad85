"""What a process holds of a host, and whether it is more and more.

    |--- warming up ---|------------ judged ------------|
    0                WARM of it                        end

What is judged is cut into BINS stretches of time, each as its median, so that what comes and goes counts for
nothing. Two questions are asked of them: does the line through them rise by more than is allowed (the median
of the slopes of all pairs, which a few odd stretches do not move), and is the end above the beginning by
more than twice that, which a single late step is.

Owns the reading of /proc and the judgement over samples. Refuses to judge too few of them: that is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

WARM = 0.4
BINS = 10
SAMPLES_MIN = 2 * BINS  # some in each stretch of the judged part
MIB = 1024 * 1024


class Held(NamedTuple):
    """What a process, with all below it, holds at one moment."""

    memory_bytes: int
    handles: int
    threads: int


class At(NamedTuple):
    """A number, and when it was so."""

    at_s: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """By how much the judged part may rise: a part of what it begins with, and so much on top."""

    part: float
    on_top: float

    def of(self, begin: float) -> float:
        return begin * self.part + self.on_top


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How the judged part went, as a line and by its ends."""

    begin: float
    end: float
    rise: float  # of the line, over the whole of the part

    def excess(self, bound: Bound) -> bool:
        allowed = bound.of(self.begin)
        return self.rise > allowed or self.end - self.begin > 2 * allowed


def course(samples: Sequence[At]) -> Course | None:
    """None: too few to say anything."""
    if len(samples) < SAMPLES_MIN:
        return None
    first_s, last_s = samples[0].at_s, samples[-1].at_s
    judged = [each for each in samples if each.at_s >= first_s + WARM * (last_s - first_s)]
    size = len(judged) / BINS
    stretches = [judged[round(place * size) : round((place + 1) * size)] for place in range(BINS)]
    points = [
        At(median(each.at_s for each in one), median(each.value for each in one)) for one in stretches if one
    ]
    slopes = [
        (late.value - early.value) / (late.at_s - early.at_s)
        for early, late in combinations(points, 2)
        if late.at_s > early.at_s
    ]
    if not slopes:
        return None
    rise = median(slopes) * (judged[-1].at_s - judged[0].at_s)
    return Course(begin=points[0].value, end=points[-1].value, rise=rise)


def grown(name: str, samples: Sequence[At], bound: Bound) -> list[str]:
    """What is wrong with these samples, in the order of time."""
    found = course(samples)
    if found is None:
        return [f"{name}: {len(samples)} samples, too few to say anything"]
    if not found.excess(bound):
        return []
    return [
        f"{name}: from {found.begin:,.0f} to {found.end:,.0f}, a rise of {found.rise:,.0f},"
        f" where {bound.of(found.begin):,.0f} is allowed"
    ]


def beyond(name: str, values: Iterable[float], limit: float) -> list[str]:
    """Whether something was ever above a limit."""
    worst = max(values, default=0.0)
    return [f"{name}: {worst:,.1f}, where {limit:,.1f} is allowed"] if worst > limit else []


class Behind:
    """How long the oldest of what was told has not arrived: an age of what is counted, without its clock.

    What is told between two looks is taken as told at the earlier one: the age is never too small.
    """

    def __init__(self) -> None:
        self._told: list[At] = []  # the last look that had no more than what has arrived, and those since

    def age_s(self, at_s: float, told: float, arrived: float) -> float:
        self._told.append(At(at_s, told))
        while len(self._told) > 1 and self._told[1].value <= arrived:
            del self._told[0]
        return 0.0 if told <= arrived else at_s - self._told[0].at_s


def held_by(pid: int, proc: Path = Path("/proc")) -> Held | None:
    """By a process and all below it; None where it has ended."""
    found = [each for one in family(pid, proc) if (each := _held(proc / str(one))) is not None]
    return Held(*map(sum, zip(*found, strict=True))) if found else None


def _held(process: Path) -> Held | None:
    try:
        status = dict(
            line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line
        )
        handles = sum(1 for _ in (process / "fd").iterdir())
        return Held(
            memory_bytes=int(status["VmRSS"].split()[0]) * 1024,
            handles=handles,
            threads=int(status["Threads"]),
        )
    except (OSError, KeyError):  # it ended meanwhile, or has no memory any more
        return None


def family(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for each in proc.glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(each.name))
    found = [pid]
    for member in found:  # which grows on the way
        found += children.get(member, [])
    return found


def on_disk_bytes(folder: Path, pattern: str = "*") -> int:
    """Of all such files below; what goes meanwhile is passed over."""
    total = 0
    for each in folder.rglob(pattern):
        try:
            total += each.stat().st_size if each.is_file() else 0
        except OSError:
            continue
    return total
