"""What a run sees: every event is in the slice of some run, and a rerun sees what the run saw."""

from __future__ import annotations

import pytest

from audit_engine.run.cut import Cut, Reach, cut_of, next_cut
from audit_engine.run.errors import AsOfBeforeLastRun

FIRST = Reach(offsets={0: 10, 1: 7}, commit=3, replayed={0: [(1, 2)]})
SECOND = Reach(offsets={0: 25, 1: 7, 2: 4}, commit=9, replayed={1: [(5, 6), (2, 3)]})


def test_the_first_run_sees_everything() -> None:
    """From offset 0 of each partition; what came from the quarantine lies in that."""
    cut = next_cut(None, FIRST, 1000)

    assert (cut.run, cut.previous, cut.since_ms) == (1, None, None)
    assert (cut.begin_offsets, cut.end_offsets) == ({}, {0: 10, 1: 7})
    assert cut.replayed == {}


def test_the_next_run_goes_on_where_it_ended() -> None:
    """Its offsets, its moment, and what was taken up from the quarantine meanwhile."""
    cut = next_cut(next_cut(None, FIRST, 1000), SECOND, 2000)

    assert (cut.run, cut.previous, cut.since_ms) == (2, 1, 1000)
    assert (cut.begin_offsets, cut.end_offsets) == ({0: 10, 1: 7}, {0: 25, 1: 7, 2: 4})
    assert cut.replayed == {1: [(5, 6), (2, 3)]}


def test_a_cut_is_read_back_as_it_was_stored() -> None:
    """A rerun sees the same offsets as of the same moment."""
    cut = next_cut(next_cut(None, FIRST, 1000), SECOND, 2000)

    again: Cut = cut_of(cut.run, cut.as_of_ms, cut.as_json())

    assert again == cut


def test_time_does_not_go_back() -> None:
    """A moment before the last run's would judge what it has judged already; the same moment may."""
    last = next_cut(None, FIRST, 1000)

    assert next_cut(last, SECOND, 1000).run == 2
    with pytest.raises(AsOfBeforeLastRun):
        next_cut(last, SECOND, 999)
