"""What may be read: each offset once, from a copy that has it, by offset, by epoch and by time."""

from __future__ import annotations

from dataclasses import replace

from tests.tiering.segments.strategies import LOG, gap, log_record, segment, segment_id
from tests.tiering.segments.topic import Topic
from tiering.outcome import Inconclusive
from tiering.segments.coverage import GapPiece, Piece, coverage
from tiering.segments.records import SegmentId, SegmentState

STARTED, FINISHED, DELETING, DELETED = SegmentState


def _piece(start: int, end: int, number: int) -> Piece:
    return Piece(start=start, end=end, segment_id=segment_id(number))


def _unreferenced(topic: Topic) -> set[SegmentId]:
    return set(topic.coverage.unreferenced())


def test_overlaps_are_clipped() -> None:
    """Different boundaries on each replica: of copies that overlap the one that reaches furthest is read."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 100), segment(2, 80, 150), segment(3, 90, 200), segment(4, 200, 210))

    pieces = list(topic.coverage.pieces(10, 1000))

    assert pieces == [_piece(10, 100, 1), _piece(100, 200, 3), _piece(200, 210, 4)]


def test_of_equal_copies_the_first_committed_is_read() -> None:
    """Two tables, or one that was restarted, choose the same."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(2, 0, 100), segment(1, 0, 100))

    assert topic.coverage.find(5) == _piece(5, 6, 2)


def test_only_finished_copies_below_the_frontier_are_read() -> None:
    """Not what is begun, going, below the start, or beyond a hole; that is unreferenced, and kept."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 50), segment(2, 50, 100), segment(4, 150, 200), segment(5, 200, 250))
    topic.append(segment(3, 100, 150, state=STARTED), segment(5, 200, 250, state=DELETING))
    topic.claim(log_record(0, log_start=60))

    found = topic.coverage

    assert [found.find(offset) for offset in (10, 59, 100, 150, 220)] == [None] * 5
    assert list(found.pieces(0, 300)) == [_piece(60, 100, 2)]
    assert _unreferenced(topic) == {segment_id(1), segment_id(4)}
    assert topic.table.segment(LOG, segment_id(4)) is not None


def test_what_is_not_the_logs_is_not_read() -> None:
    """Of a copy with a lost leader's suffix, the prefix that it shares with the log."""
    topic = Topic()
    topic.claim(log_record(1, epochs=((0, 0), (1, 50))))
    topic.copy(segment(1, 0, 100, epochs=((0, 0), (1, 50))), segment(2, 100, 200, epochs=((1, 100),)))
    topic.claim(log_record(2, epochs=((0, 0), (1, 50), (2, 70))))
    topic.copy(segment(3, 70, 90, epochs=((2, 70),)))

    assert list(topic.coverage.pieces(0, 300)) == [_piece(0, 70, 1), _piece(70, 90, 3)]
    assert _unreferenced(topic) == {segment_id(2)}


def test_a_lookup_with_an_epoch_answers_for_that_epoch_only() -> None:
    """Who believes another history than the log's is not given its bytes."""
    topic = Topic()
    topic.claim(log_record(2, epochs=((0, 0), (2, 40))))
    topic.copy(segment(1, 0, 100, epochs=((0, 0), (2, 40))))

    found = topic.coverage

    assert found.find(39, epoch=0) == _piece(39, 40, 1)
    assert found.find(40, epoch=2) == _piece(40, 41, 1)
    assert found.find(40, epoch=0) is None
    assert found.find(39, epoch=2) is None


def test_a_gap_is_an_answer() -> None:
    """Never "out of range" inside the log: a gap is named, and a copy inside it is read after all."""
    topic = Topic()
    topic.claim(log_record(0, gaps=(gap(100, 200),)))
    topic.copy(segment(1, 0, 100), segment(2, 150, 160), segment(3, 200, 300))

    assert list(topic.coverage.pieces(90, 210)) == [
        _piece(90, 100, 1),
        GapPiece(start=100, end=150),
        _piece(150, 160, 2),
        GapPiece(start=160, end=200),
        _piece(200, 210, 3),
    ]
    assert topic.coverage.find(120) == GapPiece(start=120, end=121)


def test_by_time_no_segment_ends_the_search() -> None:
    """Timestamps out of order, far in the future, or none: every segment late enough is offered, in order."""
    topic = Topic()
    topic.claim(log_record(0))
    times = {1: 5_000, 2: 1_000, 3: -1, 4: 9_999_999, 5: 4_000}
    topic.copy(
        *(
            replace(segment(number, 100 * number - 100, 100 * number), max_timestamp_ms=time_ms)
            for number, time_ms in times.items()
        )
    )

    def offered(timestamp_ms: int) -> list[SegmentId]:
        return [piece.segment_id for piece in topic.coverage.from_time(timestamp_ms)]

    assert offered(4_000) == [segment_id(1), segment_id(4), segment_id(5)]
    assert offered(1_000) == [segment_id(1), segment_id(2), segment_id(4), segment_id(5)]
    assert offered(10_000_000) == []
    assert len(offered(-1)) == 5


def test_by_time_only_what_can_be_read_is_offered() -> None:
    """From the log's start on, and each offset once."""
    topic = Topic()
    topic.claim(log_record(0, log_start=50))
    topic.copy(segment(1, 0, 100), segment(2, 80, 150))

    assert list(topic.coverage.from_time(0)) == [_piece(50, 100, 1), _piece(100, 150, 2)]


def test_nothing_is_read_of_a_log_that_nobody_claimed() -> None:
    """Its lineage is not known."""
    topic = Topic()
    topic.copy(segment(1, 0, 100))

    assert isinstance(coverage(topic.view), Inconclusive)


def test_an_empty_log_has_nothing_to_read() -> None:
    """No copy at all is no error."""
    topic = Topic()
    topic.claim(log_record(0))

    assert topic.coverage.find(0) is None
    assert list(topic.coverage.pieces(0, 10)) == []
