"""A log's start and watermark over past runs: the words that say it, and the steps that show it."""

from __future__ import annotations

from audit_engine.report.course import course
from audit_engine.report.values import Moment
from tests.rules.machine.histories import DAY_MS, T0_MS


def moments(*pairs: tuple[int | None, int | None]) -> list[Moment]:
    return [
        Moment(run=number, at_ms=T0_MS + number * DAY_MS, start=start, watermark=watermark)
        for number, (start, watermark) in enumerate(pairs, start=1)
    ]


def test_one_run_is_no_course() -> None:
    """Nothing is drawn of what one run says, or of runs that did not know the watermark."""
    assert course(moments((0, 10)), "k") is None
    assert course(moments((0, None), (0, 10)), "k") is None


def test_it_says_from_where_to_where_and_what_fell() -> None:
    """A watermark that goes back is named with its run; a start that is not known is said to be so."""
    text = str(course(moments((0, 1_000), (None, 2_000), (3, 1_500)), "k"))

    assert "High watermark from 1,000 to 1,500" in text
    assert "start from 0 to 3" in text
    assert "it fell in run 3" in text
    assert "it fell" not in str(course(moments((0, 1), (None, 2)), "k"))


def test_it_is_drawn_as_steps_in_both_sizes() -> None:
    """Across first, then up: what happened between two runs is known at the later one only."""
    text = str(course(moments((0, 0), (0, 100)), "k"))

    assert text.count("<polyline") == 4
    assert 'points="1.0,96.0 878.0,96.0 878.0,6.0"' in text
    assert 'points="1.0,96.0 324.0,96.0 324.0,6.0"' in text
