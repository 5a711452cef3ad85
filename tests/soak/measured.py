"""What a process holds of a host, and whether it is more and more.

Owns the reading of /proc and the judgement over samples. Refuses to judge too few of them: that is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

SAMPLES_MIN = 8
MIB = 1024 * 1024


class Held(NamedTuple):
    """What a process, with all below it, holds at one moment."""

    memory_bytes: int
    handles: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """By how much the end of a soak may be above its middle: a part of it, and so much on top."""

    part: float
    on_top: float

    def of(self, before: float) -> float:
        return before * (1 + self.part) + self.on_top


# Allocators keep what they once had, and a table has an entry for each segment.
MEMORY = Bound(part=0.10, on_top=24 * MIB)
# A JVM takes what it is allowed before it looks for what is free.
JVM_MEMORY = Bound(part=0.25, on_top=160 * MIB)
HANDLES = Bound(part=0.10, on_top=12)
THREADS = Bound(part=0.10, on_top=6)


def grown(name: str, samples: Sequence[float], bound: Bound) -> list[str]:
    """What is wrong with these samples, in the order of time. The first half is for warming up."""
    if len(samples) < SAMPLES_MIN:
        return [f"{name}: {len(samples)} samples, too few to say anything"]
    quarter = len(samples) // 4
    before, after = median(samples[quarter : 2 * quarter]), median(samples[-quarter:])
    allowed = bound.of(before)
    if after <= allowed:
        return []
    return [f"{name}: grew from {before:,.0f} to {after:,.0f}, where {allowed:,.0f} is allowed"]


def beyond(name: str, samples: Iterable[float], limit: float) -> list[str]:
    """Whether something was ever above a limit."""
    worst = max(samples, default=0.0)
    return [f"{name}: {worst:,.1f}, where {limit:,.1f} is allowed"] if worst > limit else []


def held_by(pid: int, proc: Path = Path("/proc")) -> Held | None:
    """By a process and all below it; None where it has ended."""
    family = _family(pid, proc)
    found = [each for one in family if (each := _held(proc / str(one))) is not None]
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


def _family(pid: int, proc: Path) -> list[int]:
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


def as_table(series: Mapping[str, Sequence[Held]]) -> str:
    """First, middle and last of each process, to be read."""
    lines = [f"{'':12} {'memory MiB':>24} {'handles':>16} {'threads':>16}"]
    for name, samples in sorted(series.items()):
        if not samples:
            continue
        shown = (samples[0], samples[len(samples) // 2], samples[-1])
        memory = " ".join(f"{each.memory_bytes / MIB:7.0f}" for each in shown)
        handles, threads = (" ".join(f"{each[place]:4d}" for each in shown) for place in (1, 2))
        lines.append(f"{name:12} {memory:>24} {handles:>16} {threads:>16}")
    return "\n".join(lines)
