"""What a log's state comes to, in stretches, troubles and characters; no broker needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.tier.coverage import Stretch, Where, stretches
from seawall.tier.picture import MARKS, bar
from seawall.tier.status import LogStatus, Weight, log_status
from tests.tiering.orphans.world import TOPIC
from tests.tiering.segments.strategies import LOG, gap, log_record, segment
from tiering.cluster.interface import Cause, LeaderOffsets, Unknown
from tiering.log.wire import Uuid
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.frontier import Range
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import LogRecord, SegmentRecord, SegmentState
from tiering.segments.table import PartitionTable


def answer(local_start: int, high_watermark: int, **changes: Any) -> LeaderOffsets:
    found = LeaderOffsets(
        topic_id=Uuid(LOG.topic_id),
        leader_id=1,
        leader_epoch=0,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start=local_start,
    )
    return replace(found, **changes)


def status_of(said: LeaderOffsets | Unknown, *records: SegmentRecord | LogRecord) -> LogStatus:
    table = PartitionTable(TOPIC, 0, complete_from=len(records))
    for offset, record in enumerate(records):
        if isinstance(record, LogRecord):
            table.apply(offset, log_key(LOG), encode_log(record))
        else:
            table.apply(offset, segment_key(LOG, record.segment_id), encode_segment(record))
    return log_status(LOG, "orders", table.view(LOG), said)


def kinds(status: LogStatus, weight: Weight) -> list[str]:
    return [each.kind for each in status.troubles if each.weight is weight]


def drawn(status: LogStatus, width: int = 10) -> str:
    return bar(status.stretches, width).plain


def test_a_log_that_is_as_it_should_be_has_no_trouble() -> None:
    """Tiered below the broker's start, both above, and the broker alone beyond the frontier."""
    status = status_of(answer(3, 10), log_record(0), segment(1, 0, 5), segment(2, 5, 8))

    assert (status.log_start, status.local_start, status.frontier, status.lag_offsets) == (0, 3, 8, 2)
    assert (status.tiered_segments, status.tiered_bytes, status.lag_bytes) == (2, 800, 200)
    assert drawn(status) == "===#####--"
    assert status.troubles == ()


def test_what_is_nowhere_is_a_finding() -> None:
    """The broker's start has passed the frontier: the range between is on nobody's disk."""
    status = status_of(answer(8, 10), log_record(0), segment(1, 0, 5))

    assert drawn(status) == "=====!!!--"
    assert kinds(status, Weight.FINDING) == ["missing"]
    assert "[5, 8)" in status.troubles[0].detail


def test_a_gap_on_record_is_told_with_its_cause() -> None:
    """It is passed by the frontier, and remains a finding."""
    record = log_record(0, gaps=(gap(5, 8),))
    status = status_of(answer(8, 10), record, segment(1, 0, 5), segment(2, 8, 9))

    assert (drawn(status), status.frontier) == ("=====~~~#-", 9)
    assert kinds(status, Weight.FINDING) == ["gap"]
    assert "retention_overtook" in status.troubles[0].detail


def test_copies_beyond_a_hole_are_not_served() -> None:
    """The frontier stands before the hole, which is said, with where copies go on."""
    status = status_of(answer(0, 10), log_record(0), segment(1, 0, 3), segment(2, 6, 9))

    assert drawn(status) == "###-------"
    assert kinds(status, Weight.FINDING) == ["hole"]
    assert "copies go on at 6" in status.troubles[0].detail


def test_a_started_copy_covers_nothing() -> None:
    """Only what is committed is shown as tiered."""
    begun = segment(1, 0, 5, state=SegmentState.COPY_STARTED)

    assert drawn(status_of(answer(0, 10), log_record(0), begun)) == "----------"


def test_a_broker_that_does_not_answer_is_not_taken_for_a_loss() -> None:
    """What is not known is said to be unknown, and no offset is called missing."""
    silent = Unknown(cause=Cause.NO_ANSWER, reason="the leader did not answer")
    status = status_of(silent, log_record(0), segment(1, 0, 5))

    assert (drawn(status), status.high_watermark) == ("=====", None)
    assert kinds(status, Weight.UNKNOWN) == ["broker"]
    assert kinds(status, Weight.FINDING) == []


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (answer(0, 4, topic_id=Uuid("A" * 21 + "g")), "recreated"),
        (Unknown(cause=Cause.NO_SUCH_TOPIC, reason="no such topic"), "deleted"),
        (answer(0, 10, leader_epoch=3), "claim_behind"),
    ],
)
def test_what_is_no_loss_is_a_note(said: LeaderOffsets | Unknown, kind: str) -> None:
    """A deleted topic, another of its name, a leader that has not claimed yet."""
    status = status_of(said, log_record(0), segment(1, 0, 5))

    assert kinds(status, Weight.NOTE) == [kind]
    assert kinds(status, Weight.FINDING) == kinds(status, Weight.UNKNOWN) == []


def test_a_log_without_a_claim_is_all_the_brokers() -> None:
    """Nothing of it is tiered, and that is a note."""
    status = log_status(LOG, "orders", None, answer(4, 10))

    assert drawn(status) == "------"
    assert kinds(status, Weight.NOTE) == ["unclaimed"]


RANGES = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 200)), max_size=4)


@given(
    RANGES,
    RANGES,
    st.none() | st.integers(0, 300),
    st.integers(0, 300),
    st.integers(1, 300),
    st.integers(1, 40),
)
def test_stretches_and_bars_leave_nothing_out(
    tiered: list[tuple[int, int]],
    gaps: list[tuple[int, int]],
    local_start: int | None,
    start: int,
    size: int,
    width: int,
) -> None:
    """Offset by offset, stretches say what the ranges say; a bar shows each loss there is."""
    has = {"tiered": [Range(at, at + n) for at, n in tiered], "gaps": [Range(at, at + n) for at, n in gaps]}
    parts = stretches(start, start + size, local_start=local_start, **has)

    said = [part.where for part in parts for _ in range(part.start, part.end)]
    assert [parts[0].start, parts[-1].end] == [start, start + size]
    for offset, where in zip(range(start, start + size), said, strict=True):
        is_local = local_start is not None and offset >= local_start
        is_tiered = any(each.start <= offset < each.end for each in has["tiered"])
        is_gap = any(each.start <= offset < each.end for each in has["gaps"])
        expected = {
            (True, True): Where.BOTH,
            (True, False): Where.LOCAL,
            (False, True): Where.TIERED,
            (False, False): Where.GAP if is_gap else Where.MISSING,
        }
        assert where is expected[is_local, is_tiered]
    line = bar(parts, width).plain
    assert len(line) == min(width, size)
    for lost in (Where.MISSING,):
        assert (MARKS[lost][0] in line) == (lost in said)


def test_a_small_lag_of_a_long_log_is_to_be_seen() -> None:
    """One offset in a million has its character."""
    parts = (Stretch(0, 999_999, Where.TIERED), Stretch(999_999, 1_000_000, Where.LOCAL))

    assert bar(parts, 20).plain == "=" * 19 + "-"
