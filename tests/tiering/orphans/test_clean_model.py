"""Cleaning up beside uploaders, removers and restorers: what counts stays, and what is dead goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.tiering.orphans.world import DELETED, FINISHED, STARTED, Killed, World
from tests.tiering.segments.strategies import LOG
from tiering.orphans.judge import GRACE_MS, Judged
from tiering.segments.records import SegmentId
from tiering.segments.rows import Standing

pytestmark = pytest.mark.slow

PICK = st.integers(min_value=0, max_value=50)
STEPS = st.integers(min_value=1, max_value=6)
GRACES = st.sampled_from([0, GRACE_MS])
MEDDLERS = st.dictionaries(st.integers(1, 12), st.tuples(PICK, STEPS), max_size=3)


class CleaningModel(RuleBasedStateMachine):
    """What may happen to a bucket, and what must hold whatever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.claim()
        self.uploads: list[Iterator[None]] = []
        self.restores: list[Iterator[None]] = []
        self.removals: list[Iterator[None]] = []
        self.expired: set[SegmentId] = set()
        self.before: set[SegmentId] = set()
        self.planned: list[Judged] = []

    def advance(self, among: list[Iterator[None]], pick: int, steps: int) -> None:
        if among:
            one = among[pick % len(among)]
            for _ in range(steps):
                next(one, None)

    @rule(base=st.integers(min_value=0, max_value=9), steps=STEPS)
    def begin_an_upload(self, base: int, steps: int) -> None:
        self.uploads.append(self.world.upload(base))
        self.advance(self.uploads, len(self.uploads) - 1, steps)

    @rule(pick=PICK, steps=STEPS)
    def go_on_with_an_upload(self, pick: int, steps: int) -> None:
        self.advance(self.uploads, pick, steps)

    @rule()
    def claim(self) -> None:
        self.world.claim()

    @rule(pick=PICK, steps=STEPS)
    def begin_a_removal(self, pick: int, steps: int) -> None:
        """Of a copy that expires, or of an attempt that its own agent gives up."""
        if there := self.world.in_state(FINISHED, STARTED):
            segment_id = there[pick % len(there)]
            self.expired.add(segment_id)
            self.removals.append(self.world.remove(segment_id))
            self.advance(self.removals, len(self.removals) - 1, steps)

    @rule(pick=PICK, steps=STEPS)
    def go_on_with_a_removal(self, pick: int, steps: int) -> None:
        """Not below a restore: who restores must know the removal ended (see the page on restores)."""
        if not self.restores:
            self.advance(self.removals, pick, steps)

    @rule(pick=PICK, steps=STEPS)
    def begin_a_restore(self, pick: int, steps: int) -> None:
        gone = [each for each in self.world.in_state(DELETED) if self.is_whole(each)]
        if gone:
            self.removals.clear()
            self.expired.discard(gone[pick % len(gone)])
            self.restores.append(self.world.restore(gone[pick % len(gone)]))
            self.advance(self.restores, len(self.restores) - 1, steps)

    def is_whole(self, segment_id: SegmentId) -> bool:
        record = self.world.segment(LOG, segment_id)
        return record is not None and record.objects.log is not None

    @rule(pick=PICK, steps=STEPS)
    def go_on_with_a_restore(self, pick: int, steps: int) -> None:
        self.advance(self.restores, pick, steps)

    @rule()
    def a_day_passes(self) -> None:
        """A restore that takes a day is dead; an upload may well go on."""
        self.restores.clear()
        self.world.now_ms += GRACE_MS + 1

    @rule(start=st.integers(min_value=0, max_value=9))
    def hold(self, start: int) -> None:
        self.world.hold((start, start + 4))

    @rule()
    def release_the_holds(self) -> None:
        self.world.hold()

    @rule(grace_ms=GRACES)
    def look_around(self, grace_ms: int) -> None:
        self.planned, _ = self.world.look_around(grace_ms)

    @rule(
        meddlers=MEDDLERS,
        dies_at=st.none() | st.integers(1, 12),
        lag=st.sampled_from([0, 0, 0, 1, 2, 5]),
        no_grace=st.booleans(),
    )
    def clean_up(
        self, meddlers: dict[int, tuple[int, int]], dies_at: int | None, lag: int, no_grace: bool
    ) -> None:
        """By an old plan, by a table that may be behind, beside uploads that go on, up to its death."""

        def meddle(effect: int) -> None:
            if effect == dies_at:
                raise Killed
            if effect in meddlers:
                self.advance(self.uploads, *meddlers[effect])

        self.world.meddle, self.world.lag = meddle, lag
        # Without a grace nothing but uploads may be under way: only the grace keeps restores apart.
        grace_ms = 0 if no_grace and not self.restores else GRACE_MS
        self.world.clean_up(self.planned, grace_ms)
        self.world.lag = 0

    @invariant()
    def what_is_referenced_is_there(self) -> None:
        """Each object of a copy that counts is live."""
        assert self.world.referenced() <= self.world.live()

    @invariant()
    def what_counts_goes_on_counting(self) -> None:
        """Only expiry ends a committed copy, whatever was planned before it was one."""
        now = set(self.world.committed())
        assert self.before - self.expired <= now
        self.before = now

    def teardown(self) -> None:
        """Left alone, a day later, one run leaves the committed copies, and nothing else live or begun."""
        world = self.world
        world.hold()
        world.now_ms += GRACE_MS + 1
        planned, foreign = world.look_around()
        kept = [outcome.kept for outcome in world.clean_up(planned) if outcome.kept is not None]
        assert (kept, foreign) == ([], ())
        assert world.live() == world.referenced()
        assert world.store.kept.uploads == {}
        assert world.states() <= {(Standing.FOLLOWED, FINISHED), (Standing.FOLLOWED, DELETED)}


SETTINGS = settings(
    max_examples=40,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestCleaningModel = CleaningModel.TestCase
TestCleaningModel.settings = SETTINGS
