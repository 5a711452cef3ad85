"""A group as its window shows it: the lag that counts, how it moves, and the rates. Pure.

The partitions that count are those that count now, for all of the window: one that is left out does not look
like lag that was worked off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from workers.scaler import window as windows
from workers.scaler.options import Options
from workers.scaler.triage import judge_partition, lag_of
from workers.scaler.values import JudgedPartition, PartitionSample, PartitionVerdict, Sample
from workers.scaler.window import Series, Sight, Window

RECOVERING_SHARE = 0.005  # of the lag, by which it must fall in the time: less is noise around a level
RECENT_SHARE = 1 / 3  # of the time, in which it must not rise again


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`lag` is smoothed and of the partitions that count; `waiting` is as sampled, of all that are known."""

    now_s: float
    members: int
    judged: tuple[JudgedPartition, ...]
    lag: Series
    waiting: Series
    persistent: Sight
    low: Sight
    idle: Sight
    is_recovering: bool
    age_s: float | None
    produced_per_s: float | None
    consumed_per_s: float | None
    settled_per_s: float | None  # consumed, by the members that are there now
    is_busy: bool  # in all of that time there was enough for them to do
    ends_moved: int  # records that came in the time in which a group would be idle

    @property
    def lag_now(self) -> float:
        return self.lag[-1][1] if self.lag else 0.0

    @property
    def has_unknown(self) -> bool:
        return any(each.verdict is PartitionVerdict.UNKNOWN for each in self.judged)

    @property
    def has_stuck(self) -> bool:
        return any(
            each.verdict in (PartitionVerdict.STALLED, PartitionVerdict.POISONED) for each in self.judged
        )


def measure(options: Options, window: Window, *, tails: Mapping[int, int], settled_s: float | None) -> Group:
    """`settled_s`: since when the members are the same; None: as long as anybody has looked."""
    samples = window.samples
    last = samples[-1]
    asked = frozenset(options.partitions)
    numbers = [each.partition for each in last.partitions if not asked or each.partition in asked]
    judged = tuple(judge_partition(number, samples, options, tails=tails) for number in numbers)
    counted = frozenset(each.partition for each in judged if each.is_counted)
    tail = frozenset(each.partition for each in judged if each.verdict is PartitionVerdict.MARKER_TAIL)
    known = frozenset(each.partition for each in judged if each.verdict is not PartitionVerdict.UNKNOWN)
    raw = _lags(samples, counted - tail, options)
    waiting = _lags(samples, known - tail, options)
    lag = windows.smoothed(raw, options.smoothing, options.smoothing_samples)
    ages = [each.age_s for each in judged if each.is_counted and each.age_s is not None]
    sustained = _since(samples, last.at_s - options.sustain_s)
    settled = sustained if settled_s is None else _since(sustained, settled_s)
    is_long = len(settled) >= options.min_samples
    busy = is_long and all(
        value >= options.lag_threshold_exit and value > 0 for _, value in windows.since(raw, settled[0].at_s)
    )
    return Group(
        now_s=last.at_s,
        members=last.members,
        judged=judged,
        lag=lag,
        waiting=waiting,
        persistent=_held(_with_dips(raw, lag, options), options.sustain_s, options.lag_threshold, options),
        low=_held(lag, options.release_s, None, options),
        idle=windows.held_for(
            waiting,
            options.release_s,
            lambda value: value <= options.activation_lag,
            samples_min=options.min_samples,
            gap_max_s=options.gap_max_s,
        ),
        is_recovering=_is_recovering(lag, options),
        age_s=max(ages, default=None),
        produced_per_s=windows.rate_per_s(sustained, counted, "log_end"),
        consumed_per_s=windows.rate_per_s(sustained, counted, "committed"),
        settled_per_s=windows.rate_per_s(settled, counted, "committed") if is_long else None,
        is_busy=busy,
        ends_moved=_ends_moved(_since(samples, last.at_s - options.release_s), known),
    )


def _held(lag: Series, seconds: float, threshold: int | None, options: Options) -> Sight:
    """At or above the threshold; without one, at or below the exit."""
    exit_lag = options.lag_threshold_exit
    return windows.held_for(
        lag,
        seconds,
        (lambda value: value <= exit_lag) if threshold is None else (lambda value: value >= threshold),
        samples_min=options.min_samples,
        gap_max_s=options.gap_max_s,
    )


def _with_dips(raw: Series, lag: Series, options: Options) -> Series:
    """Smoothed, but where a sample was down at the exit: a group that was there has caught up, however
    shortly. Of consumers that commit once a minute no more than that is seen."""
    exit_lag = options.lag_threshold_exit
    return [low if low[1] <= exit_lag else even for low, even in zip(raw, lag, strict=True)]


def _since(samples: tuple[Sample, ...], from_s: float) -> tuple[Sample, ...]:
    return tuple(sample for sample in samples if sample.at_s >= from_s - windows.EDGE_S)


def _lags(samples: tuple[Sample, ...], partitions: frozenset[int], options: Options) -> Series:
    """A sample in which one of these partitions is not known, though it was there, has no sum."""
    firsts: dict[int, PartitionSample] = {}
    series = []
    for sample in samples:
        total = 0
        is_whole = True
        for each in sample.partitions:
            if each.partition not in partitions:
                continue
            if each.unknown is not None:
                is_whole = False
                break
            first = firsts.setdefault(each.partition, each)
            total += lag_of(each, sample, first, options)
        if is_whole:
            series.append((sample.at_s, float(total)))
    return series


def _is_recovering(lag: Series, options: Options) -> bool:
    """It falls over the whole of the time, and does not rise at its end."""
    if not lag:
        return False
    now_s, value = lag[-1]
    whole = windows.since(lag, now_s - options.sustain_s)
    slope = windows.slope_per_s(whole)
    if slope is None or slope >= 0:
        return False
    recent = windows.slope_per_s(
        windows.since(lag, now_s - max(options.sustain_s * RECENT_SHARE, 2 * options.sampling_interval_s))
    )
    if recent is not None and recent > 0:
        return False
    never_rose = all(after[1] <= before[1] for before, after in pairwise(whole))
    return never_rose or -slope * (now_s - whole[0][0]) >= max(1.0, RECOVERING_SHARE * value)


def _ends_moved(samples: tuple[Sample, ...], partitions: frozenset[int]) -> int:
    moved = 0
    for partition in sorted(partitions):
        ends = [
            each.log_end
            for each in (sample.of(partition) for sample in samples)
            if each is not None and each.unknown is None
        ]
        moved += max(0, ends[-1] - ends[0]) if ends else 0
    return moved
