"""After any deletions inside the window the plan says exactly what can be had back, and apply has just that.

What can be had is defined here anew, offset by offset, from the bytes in the bucket alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backup.errors import GapInTheMiddle, NothingToRestore
from backup.plan import Plan
from tests.backup.world import DELETED, DELETING, FINISHED, KINDS, World
from tests.tiering.segments.strategies import LOG
from tiering.segments.records import SegmentRecord
from tiering.segments.rows import Standing
from tiering.store.interface import checksum_text, crc64

COPIES = 6

_WIDTHS = st.lists(st.integers(1, 6), min_size=1, max_size=COPIES)
_ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("expire"), st.integers(0, COPIES)),
        st.tuples(st.just("remove"), st.integers(0, COPIES - 1), st.integers(1, 5)),
        st.tuples(st.just("mark"), st.integers(0, COPIES - 1), st.sampled_from(KINDS)),
        st.tuples(st.just("lifecycle"), st.integers(0, COPIES - 1), st.sampled_from(KINDS)),
        st.tuples(st.just("latest goes"), st.integers(0, COPIES - 1), st.sampled_from(KINDS)),
        st.tuples(st.just("forget"), st.integers(0, COPIES - 1)),
        st.tuples(st.just("copy again"), st.integers(0, COPIES - 1), st.integers(1, COPIES)),
        st.tuples(st.just("restore")),
        st.tuples(st.just("claim")),
    ),
    max_size=10,
)


class Story:
    """A world, every copy that was ever made in it, and what was done to them."""

    def __init__(self, widths: list[int]) -> None:
        self.world = World()
        self.made: list[SegmentRecord] = []
        at = 0
        for width in widths:
            self.made.append(self.world.copy(at, at + width))
            at += width
        self.end = at
        self.first = len(self.made)

    def do(self, act: tuple[Any, ...]) -> None:
        self.world.now_ms += 1000
        if len(act) > 1 and act[1] >= self.first:
            return
        match act:
            case ("expire", place):
                if self.made[place].base_offset > self.world.record.log_start:
                    self.world.change(keep_until_ms=None)
                    self.world.expire_below(self.made[place].base_offset)
            case ("remove", place, until):
                self._remove(self.made[place], until)
            case ("mark", place, kind):
                self.world.store.mark_deleted(f"{self.made[place].key_stem}.{kind}")
            case ("lifecycle", place, kind):
                self.world.lifecycle_takes(f"{self.made[place].key_stem}.{kind}")
            case ("latest goes", place, kind):
                self._drop_latest(f"{self.made[place].key_stem}.{kind}")
            case ("forget", place):
                self._forget(self.made[place])
            case ("copy again", place, count):
                last = self.made[min(place + count, self.first) - 1]
                base = self.made[place].base_offset
                self.made.append(self.world.copy(base, last.end_offset, epochs=((0, base),)))
            case ("restore",):
                with suppress(NothingToRestore):
                    self.world.apply(self.world.plan())
            case ("claim",):
                self.world.claim()

    def _drop_latest(self, key: str) -> None:
        """Somebody else's delete of a version, below a marker."""
        *below, top = self.world.kept.objects[key]
        latest = next((each for each in reversed(below) if not each.is_marker), None)
        if top.is_marker and latest is not None:
            self.world.kept.objects[key] = [each for each in (*below, top) if each is not latest]

    def _forget(self, made: SegmentRecord) -> None:
        record = self.world.segment(LOG, made.segment_id)
        if record is not None and record.state is DELETED:
            self.world.forget(record)

    def _remove(self, made: SegmentRecord, until: int) -> None:
        """Only below the start: elsewhere nobody removes."""
        record = self.world.segment(LOG, made.segment_id)
        if record is not None and made.end_offset <= self.world.record.log_start and record.state is FINISHED:
            self.world.remove(record, until=until)

    # The truth.

    def bytes_left(self, made: SegmentRecord) -> bool:
        """Whether the very bytes of the .log and of the .aux lie in the bucket, as any version."""
        refs = dict(made.objects.present())
        return all(
            any(
                not each.is_marker and checksum_text(crc64(each.content, 0)) == refs[kind].checksum
                for each in self.world.kept.objects[refs[kind].key]
            )
            for kind in ("log", "aux")
        )

    def is_known(self, made: SegmentRecord) -> bool:
        """Whether anybody can tell what it was: the topic, or any version of its .json."""
        rows = {each.segment_id: each.standing for each in self.world.view(LOG).segments()}
        if rows.get(made.segment_id) in (Standing.FOLLOWED, Standing.FENCED):
            return True
        key = f"{made.key_stem}.json"
        return any(not each.is_marker for each in self.world.kept.objects[key])

    def to_be_had(self) -> set[int]:
        return {
            offset
            for made in self.made
            if self.is_known(made) and self.bytes_left(made)
            for offset in range(made.base_offset, made.data_end)
        }


