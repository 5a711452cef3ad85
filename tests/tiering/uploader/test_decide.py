"""The next step of one log: what comes first, what is waited for, and how the frontier passes a hole."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.events import GapCause
from rules.identity import LogId
from tiering.segments.records import (
    EpochStart,
    LogRecord,
    SegmentId,
    SegmentObjects,
    SegmentRecord,
    SegmentState,
)
from tiering.uploader.decide import (
    Abandon,
    Copy,
    FinishDelete,
    LocalRange,
    LogFacts,
    RecordGap,
    Rewrite,
    Stalled,
    UpToDate,
    Wait,
    WriteClaim,
    next_step,
)

LOG = LogId("c1", "CgkTzsXgRlOwPTRJHnL2yg", 0)
EPOCHS = (EpochStart(0, 0),)


def log_record() -> LogRecord:
    return LogRecord(
        log=LOG,
        topic="orders",
        broker_id=1,
        claim_epoch=5,
        claim_offset=None,
        earlier_claims=(),
        leader_epochs=EPOCHS,
        log_start=0,
        first_tiered_offset=0,
        gaps=(),
        generation=0,
        keep_until_ms=None,
        holds=(),
        topic_deleted_at_ms=None,
        based_on=None,
        event_id="e",
        occurred_at_ms=1,
    )


def attempt(state: SegmentState) -> SegmentRecord:
    return SegmentRecord(
        log=LOG,
        topic="orders",
        segment_id=SegmentId("00000000-0000-0000-0000-000000000001"),
        base_offset=0,
        end_offset=10,
        data_end=10,
        leader_epochs=EPOCHS,
        max_timestamp_ms=1,
        record_count=10,
        batch_count=1,
        size_bytes=100,
        has_txn_index=False,
        key_stem="k",
        objects=SegmentObjects(),
        broker_id=1,
        leader_epoch=5,
        state=state,
        generation=0,
        event_id="e",
        occurred_at_ms=1,
    )


def ranges(*bases: int) -> tuple[LocalRange, ...]:
    """Closed segments between neighbouring bases; the last base is where the active one starts."""
    return tuple(LocalRange(base_offset=a, end_offset=b, size_bytes=100) for a, b in pairwise(bases))


def facts(**changes: Any) -> LogFacts:
    """Segments [0,10) [10,20) [20,30), active from 30; claimed; the frontier at 10; all of it committed."""
    known = LogFacts(
        leader_epoch=5,
        may_leave_below=35,
        log_start=0,
        active_base=30,
        local=ranges(0, 10, 20, 30),
        claim_read_back=True,
        log_record=log_record(),
        frontier=10,
        unfinished=(),
        shadowed=(),
    )
    return replace(known, **changes)


def test_the_segment_at_the_frontier_is_next() -> None:
    """The segment that begins at n is copied."""
    assert next_step(facts()) == Copy(segment=ranges(10, 20)[0], covers_from=10)


def test_the_segment_that_straddles_the_frontier_is_next() -> None:
    """After a leader change n may lie inside a segment of ours; a marker of bases would skip it (T2)."""
    straddling = facts(local=ranges(0, 8, 25, 30), frontier=10)

    assert next_step(straddling) == Copy(segment=ranges(8, 25)[0], covers_from=10)


def test_nothing_is_done_before_the_claim_is_read_back() -> None:
    """A new leader claims first, whatever else there is to do (T6)."""
    unclaimed = facts(claim_read_back=False, unfinished=(attempt(SegmentState.COPY_STARTED),))

    assert next_step(unclaimed) == WriteClaim(first_tiered_offset=0)


def test_tiering_that_begins_late_begins_at_the_first_local_offset() -> None:
    """A log of five million offsets is not a hole of five million offsets."""
    late = facts(
        claim_read_back=False,
        log_record=None,
        frontier=None,
        local=ranges(5000, 6000),
        active_base=6000,
        log_start=5500,
    )

    assert next_step(late) == WriteClaim(first_tiered_offset=5500)


@pytest.mark.parametrize(
    ("state", "expected"),
    [(SegmentState.COPY_STARTED, Abandon), (SegmentState.DELETE_STARTED, FinishDelete)],
)
def test_dead_attempts_are_cleaned_up_first(state: SegmentState, expected: type) -> None:
    """What a crash left is dealt with before anything new."""
    left = attempt(state)

    assert next_step(facts(unfinished=(left,))) == expected(record=left)


def test_a_shadowed_record_is_written_again_before_compaction_takes_it() -> None:
    """A followed record behind which a refused one stands would be lost with the next compaction."""
    shadowed = log_record()

    assert next_step(facts(shadowed=(shadowed,))) == Rewrite(record=shadowed)


@pytest.mark.parametrize("bound", [0, 10, 15, 19])
def test_a_segment_above_the_bound_waits(bound: int) -> None:
    """Not a byte of a segment leaves before all of it is committed and decided (T1)."""
    assert next_step(facts(may_leave_below=bound)) == Wait(segment=ranges(10, 20)[0], may_leave_below=bound)


def test_all_copied_is_up_to_date() -> None:
    """With n at the active segment there is nothing to do."""
    assert next_step(facts(frontier=30)) == UpToDate()
    assert next_step(facts(frontier=30, local=())) == UpToDate()
    assert next_step(facts(frontier=34)) == UpToDate()


def test_a_hole_below_the_logs_own_start_is_recorded() -> None:
    """Retention overtook the copy: the log itself begins behind the hole, so nobody has the bytes."""
    overtaken = facts(local=ranges(20, 30), log_start=20)

    assert next_step(overtaken) == RecordGap(
        start_offset=10, end_offset=20, cause=GapCause.RETENTION_OVERTOOK
    )


def test_a_hole_that_somebody_asked_for_is_told_apart() -> None:
    """A log start inside no segment's boundary comes from DeleteRecords."""
    asked = facts(local=ranges(20, 30), log_start=15)

    assert next_step(asked) == RecordGap(start_offset=10, end_offset=15, cause=GapCause.RECORDS_DELETED)


