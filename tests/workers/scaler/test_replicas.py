"""Balanced numbers of replicas, and the steps between them."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.scaler.replicas import balanced_counts, step_down, step_up

HOWS = st.sampled_from(["divisors", "useful", "none"])


@pytest.mark.parametrize(
    ("partitions", "how", "expected"),
    [
        (12, "divisors", (1, 2, 3, 4, 6, 12)),
        (13, "divisors", (1, 13)),
        (13, "useful", (1, 2, 3, 4, 5, 7, 13)),
        (3, "none", (1, 2, 3)),
    ],
)
def test_balanced_counts(partitions: int, how: str, expected: tuple[int, ...]) -> None:
    """Divisors give all the same; useful ones relieve the busiest."""
    assert balanced_counts(partitions, how) == expected


@given(st.integers(1, 200), HOWS, st.integers(1, 8), st.data())
def test_a_step_goes_on_and_not_too_far(partitions: int, how: str, step: int, drawn: st.DataObject) -> None:
    """Up goes up, never further than the step unless the next useful number is further; down never below what
    is needed; both end."""
    now = drawn.draw(st.integers(1, partitions))
    wanted = drawn.draw(st.integers(1, partitions))

    up = step_up(now, max(wanted, now), partitions=partitions, how=how, step=step)
    down = step_down(now, min(wanted, now), partitions=partitions, how=how, step=step)

    useful = [n for n in balanced_counts(partitions, "useful") if n > now]
    assert now <= up <= max([now + step, *useful[:1]])
    assert min(wanted, now) <= down <= now
    assert step_up(now, partitions, partitions=partitions, how=how, step=step) > now or now == partitions


def test_a_prime_number_of_partitions_is_no_cliff() -> None:
    """From 1 of 13 the next divisor is 13: the step takes a number between that relieves the busiest."""
    to = step_up(1, 9, partitions=13, how="divisors", step=4)

    assert to == 5
    assert ceil(13 / to) < ceil(13 / (to - 1))
