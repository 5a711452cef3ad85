"""The word before a loss: when it is said, that it comes in time, and that it comes once."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiering.retention.warning import (
    HOUR_MS,
    MINUTE_MS,
    Approach,
    BrokerLimits,
    Piece,
    Seen,
    WarningSettings,
    Watched,
    appended,
    copied,
    expires_in,
    observe,
)

pytestmark = pytest.mark.slow

SETTINGS = WarningSettings()
DAY = BrokerLimits(local_ms=24 * HOUR_MS, local_bytes=None)
START_MS = 1_800_000_000_000


def seen(*pieces: Piece, at_ms: int = START_MS, frontier: int = 0, limits: BrokerLimits = DAY) -> Seen:
    return Seen(at_ms=at_ms, frontier=frontier, pieces=pieces, limits=limits)


def aged(base: int, *, hours: float, size: int = 100, is_open: bool = False) -> Piece:
    """A hundred offsets whose newest record is so old."""
    return Piece(base, None if is_open else base + 100, size, START_MS - int(hours * HOUR_MS))


def test_by_time_it_is_the_first_uncopied_segments_newest_record() -> None:
    """Segments that are in the tier may go; the first that is not counts, by its newest record."""
    look = seen(aged(0, hours=23), aged(100, hours=20), aged(200, hours=1), frontier=100)

    assert expires_in(look, None) == 4 * HOUR_MS


def test_a_young_segment_keeps_all_behind_it() -> None:
    """A broker deletes in order: an older segment behind a younger one waits for that."""
    look = seen(aged(0, hours=1), aged(100, hours=30), frontier=100)

    assert expires_in(look, None) == 23 * HOUR_MS


def test_by_size_it_is_when_enough_lies_behind() -> None:
    """The broker deletes a segment when what is behind it is enough; at a growth of none it never is."""
    limits = BrokerLimits(local_ms=None, local_bytes=500)
    look = seen(aged(0, hours=1), aged(100, hours=1), aged(200, hours=1, is_open=True), limits=limits)

    assert expires_in(look, 0.5) == 600
    assert expires_in(look, 0.0) is None
    assert expires_in(replace(look, limits=BrokerLimits(local_ms=None, local_bytes=200)), None) == 0
    assert expires_in(replace(look, limits=BrokerLimits(local_ms=10 * HOUR_MS, local_bytes=500)), 0.5) == 600


def test_an_idle_topics_active_segment_counts() -> None:
    """The broker rolls and deletes it once it has expired, and nobody gets to copy it."""
    look = seen(aged(0, hours=30), aged(100, hours=23.9, is_open=True), frontier=100)
    assert expires_in(look, None) == 6 * MINUTE_MS
    _, approach = observe(None, look, SETTINGS)
    assert approach.warns

    empty = seen(aged(0, hours=30), Piece(100, None, 0, START_MS - 30 * HOUR_MS), frontier=100)
    assert expires_in(empty, None) is None


def test_what_is_all_in_the_tier_is_no_danger() -> None:
    """The gauge is infinite, and there is nothing to copy."""
    look = seen(aged(0, hours=30), Piece(100, None, 0, START_MS), frontier=100)

    _, approach = observe(None, look, SETTINGS)

    assert (approach.expires_in_s, approach.copied_in_s, approach.lag_bytes) == (math.inf, 0.0, 0)
    assert approach.is_clear


def test_a_slow_copy_is_told_of_before_its_margin() -> None:
    """Two hours of copying at the rate that is seen, and two hours left: now, not at the margin."""
    pieces = [aged(base * 100, hours=22, size=1000) for base in range(13)]
    watched, first = observe(None, seen(*pieces), SETTINGS)
    assert (first.copied_in_ms, first.warns) == (None, False)

    later = START_MS + 10 * MINUTE_MS
    watched, second = observe(watched, seen(*pieces, at_ms=later, frontier=100), SETTINGS)

    assert second.copied_in_ms == 2 * HOUR_MS
    assert second.expires_in_ms == 2 * HOUR_MS - 10 * MINUTE_MS
    assert second.warns


def test_a_copy_that_stands_still_is_told_of_at_the_horizon() -> None:
    """Nothing was copied for a whole window: there is a word hours ahead, not in the first minute."""
    piece = aged(0, hours=18)
    watched, first = observe(None, seen(piece), SETTINGS)
    assert not first.warns

    later = START_MS + SETTINGS.window_ms
    _, second = observe(watched, seen(piece, at_ms=later), SETTINGS)

    assert second.expires_in_ms == 6 * HOUR_MS - SETTINGS.window_ms
    assert second.warns


def test_a_short_retention_is_not_all_margin() -> None:
    """Ten minutes of retention: what was closed a minute ago is no alarm, what is about to go is one."""
    limits = BrokerLimits(local_ms=10 * MINUTE_MS, local_bytes=None)

    _, fresh = observe(None, seen(aged(0, hours=1 / 60), limits=limits), SETTINGS)
    _, late = observe(None, seen(aged(0, hours=8 / 60), limits=limits), SETTINGS)

    assert (fresh.warns, late.warns) == (False, True)


def test_growth_and_copying_are_counted_over_deletions_and_rolls() -> None:
    """What is written is counted although the head went; what is copied, by where the frontier passed."""
    before = seen(aged(0, hours=2), aged(100, hours=1), Piece(200, None, 40, START_MS))
    after = seen(
        aged(100, hours=1), Piece(200, 300, 100, START_MS), Piece(300, None, 7, START_MS), frontier=200
    )

    assert appended(before, after) == 67
    assert copied(before, after) == 200


class Log:
    """A broker's log in virtual time: it grows, rolls, is copied and deleted, and is looked at."""

    def __init__(self, limits: BrokerLimits) -> None:
        self.now_ms, self.limits, self.frontier = START_MS, limits, 0
        self.closed: list[Piece] = []
        self.active = Piece(0, None, 0, START_MS)
        self.watched: Watched | None = None
        self.approach: Approach | None = None
        self.warnings: list[int] = []
        self.clear_since_warning = True
        self.lost_untold: list[int] = []
        self.lost = 0

    def produce(self, size: int) -> None:
        self.active = Piece(self.active.base_offset, None, self.active.size_bytes + size, self.now_ms)

    def roll(self) -> None:
        if self.active.size_bytes:
            end = self.active.base_offset + 1
            self.closed.append(self.active._replace(end_offset=end))
            self.active = Piece(end, None, 0, self.now_ms)

    def copy(self, count: int) -> None:
        for piece in [each for each in self.closed if (each.end_offset or 0) > self.frontier][:count]:
            self.frontier = piece.end_offset or 0

    def retention(self) -> None:
        """What a broker deletes now, from the front."""
        while self.closed or self.active.size_bytes:
            if not self.closed:
                self.roll()
            first, behind = self.closed[0], [*self.closed[1:], self.active]
            limit_ms, limit_bytes = self.limits.local_ms, self.limits.local_bytes
            is_old = limit_ms is not None and self.now_ms - first.newest_ms > limit_ms
            is_much = limit_bytes is not None and sum(each.size_bytes for each in behind) >= limit_bytes
            if not (is_old or is_much):
                return
            self.closed.pop(0)
            if (first.end_offset or 0) > self.frontier:
                self.lost += 1
                if self.approach is None or not self.approach.is_overtaking:
                    self.lost_untold.append(first.base_offset)
                self.frontier = max(self.frontier, first.end_offset or 0)  # a gap is recorded

    def look(self) -> None:
        at = Seen(
            at_ms=self.now_ms,
            frontier=self.frontier,
            pieces=(*self.closed, self.active),
            limits=self.limits,
        )
        self.watched, self.approach = observe(self.watched, at, SETTINGS)
        if self.approach.is_clear:
            self.clear_since_warning = True
        if self.approach.warns:
            assert self.clear_since_warning, "a second word in one approach"
            self.warnings.append(self.now_ms)
            self.clear_since_warning = False


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["produce", "idle", "roll", "copy", "copy_all"]), st.integers(1, 1000), st.booleans()
    ),
    max_size=150,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS, hours=st.sampled_from([2, 5, 24]), tail=st.sampled_from(["", "idle", "produce"]))
