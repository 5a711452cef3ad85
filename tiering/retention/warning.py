"""A word before data is lost: when the broker's own retention reaches the frontier, against the upload (T7).

    expires_in   until the broker may delete the first segment that is not wholly in the tier
                   by time: that segment's newest record, or that of any before it, and the retention;
                   by size: until enough bytes lie behind it, at the rate at which the log now grows
    copied_in    until all that is closed is in the tier, at the rate at which it is now copied

A broker deletes in order, so one young segment keeps all behind it; it rolls and deletes the active segment
too, once that has expired, and no uploader gets to see it closed. What has not been seen for long enough to
have a rate has none: a topic is warned of by what is certain, its margin.

Owns the prediction, and that it is said once an approach: again only after the danger was clearly over.
Refuses to look at a disk or a clock, and to say that anything was lost: a gap record says that.

Invariant: before each deletion by time of a segment that is not wholly in the tier, the observation before it
was overtaking, provided that observations are closer than the margin and no record is older than that when
it is written. `warns` is true at most once between two observations that are `clear`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NEVER_MS = -1  # in events: not at the present rate

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


class Piece(NamedTuple):
    """A segment on the leader's disk. `end_offset` is None for the active one, which is the last."""

    base_offset: int
    end_offset: int | None
    size_bytes: int
    newest_ms: int  # by which the broker's retention goes


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLimits:
    """When the broker deletes from its own disk; None: never."""

    local_ms: int | None
    local_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningSettings:
    """`margin_ms`: how long before the end there is a word in any case; a quarter of the retention at most.

    `horizon_ms`: how far ahead a copy that stands still is warned of; half of the retention at most.
    `window_ms`: over which rates are taken.
    """

    margin_ms: int = 30 * MINUTE_MS
    horizon_ms: int = 6 * HOUR_MS
    window_ms: int = 30 * MINUTE_MS
    samples_max: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One log at one moment. `pieces` by rising base; what ends at or below `frontier` is in the tier."""

    at_ms: int
    frontier: int
    pieces: tuple[Piece, ...]
    limits: BrokerLimits

    @property
    def waiting_bytes(self) -> int:
        """Closed, and not wholly in the tier."""
        return sum(
            each.size_bytes
            for each in self.pieces
            if each.end_offset is not None and each.end_offset > self.frontier
        )

    @property
    def first_uncopied(self) -> int | None:
        """The place of the first piece with anything that is not in the tier."""
        for place, piece in enumerate(self.pieces):
            is_open = piece.end_offset is None
            if (is_open and piece.size_bytes) or (piece.end_offset or 0) > self.frontier:
                return place
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approach:
    """What is to be expected. None: not at the present rates."""

    frontier: int
    local_start: int
    expires_in_ms: int | None
    copied_in_ms: int | None
    lag_bytes: int
    is_overtaking: bool
    is_clear: bool
    warns: bool  # for the first time in this approach

    @property
    def expires_in_s(self) -> float:
        """For a gauge; infinite where nothing will expire."""
        return math.inf if self.expires_in_ms is None else self.expires_in_ms / 1000

    @property
    def copied_in_s(self) -> float:
        return math.inf if self.copied_in_ms is None else self.copied_in_ms / 1000


class Sample(NamedTuple):
    """What had been written and copied in all, at one moment, since the log was first seen."""

    at_ms: int
    appended_bytes: int
    copied_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """All that is remembered of a log between two looks."""

    last: Seen
    samples: tuple[Sample, ...]
    waiting_since_ms: int | None  # there is something to copy, and none of it was copied since
    was_told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Bytes a millisecond; None: not seen for long enough."""

    growth: float | None = None
    copying: float | None = None
    stands_still: bool = field(default=False)  # there was something to copy for a whole window, and none was


def observe(before: Watched | None, seen: Seen, settings: WarningSettings) -> tuple[Watched, Approach]:
    """What a look at a log comes to, and what to remember of it."""
    samples = _sampled(before, seen, settings)
    waiting_since_ms = _waiting_since(before, seen, samples)
    rates = _rates(samples, seen, waiting_since_ms, settings)
    expires_in_ms = expires_in(seen, rates.growth)
    needs_ms = _needs(seen, rates, settings)
    is_overtaking = expires_in_ms is not None and expires_in_ms <= needs_ms
    is_clear = expires_in_ms is None or expires_in_ms > 2 * needs_ms
    was_told = before is not None and before.was_told and not is_clear
    watched = Watched(
        last=seen,
        samples=samples,
        waiting_since_ms=waiting_since_ms,
        was_told=was_told or is_overtaking,
    )
    return watched, Approach(
        frontier=seen.frontier,
        local_start=seen.pieces[0].base_offset if seen.pieces else seen.frontier,
        expires_in_ms=expires_in_ms,
        copied_in_ms=_copied_in(seen, rates),
        lag_bytes=seen.waiting_bytes,
        is_overtaking=is_overtaking,
        is_clear=is_clear,
        warns=is_overtaking and not was_told,
    )