def test_a_hole_above_the_logs_start_is_never_passed() -> None:
    """A middle segment is gone here, but the log says that it has it: another replica may (T2)."""
    assert next_step(facts(local=(*ranges(0, 10), *ranges(20, 30)))) == Stalled(
        start_offset=10, end_offset=20
    )


def test_a_held_segment_fills_what_retention_took() -> None:
    """A segment whose name is gone still counts as local while we hold it open."""
    held = facts(local=ranges(10, 20, 30), log_start=20)

    assert next_step(held) == Copy(segment=ranges(10, 20)[0], covers_from=10)


@given(
    cuts=st.lists(st.integers(min_value=1, max_value=50), min_size=1, max_size=8, unique=True),
    lost=st.sets(st.integers(min_value=0, max_value=7), max_size=4),
    log_start=st.integers(min_value=0, max_value=60),
    frontier=st.integers(min_value=0, max_value=60),
    bound=st.integers(min_value=0, max_value=60),
)
def test_no_step_leaves_an_offset_behind(
    cuts: list[int], lost: set[int], log_start: int, frontier: int, bound: int
) -> None:
    """T2: a copy holds n and ends at or below the bound; a gap starts at n and lies below the log's start."""
    bases = [0, *sorted(cuts)]
    whole = ranges(*bases)
    local = tuple(segment for index, segment in enumerate(whole) if index not in lost)

    step = next_step(
        facts(
            local=local,
            active_base=bases[-1],
            log_start=log_start,
            frontier=frontier,
            may_leave_below=bound,
        )
    )

    held = {offset for segment in local for offset in range(segment.base_offset, segment.end_offset)}
    match step:
        case Copy(segment=segment, covers_from=covers_from):
            assert covers_from == frontier
            assert segment.base_offset <= frontier < segment.end_offset <= bound
        case Wait(segment=segment):
            assert segment.base_offset <= frontier < segment.end_offset
            assert segment.end_offset > bound
        case RecordGap(start_offset=start, end_offset=end):
            assert start == frontier < end <= log_start
            assert not held & set(range(start, end))
        case Stalled(start_offset=start, end_offset=end):
            assert log_start <= start == frontier < end
            assert frontier not in held
        case UpToDate():
            assert frontier >= bases[-1] or frontier in held
        case _:
            pytest.fail(f"unexpected {step}")