def test_no_segment_expires_by_time_without_a_word_before(
    steps: list[tuple[str, int, bool]], hours: int, tail: str
) -> None:
    """Whatever is produced, copied or not: each uncopied segment was told of at the look before, once."""
    log = Log(BrokerLimits(local_ms=hours * HOUR_MS, local_bytes=None))
    log.look()
    for what, size, _ in [*steps, *[(tail, 500, False)] * (150 if tail else 0)]:
        if what == "produce":
            log.produce(size)
        elif what == "roll":
            log.roll()
        elif what in ("copy", "copy_all"):
            log.copy(1 if what == "copy" else 1000)
        log.look()
        log.now_ms += 10 * MINUTE_MS
        log.retention()

    assert log.lost_untold == []
    assert not log.lost or log.warnings


@settings(deadline=None, max_examples=60)
@given(growth=st.integers(1, 400), limit=st.integers(5_000, 50_000), stops_at=st.integers(0, 60))
def test_no_segment_expires_by_size_without_a_word_at_a_steady_growth(
    growth: int, limit: int, stops_at: int
) -> None:
    """A log that grows evenly, and whose copying ends one day: the word comes before the first loss."""
    log = Log(BrokerLimits(local_ms=None, local_bytes=limit))
    for minute in range(1200):
        log.produce(growth)
        if minute % 10 == 0:
            log.roll()
            if minute < stops_at:
                log.copy(1000)
        log.look()
        log.now_ms += MINUTE_MS
        log.retention()
        if log.lost:
            break

    assert log.lost_untold == []
    assert not log.lost or log.warnings


PIECES = st.lists(st.tuples(st.integers(1, 1000), st.integers(-30, 30)), min_size=1, max_size=8)


@given(
    sizes=PIECES,
    frontiers=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    growth=st.none() | st.floats(0.001, 10),
    limits=st.builds(
        BrokerLimits,
        local_ms=st.none() | st.integers(1, 48).map(lambda hours: hours * HOUR_MS),
        local_bytes=st.none() | st.integers(1, 5000),
    ),
)
def test_a_frontier_further_on_never_expires_sooner(
    sizes: list[tuple[int, int]], frontiers: tuple[int, int], growth: float | None, limits: BrokerLimits
) -> None:
    """More in the tier is never more danger."""
    last = len(sizes) - 1
    pieces = [
        Piece(place, None if place == last else place + 1, size, START_MS + hours * HOUR_MS)
        for place, (size, hours) in enumerate(sizes)
    ]
    behind, ahead = sorted(frontiers)

    sooner = expires_in(seen(*pieces, frontier=behind, limits=limits), growth)
    later = expires_in(seen(*pieces, frontier=ahead, limits=limits), growth)

    assert (math.inf if later is None else later) >= (math.inf if sooner is None else sooner)
