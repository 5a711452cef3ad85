"""T2: the frontier never passes an offset that is not in a finished copy of the lineage or a recorded gap."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.segments.strategies import LOG, gap, log_record, segment, segment_id
from tests.tiering.segments.topic import Topic
from tiering.outcome import Inconclusive
from tiering.segments.frontier import CaughtUp, CopyNext, Missing, Range, Stop, frontier, next_segment
from tiering.segments.records import EpochStart, SegmentState

STARTED, FINISHED, DELETING, DELETED = SegmentState


def test_without_a_claim_there_is_none() -> None:
    """Segments alone do not say where the log begins or which lineage is its own."""
    topic = Topic()
    topic.copy(segment(1, 0, 100))

    assert isinstance(frontier(topic.view), Inconclusive)


def test_nothing_copied() -> None:
    """The frontier is where tiering begins: the log's start, or the first tiered offset if that is later."""
    topic = Topic()
    topic.claim(log_record(0, log_start=5, first_tiered_offset=30))

    assert (topic.frontier.start, topic.frontier.offset, topic.frontier.stop) == (30, 30, Stop.END)


def test_t2_contiguous_copies_carry_it() -> None:
    """Copies that touch or overlap, in whatever order they were finished."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(3, 180, 300), segment(1, 0, 100), segment(2, 90, 200))

    assert topic.frontier.offset == 300


def test_t2_it_stops_at_a_hole() -> None:
    """A copy that failed stops it, though the next is finished (rabbit #206); later it goes all the way."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 100), segment(3, 200, 300))
    topic.append(segment(2, 100, 200, state=STARTED))

    assert (topic.frontier.offset, topic.frontier.stop, topic.frontier.next_covered) == (100, Stop.HOLE, 200)
    topic.append(segment(2, 100, 200))
    assert (topic.frontier.offset, topic.frontier.next_covered) == (300, None)


@pytest.mark.parametrize("state", [STARTED, DELETING, DELETED])
def test_t2_only_finished_copies_count(state: SegmentState) -> None:
    """Not one that is begun, nor one that is going or gone."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 100))
    steps = {STARTED: [STARTED], DELETING: [STARTED, DELETING], DELETED: [STARTED, DELETING, DELETED]}
    for step in steps[state]:
        topic.append(segment(2, 100, 200, state=step))

    assert topic.frontier.offset == 100


def test_t2_bytes_missing_inside_do_not_count() -> None:
    """The next base says 200, the data ends at 160 (measured: Kafka loads that); or records are missing."""
    for data_end, record_count, reached in ((160, 60, 160), (200, 99, 100)):
        topic = Topic()
        topic.claim(log_record(0))
        holed = segment(2, 100, 200, data_end=data_end, record_count=record_count)
        topic.copy(segment(1, 0, 100), holed, segment(3, 200, 300))

        assert topic.frontier.offset == reached
        assert topic.frontier.stop is Stop.INCOMPLETE


def test_t2_a_hole_is_passed_by_a_gap_record_alone() -> None:
    """Retention overtook the copy: the frontier waits until that is on record, then goes on behind it."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 100), segment(3, 200, 300))
    before = topic.frontier.offset

    topic.claim(log_record(0, gaps=(gap(100, 150),)))
    partly = topic.frontier.offset
    topic.claim(log_record(0, gaps=(gap(100, 150), gap(150, 200))))

    assert (before, partly, topic.frontier.offset) == (100, 150, 300)


def test_t2_a_gap_at_the_end_is_passed_too() -> None:
    """What comes next is what comes after the gap."""
    topic = Topic()
    topic.claim(log_record(0, gaps=(gap(0, 50),)))

    assert topic.frontier.offset == 50


def test_t2_it_falls_to_the_fork() -> None:
    """An unclean election: what the lost leader copied beyond the fork is kept, and does not count."""
    topic = Topic()
    topic.claim(log_record(1, epochs=((0, 0), (1, 50))))
    topic.copy(segment(1, 0, 100, epochs=((0, 0), (1, 50))), segment(2, 100, 200, epochs=((1, 100),)))
    before = topic.frontier.offset

    topic.claim(log_record(2, epochs=((0, 0), (1, 50), (2, 120))))

    assert before == 200
    assert (topic.frontier.offset, topic.frontier.stop) == (120, Stop.OFF_LINEAGE)
    topic.copy(segment(3, 110, 250, epochs=((1, 110), (2, 120))))
    assert topic.frontier.offset == 250
    assert topic.table.segment(LOG, segment_id(2)) is not None


def test_t2_a_gap_ends_where_later_leaders_wrote() -> None:
    """What was lost on one lineage may be there on the next."""
    topic = Topic()
    topic.claim(log_record(1, epochs=((1, 0),), gaps=(gap(0, 100, leader_epoch=1),)))
    before = topic.frontier.offset

    topic.claim(log_record(2, epochs=((1, 0), (2, 40)), gaps=(gap(0, 100, leader_epoch=1),)))

    assert (before, topic.frontier.offset) == (100, 40)


def test_on_a_lineage_of_the_callers() -> None:
    """An agent asks with the history that it sees, before it has claimed with it."""
    topic = Topic()
    topic.claim(log_record(1, epochs=((1, 0),)))
    topic.copy(segment(1, 0, 100, leader_epoch=1))

    found = frontier(topic.view, (EpochStart(1, 0), EpochStart(2, 70)))

    assert not isinstance(found, Inconclusive)
    assert found.offset == 70


def test_the_log_start_moves_it_on_and_a_restore_takes_it_back() -> None:
    """It is a function of the table, not a marker that only ever rises."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 100), segment(2, 150, 200))
    topic.claim(log_record(0, log_start=150))
    ahead = topic.frontier

    topic.claim(log_record(0, log_start=0, generation=1))

    assert (ahead.start, ahead.offset) == (150, 200)
    assert (topic.frontier.start, topic.frontier.offset) == (0, 100)


def test_what_cannot_be_read_does_not_count() -> None:
    """A newer agent's record over a finished copy may be its deletion."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 100), segment(2, 100, 200))

    topic.append_raw(topic.records[-1].key, b'{"kind":"segment","version":9,"min_reader":9}')

    assert topic.frontier.offset == 100
    assert topic.view.unreadable() == (topic.records[-1].key,)


def test_a_segment_that_straddles_the_frontier_is_next() -> None:
    """The old leader's copy ended at 150; the new leader's segment is [90, 180), its base below that."""
    closed = [Range(0, 90), Range(90, 180), Range(180, 260)]

    assert next_segment(closed, 150) == CopyNext(segment=Range(90, 180))
    assert next_segment(closed, 180) == CopyNext(segment=Range(180, 260))
    assert next_segment(closed, 260) == CaughtUp()
    assert next_segment([], 0) == CaughtUp()


def test_what_this_replica_has_lost_is_named() -> None:
    """Nothing is skipped: local retention, or a file that is gone, is said as the range that is missing."""
    assert next_segment([Range(50, 90)], 20) == Missing(range=Range(20, 50))
    assert next_segment([Range(0, 20), Range(50, 90)], 20) == Missing(range=Range(20, 50))


@pytest.mark.slow
@given(st.data())
def test_t2_copying_what_comes_next_covers_everything(data: st.DataObject) -> None:
    """However replicas cut their segments and whoever leads, taking what comes next leaves no hole."""
    topic = Topic()
    topic.claim(log_record(0))
    end = 40
    replicas = [data.draw(_cut(end)) for _ in range(3)]
    number = 0
    while topic.frontier.offset < end:
        step = next_segment(data.draw(st.sampled_from(replicas)), topic.frontier.offset)
        assert isinstance(step, CopyNext)
        number += 1
        topic.copy(segment(number, *step.segment))

    covered = {offset for piece in topic.coverage.pieces(0, end) for offset in range(piece.start, piece.end)}
    assert covered == set(range(end))


def _cut(end: int) -> st.SearchStrategy[list[Range]]:
    """One replica's closed segments: the same offsets, cut in its own places."""
    inner = st.sets(st.integers(1, end - 1), max_size=6)
    edges = inner.map(lambda cuts: [0, *sorted(cuts), end])
    return edges.map(lambda at: [Range(*pair) for pair in pairwise(at)])


def test_many_epochs_and_one_are_clipped_alike() -> None:
    """A copy of one epoch is compared by columns, one of several by itself."""
    lineage = ((0, 0), (1, 30), (4, 60))
    topic = Topic()
    topic.claim(log_record(4, epochs=lineage))
    topic.copy(
        segment(1, 0, 40, epochs=((0, 0), (1, 30)), leader_epoch=4),
        segment(2, 35, 80, epochs=((1, 35), (3, 70)), leader_epoch=4),
        segment(3, 60, 90, epochs=((4, 60),)),
    )

    assert topic.frontier.offset == 90
    assert [(piece.start, piece.end) for piece in topic.coverage.pieces(0, 90)] == [
        (0, 40),
        (40, 60),
        (60, 90),
    ]
