"""The samples that a word rests on: how long something held, how it moves, how fast. Pure.

A series is (time, value) in the order of time. What was not sampled is not known: a time without enough
samples, or with a gap in them, is never said to have been one way or another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from statistics import fmean, median

from workers.scaler.values import Sample

Series = Sequence[tuple[float, float]]
EDGE_S = 1e-6  # of a float's own error in a difference of times


@dataclass(frozen=True, slots=True)
class Window:
    """Samples in the order of time, all of one topic (one id), none older than what was kept."""

    samples: tuple[Sample, ...] = ()

    def with_sample(self, sample: Sample, *, horizon_s: float) -> Window:
        """One that is not after the last is another's of the same moment, and adds nothing. A topic that was
        made anew is another topic: nothing that was seen of the old one is true of it."""
        last = self.last
        if last is not None and sample.at_s <= last.at_s:
            return self
        if last is not None and sample.topic_id != last.topic_id:
            return Window((sample,))
        oldest_s = sample.at_s - horizon_s
        first = next(n for n, each in enumerate((*self.samples, sample)) if each.at_s >= oldest_s)
        return Window((*self.samples[first:], sample))

    @property
    def last(self) -> Sample | None:
        return self.samples[-1] if self.samples else None


class Held(Enum):
    """Whether something was so for all of a time."""

    YES = "yes"
    NO = "no"
    TOO_SHORT = "too short a time is known"
    GAP = "samples are missing"
    TOO_FEW = "too few samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The answer, and the time that it speaks of. `since_s`: from when on it has held without a break."""

    held: Held
    from_s: float
    to_s: float
    count: int
    since_s: float | None = None


def held_for(
    series: Series, seconds: float, is_so: Callable[[float], bool], *, samples_min: int, gap_max_s: float
) -> Sight:
    """Whether `is_so` held for the last `seconds`. One sample where it did not is enough for a NO.

    The sample at the left edge of that time, or the one before the edge, has to be there.
    """
    if not series:
        return Sight(held=Held.TOO_FEW, from_s=0.0, to_s=0.0, count=0)
    to_s = series[-1][0]
    edge_s = to_s - seconds + EDGE_S
    first = next((n for n in range(len(series) - 1, -1, -1) if series[n][0] <= edge_s), 0)
    seen = series[first:] if seconds > 0 else series[-1:]

    def sight(held: Held, since_s: float | None = None) -> Sight:
        return Sight(held=held, from_s=seen[0][0], to_s=to_s, count=len(seen), since_s=since_s)

    wrong = next((n for n in range(len(seen) - 1, -1, -1) if not is_so(seen[n][1])), None)
    since_s = seen[0][0] if wrong is None else seen[wrong + 1][0] if wrong + 1 < len(seen) else None
    if wrong is not None:
        return sight(Held.NO, since_s)
    if any(after[0] - before[0] > gap_max_s for before, after in pairwise(seen)):
        return sight(Held.GAP, since_s)
    if seconds > 0 and seen[0][0] > edge_s:
        return sight(Held.TOO_SHORT, since_s)
    if seconds > 0 and len(seen) < samples_min:
        return sight(Held.TOO_FEW, since_s)
    return sight(Held.YES, since_s)


def since(series: Series, from_s: float) -> Series:
    """The end of a series from `from_s` on."""
    first = next((n for n, (at_s, _) in enumerate(series) if at_s >= from_s - EDGE_S), len(series))
    return series[first:]


def smoothed(series: Series, how: str, samples: int) -> Series:
    """Each value with those before it. `median` forgets a blip of one sample in three, `average` spreads
    it.
    """
    if how == "none" or samples == 1:
        return series
    middle: Callable[[Sequence[float]], float] = fmean if how == "average" else median
    values = [value for _, value in series]
    return [(at_s, middle(values[max(0, n - samples + 1) : n + 1])) for n, (at_s, _) in enumerate(series)]


def slope_per_s(series: Series) -> float | None:
    """Theil and Sen's: the median of the slopes between pairs, which a third of wrong points does not move.

    Long series are thinned out: 60 points make 1,770 pairs.
    """
    points = series[:: max(1, len(series) // 60)]
    slopes = [
        (later - earlier) / (later_s - earlier_s)
        for n, (earlier_s, earlier) in enumerate(points)
        for later_s, later in points[n + 1 :]
        if later_s > earlier_s
    ]
    return median(slopes) if slopes else None


def rate_per_s(samples: Sequence[Sample], partitions: frozenset[int], what: str) -> float | None:
    """Records a second by which `committed` or `log_end` moved forward. A step back counts as standing still:
    it is a reset, not work undone."""
    if len(samples) < 2 or samples[-1].at_s <= samples[0].at_s:
        return None
    moved = 0
    last: dict[int, int] = {}
    for sample in samples:
        for each in sample.partitions:
            value: int | None = getattr(each, what)
            if value is None or each.unknown is not None or each.partition not in partitions:
                continue
            moved += max(0, value - last.get(each.partition, value))
            last[each.partition] = value
    return moved / (samples[-1].at_s - samples[0].at_s)


def age_s(samples: Sequence[Sample], partition: int, position: int) -> float | None:
    """How long ago the log's end passed `position`: so long its first unread record has waited, at least.

    None: nothing waits. No record is read for this: the ends that were sampled tell when each offset was new.
    """
    last = samples[-1].of(partition)
    if last is None or last.log_end <= position:
        return None
    now_s = samples[-1].at_s
    waits_s = now_s
    for sample in reversed(samples):
        seen = sample.of(partition)
        if seen is None or seen.unknown is not None:
            continue
        if seen.log_end <= position:
            break
        waits_s = sample.at_s
    return now_s - waits_s
