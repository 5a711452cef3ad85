"""Two executions of one log, held against each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.proof import Divergence, Equal, Step, compared

STEPS = st.lists(st.builds(Step, st.text(max_size=3), st.text(max_size=3)), max_size=6)


@given(STEPS)
def test_what_is_the_same_is_equal_under_one_hash(steps: list[Step]) -> None:
    """However often it is asked, and of as many steps as there are."""
    found = compared(steps, iter(steps))

    assert isinstance(found, Equal)
    assert found.steps == len(steps)
    assert found == compared(list(steps), steps)


@given(STEPS, STEPS)
def test_the_first_that_is_not_the_same_is_named(first: list[Step], second: list[Step]) -> None:
    """All before it are the same; one that ends earlier diverges there; other steps have another hash."""
    found = compared(first, second)

    if isinstance(found, Equal):
        assert first == second
        return
    at = found.number
    assert first[:at] == second[:at]
    assert (found.first, found.second) == (_at(first, at), _at(second, at))
    assert found.first != found.second
    assert found.at == (found.first or found.second)[0]  # type: ignore[index]
    mine, theirs = compared(first, first), compared(second, second)
    assert isinstance(mine, Equal)
    assert isinstance(theirs, Equal)
    assert mine.hash != theirs.hash


def _at(steps: list[Step], at: int) -> Step | None:
    return steps[at] if at < len(steps) else None


def test_where_a_step_ends_is_part_of_it() -> None:
    """Two divisions of the same letters are not the same history."""
    assert isinstance(compared([Step("1", "ab")], [Step("1a", "b")]), Divergence)
    one, other = (compared([step], [step]) for step in (Step("1", "ab"), Step("1a", "b")))
    assert isinstance(one, Equal)
    assert isinstance(other, Equal)
    assert one.hash != other.hash