def expires_in(seen: Seen, growth: float | None) -> int | None:
    """Until the broker may delete the first piece that is not in the tier; None: not at this growth."""
    place = seen.first_uncopied
    if place is None:
        return None
    by_either = [_by_time(seen, place), _by_size(seen, place, growth)]
    return min((each for each in by_either if each is not None), default=None)


def _by_time(seen: Seen, place: int) -> int | None:
    if seen.limits.local_ms is None:
        return None
    newest_ms = max(each.newest_ms for each in seen.pieces[: place + 1])
    return max(0, newest_ms + seen.limits.local_ms - seen.at_ms)


def _by_size(seen: Seen, place: int, growth: float | None) -> int | None:
    limit = seen.limits.local_bytes
    if limit is None:
        return None
    missing = limit - sum(each.size_bytes for each in seen.pieces[place + 1 :])
    if missing <= 0:
        return 0
    return int(missing / growth) if growth else None


def _copied_in(seen: Seen, rates: Rates) -> int | None:
    if not seen.waiting_bytes:
        return 0
    return int(seen.waiting_bytes / rates.copying) if rates.copying else None


def _needs(seen: Seen, rates: Rates, settings: WarningSettings) -> int:
    """How long before the end there has to be a word: the margin, and the time that copying takes."""
    margin_ms, horizon_ms = settings.margin_ms, settings.horizon_ms
    if seen.limits.local_ms is not None:
        margin_ms = min(margin_ms, seen.limits.local_ms // 4)
        horizon_ms = min(horizon_ms, seen.limits.local_ms // 2)
    copied_in_ms = _copied_in(seen, rates)
    if copied_in_ms is None:
        copied_in_ms = horizon_ms if rates.stands_still else 0
    return margin_ms + min(copied_in_ms, horizon_ms)


def _sampled(before: Watched | None, seen: Seen, settings: WarningSettings) -> tuple[Sample, ...]:
    """The samples of the window and the one before it, so that they span it."""
    if before is None or seen.at_ms <= before.last.at_ms:
        return (Sample(seen.at_ms, 0, 0),)
    last = before.samples[-1]
    sample = Sample(
        seen.at_ms,
        last.appended_bytes + appended(before.last, seen),
        last.copied_bytes + copied(before.last, seen),
    )
    samples = [*before.samples, sample]
    while len(samples) > 2 and samples[1].at_ms <= seen.at_ms - settings.window_ms:
        samples.pop(0)
    if len(samples) > settings.samples_max:
        del samples[1:-1:2]  # every other one: the window stays as long
    return tuple(samples)


def appended(before: Seen, now: Seen) -> int:
    """Bytes that were written between two looks, what was deleted since not counted."""
    if not before.pieces:
        return sum(each.size_bytes for each in now.pieces)
    active = before.pieces[-1]
    newer = sum(each.size_bytes for each in now.pieces if each.base_offset > active.base_offset)
    same = sum(each.size_bytes for each in now.pieces if each.base_offset == active.base_offset)
    return newer + max(0, same - active.size_bytes)


def copied(before: Seen, now: Seen) -> int:
    """Bytes that came to lie below the frontier between two looks."""
    every = {each.base_offset: each for each in (*before.pieces, *now.pieces) if each.end_offset is not None}
    return sum(
        each.size_bytes
        for each in every.values()
        if each.end_offset is not None and before.frontier < each.end_offset <= now.frontier
    )


def _waiting_since(before: Watched | None, seen: Seen, samples: Sequence[Sample]) -> int | None:
    if not seen.waiting_bytes:
        return None
    has_copied = len(samples) > 1 and samples[-1].copied_bytes > samples[-2].copied_bytes
    since_ms = before.waiting_since_ms if before is not None else None
    return seen.at_ms if has_copied or since_ms is None else since_ms


def _rates(
    samples: Sequence[Sample], seen: Seen, waiting_since_ms: int | None, settings: WarningSettings
) -> Rates:
    first, last = samples[0], samples[-1]
    span_ms = last.at_ms - first.at_ms
    if span_ms <= 0:
        return Rates()
    stands_still = waiting_since_ms is not None and seen.at_ms - waiting_since_ms >= settings.window_ms
    return Rates(
        growth=(last.appended_bytes - first.appended_bytes) / span_ms,
        copying=(last.copied_bytes - first.copied_bytes) / span_ms,
        stands_still=stands_still,
    )