def _offsets(plan: Plan) -> set[int]:
    return {offset for piece in plan.body.pieces for offset in range(piece.start, piece.end)}


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(_WIDTHS, _ACTS)
def test_the_plan_says_exactly_what_can_be_had_and_apply_has_exactly_that(
    widths: list[int], acts: list[tuple[Any, ...]]
) -> None:
    """Below the start of the live log; and at no moment does what could be read become less."""
    story = Story(widths)
    for act in acts:
        story.do(act)
    world = story.world
    truth = {offset for offset in story.to_be_had() if offset < world.record.log_start}
    readable = world.readable()
    start = world.record.log_start

    try:
        plan = world.plan()
    except NothingToRestore:
        assert not truth
        return

    below = {offset for offset in _offsets(plan) if offset < start}
    assert below == truth
    assert plan.body.lost_offsets == plan.body.asked.range.offsets - plan.body.recoverable_offsets
    world.apply(plan)
    assert {offset for offset in world.readable() if offset < start} == truth
    assert readable <= world.readable()
    live = [each for each in world.view(LOG).segments() if each.state is FINISHED]
    assert all(each.state is not DELETING or each.end_offset <= start for each in live)


@settings(deadline=None, max_examples=60)
@given(_WIDTHS, _ACTS, st.integers(0, 40))
def test_a_restore_that_is_killed_is_gone_on_with(
    widths: list[int], acts: list[tuple[Any, ...]], moment: int
) -> None:
    """Whatever was deleted and wherever it is killed: the second run has what an undisturbed one would."""
    story = Story(widths)
    for act in acts:
        story.do(act)
    world = story.world
    truth = {offset for offset in story.to_be_had() if offset < world.record.log_start}
    start = world.record.log_start
    try:
        plan = world.plan()
    except NothingToRestore:
        return

    class _Killed(BaseException):
        pass

    begin = world.moment

    def kill(at: int) -> None:
        if at == begin + moment:
            raise _Killed

    world.meddle = kill
    try:
        world.apply(plan)
    except _Killed:
        world.meddle = lambda at: None
        world.apply(plan)
    assert {offset for offset in world.readable() if offset < start} == truth


@settings(deadline=None, max_examples=60)
@given(_WIDTHS, _ACTS)
def test_without_leave_a_gap_stops_it(widths: list[int], acts: list[tuple[Any, ...]]) -> None:
    """It is carried out with nothing missing up to the live log, or it is refused and nothing is changed."""
    story = Story(widths)
    for act in acts:
        story.do(act)
    world = story.world
    before, start = world.picture(), world.record.log_start
    try:
        plan = world.plan(passes_gaps=False)
    except NothingToRestore:
        return
    try:
        world.apply(plan)
    except GapInTheMiddle:
        assert world.picture() == before
        return
    known = {offset for gap in before[2] for offset in range(gap.start_offset, gap.end_offset)}
    assert set(range(plan.body.range.start, start)) - known <= world.readable()
