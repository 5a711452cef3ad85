"""How long something held, and how it moves."""

from __future__ import annotations

import pytest

from workers.scaler.window import Held, held_for, slope_per_s, smoothed


def held(*points: tuple[float, float], seconds: float = 20.0) -> Held:
    return held_for(points, seconds, lambda value: value >= 5, samples_min=3, gap_max_s=15.0).held


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (((0, 5), (10, 5), (20, 5)), Held.YES),
        (((0, 5), (10, 4), (20, 5)), Held.NO),
        (((-5, 4), (5, 5), (15, 5)), Held.NO),
        (((5, 5), (15, 5), (20, 5)), Held.TOO_SHORT),
        (((0, 5), (16, 5), (20, 5)), Held.GAP),
        (((0, 5), (20, 5)), Held.GAP),
        (((6, 5), (20, 5)), Held.TOO_SHORT),
        ((), Held.TOO_FEW),
    ],
)
def test_all_of_a_time(points: tuple[tuple[float, float], ...], expected: Held) -> None:
    """Its left edge has to be seen, and no sample may be missing."""
    assert held(*points) is expected


def test_no_time_at_all_asks_the_last_sample_alone() -> None:
    """Zero seconds: what is now."""
    assert held((0, 1), (30, 5), seconds=0) is Held.YES


def test_a_median_forgets_a_blip_that_an_average_spreads() -> None:
    """One sample in three."""
    blip = [(0.0, 0.0), (1.0, 90.0), (2.0, 0.0)]

    assert [value for _, value in smoothed(blip, "median", 3)] == [0.0, 45.0, 0.0]
    assert [value for _, value in smoothed(blip, "average", 3)] == [0.0, 45.0, 30.0]


def test_a_slope_does_not_follow_a_wrong_point() -> None:
    """Theil and Sen's: the median of the pairs' slopes."""
    points = [(float(at), 2.0 * at) for at in range(10)]
    points[4] = (4.0, 10_000.0)

    assert slope_per_s(points) == pytest.approx(2.0, abs=0.1)
    assert slope_per_s(points[:1]) is None
