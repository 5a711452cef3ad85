"""What is due, in which order, and what a budget lets through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiering.scrub.plan import Budget, Refusal, Subset, least_recent

NAMES = st.lists(st.text(max_size=8), unique=True, max_size=30)


@settings(deadline=None)
@given(NAMES, st.integers(1, 9))
def test_the_shares_have_every_name_once(names: list[str], parts: int) -> None:
    """Several hosts, each with its own share, together look at all and at nothing twice."""
    shares = [Subset(part=part, parts=parts) for part in range(1, parts + 1)]

    assert sorted(name for share in shares for name in names if name in share) == sorted(names)


def test_a_share_is_the_same_on_every_machine() -> None:
    """The hash is of the name alone: these are what any version must say."""
    names = [f"seawall/c/t/0/{n:020d}" for n in range(6)]

    shares = [next(n for n in range(1, 5) if name in Subset(part=n, parts=4)) for name in names]

    assert shares == [2, 4, 2, 4, 2, 2]


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "1/0", "-1/2", "1/20000", "1/2/3", "a/b"])
def test_what_is_no_share_is_refused(text: str) -> None:
    """With the words that a user is shown."""
    with pytest.raises(ValueError, match="n/t, such as 2/7"):
        Subset.parse(text)


def test_never_looked_at_comes_first_then_the_longest_ago() -> None:
    """Whatever the names are, and in the same order each time."""
    found = least_recent(["d", "b", "a", "c"], {"a": 5, "b": 3, "gone": 1})

    assert found == ["c", "d", "b", "a"]


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 100))
def test_no_more_is_admitted_than_the_budget_has(sizes: list[int], max_bytes: int) -> None:
    """Something too large for any run is told from what is only too much for this one."""
    budget = Budget(max_bytes=max_bytes, until_s=None, clock=lambda: 0.0)
    admitted = 0
    for size in sizes:
        refused = budget.admit(size)
        if refused is None:
            admitted += size
        else:
            assert (refused is Refusal.TOO_LARGE) == (size > max_bytes)

    assert admitted == budget.admitted_bytes <= max_bytes


def test_when_the_time_is_up_nothing_is_begun() -> None:
    """Not even what costs nothing."""
    now = [9.0]
    budget = Budget(max_bytes=None, until_s=10.0, clock=lambda: now[0])

    assert budget.admit(10**15) is None
    now[0] = 10.0
    assert budget.admit(0) is Refusal.SPENT
