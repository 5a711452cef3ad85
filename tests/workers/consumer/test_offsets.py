"""The offset tracker: what may be committed, and what never is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.consumer.offsets import OffsetTracker


def received(*offsets: int, start: int | None = None) -> OffsetTracker:
    tracker = OffsetTracker(start)
    for offset in offsets:
        tracker.receive(offset)
    return tracker


def finish(tracker: OffsetTracker, *offsets: int) -> int | None:
    for offset in offsets:
        assert tracker.finish(offset)
    return tracker.commit_point


def test_one_unfinished_record_at_the_head_holds_the_commit() -> None:
    """Faust #606: committed 30, then 31 and 32 acknowledged, and it commits 33, past record 30."""
    tracker = received(30, 31, 32, start=30)

    assert finish(tracker, 31, 32) == 30
    assert finish(tracker, 30) == 33


def test_the_first_record_of_a_log_is_no_exception() -> None:
    """Faust: committed 0 or nothing, then 1, 2 and 3 acknowledged, and it commits 4, past record 0."""
    for start in (0, None):
        tracker = received(0, 1, 2, 3, start=start)
        assert finish(tracker, 1, 2, 3) == 0


def test_a_compacted_offset_does_not_stop_commits() -> None:
    """Pyrallel-Consumer: 102 was compacted away, and it commits 102 for ever."""
    tracker = received(100, 101, 103, 104, 105, start=100)

    assert finish(tracker, 100, 101) == 103
    assert finish(tracker, 103, 104, 105) == 106


def test_a_hole_below_unfinished_work_is_not_passed_over_it() -> None:
    """Compaction makes no exception of C1: the record behind the hole is unfinished."""
    tracker = received(100, 103, 105, start=100)

    assert finish(tracker, 100, 105) == 103


def test_markers_at_the_end_are_passed_when_the_broker_names_the_end() -> None:
    """The last offset of a transaction is a marker: the lag of one that never goes."""
    tracker = received(10, 11, start=10)
    tracker.reach(13)

    assert finish(tracker, 11) == 10
    assert finish(tracker, 10) == 13


def test_nothing_is_committed_while_nothing_is_known() -> None:
    """An assignment without a commit and without a record has no point, not 0."""
    tracker = OffsetTracker()

    assert tracker.commit_point is None
    tracker.reach(0)
    assert tracker.commit_point == 0


def test_an_answer_that_comes_twice_moves_nothing() -> None:
    """The counter of what is in flight neither leaks nor goes below nothing (Confluent #547)."""
    tracker = received(1, 2, start=1)

    assert tracker.finish(2)
    assert not tracker.finish(2)
    assert not tracker.finish(7)
    assert (tracker.unfinished, tracker.ahead, tracker.commit_point) == (1, 2, 1)


def test_a_rewind_keeps_what_lies_below_it() -> None:
    """After an unclean election at 12, record 10 is still unfinished, and 12 is another record."""
    tracker = received(10, 11, 12, 13, start=10)
    finish(tracker, 11, 12)

    tracker.rewind(12)
    assert not tracker.finish(13)
    tracker.receive(12)

    assert tracker.commit_point == 10
    assert finish(tracker, 10) == 12
    assert finish(tracker, 12) == 13


def test_gaps_are_the_runs_of_unfinished_records() -> None:
    """Half-open, the lowest first; a hole in the log parts no run, a finished record does."""
    tracker = received(0, 1, 5, 6, 7, 8)
    finish(tracker, 6)

    assert tracker.gaps(10) == [(0, 6), (7, 9)]
    assert tracker.gaps(1) == [(0, 6)]
    assert tracker.unfinished_offsets(2) == [0, 1]
    assert (tracker.blocking, tracker.finished_ahead()) == (0, [6])


@given(
    offsets=st.sets(st.integers(0, 60), min_size=1, max_size=30),
    order=st.randoms(use_true_random=False),
    start=st.none() | st.just(0),
)
def test_the_point_is_the_lowest_unfinished_or_the_position(
    offsets: set[int], order: object, start: int | None
) -> None:
    """Whatever is missing in the log and in whatever order records are finished."""
    import random

    assert isinstance(order, random.Random)
    rising = sorted(offsets)
    tracker = received(*rising, start=start)
    left = list(rising)
    order.shuffle(left)
    while left:
        tracker.finish(left.pop())
        assert tracker.commit_point == (min(left) if left else rising[-1] + 1)
        assert tracker.unfinished == len(left)
        assert set(tracker.finished_ahead()) == {
            each for each in rising if left and each > min(left) and each not in left
        }
