"""Where to go on: what the tables hold against what the topic still has.

    table says 40, topic has [0, 90)      go on at 40
    table says 40, topic has [60, 90)     [40, 60) was taken by retention: told, then on at 60
    table says nothing, topic [60, 90)    [0, 60) was gone before anybody asked: told as that
    table says 40, topic has [0, 30)      it lost its end, or a leader does not know it yet: refused

Owns the comparison. Invariant: each offset below where it goes on is in the tables, or is named as lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from audit_engine.tables.marks import Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReach:
    """What the leaders say now: by partition the first offset to be had, and the one behind the last."""

    topic_id: str
    starts: Offsets
    ends: Offsets


class ReachSource(Protocol):
    """Knows how far a topic goes. Raises OffsetsUnknown, never answers in part."""

    def reach(self, topic: str) -> TopicReach: ...


class Lost(NamedTuple):
    """`[start, end)` of a partition is not in the topic any more, and no table has it."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Onward:
    """`starts`: from where each partition is read. `behind`: those that end before what the table has."""

    starts: Offsets
    lost: tuple[Lost, ...]
    behind: tuple[int, ...]


def onward(reach: TopicReach, held: Offsets) -> Onward:
    lost = tuple(
        Lost(partition=partition, start=held.get(partition, 0), end=start)
        for partition, start in sorted(reach.starts.items())
        if start > held.get(partition, 0)
    )
    behind = tuple(
        partition for partition, offset in sorted(held.items()) if reach.ends.get(partition, 0) < offset
    )
    starts = {partition: max(start, held.get(partition, 0)) for partition, start in reach.starts.items()}
    return Onward(starts=starts, lost=lost, behind=behind)


def untold(lost: Lost, told: tuple[Lost, ...]) -> Lost | None:
    """What of `lost` the quarantine does not name yet; it names stretches from low to high."""
    ends = [each.end for each in told if each.partition == lost.partition]
    start = max([lost.start, *ends])
    return Lost(partition=lost.partition, start=start, end=lost.end) if start < lost.end else None


def together(stretches: Iterable[Lost]) -> list[Lost]:
    """In order, those that overlap or touch as one: who is overtaken again finds the same offsets lost."""
    found: list[Lost] = []
    for each in sorted(stretches):
        last = found[-1] if found else None
        if last is not None and last.partition == each.partition and each.start <= last.end:
            found[-1] = last._replace(end=max(last.end, each.end))
        else:
            found.append(each)
    return found
