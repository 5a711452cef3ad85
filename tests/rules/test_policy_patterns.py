"""Patterns: which topics they match, which is more specific, and every way in which they overlap."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.policy import cells
from rules.policy.patterns import Pattern, read_pattern
from tests.rules.policies import globs, patterns

pytestmark = pytest.mark.slow

# Every name of up to five of the letters that patterns of the tests have, and of one that they have not.
NAMES = ["".join(letters) for length in range(1, 6) for letters in itertools.product("ab_x", repeat=length)]


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", ["orders"], ["orders-eu", "order", "Orders"]),
        ("orders-*", ["orders-", "orders-eu"], ["orders", "my-orders-eu"]),
        ("*-eu", ["-eu", "orders-eu"], ["orders-eu-1"]),
        ("a*b*a", ["aba", "a-b-a", "abba"], ["ab", "aa", "a"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_star_stands_for_any_run_of_characters(pattern: str, matching: list[str], others: list[str]) -> None:
    """Everything but * stands for itself, and the whole name has to match."""
    glob = read_pattern(pattern)

    assert [name for name in matching + others if glob.matches(name)] == matching


@pytest.mark.parametrize("pattern", ["*", "_*", "*offsets"])
def test_internal_topics_are_matched_only_by_internal_patterns(pattern: str) -> None:
    """`*` is what people write for their own topics."""
    assert not Pattern(pattern).matches("__consumer_offsets")
    assert Pattern("__*").matches("__consumer_offsets")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a?", "'?' is in no topic's name"),
        ("[ab]", "'[' is in no topic's name"),
        ("orders/eu", "'/' is in no topic's name"),
        ("a**", "two * in a row"),
        ("", "1 to 249 characters"),
        ("..", "not . or .."),
        ("a" * 250, "1 to 249 characters"),
    ],
)
def test_what_no_name_can_match_is_refused(text: str, said: str) -> None:
    """A pattern that could never match is a mistake, and the message says which."""
    with pytest.raises(ValueError, match=re.escape(said)):
        read_pattern(text)


@given(one=patterns, other=patterns)
def test_one_covers_the_other_if_it_matches_all_that_the_other_does(one: str, other: str) -> None:
    """`covers` is set inclusion: no name of a large sample is in the inner pattern and not in the outer."""
    outer, inner = Pattern(one), Pattern(other)
    matched = [name for name in NAMES if inner.matches(name)]

    is_inside = all(outer.matches(name) for name in matched)

    # Without a name of five letters there is nothing to compare.
    assert outer.covers(inner) == is_inside or not matched or len(other) > 4


@given(texts=st.lists(globs | patterns, max_size=4))
def test_every_name_falls_into_one_of_the_cells(texts: list[str]) -> None:
    """Whatever patterns a name matches, some cell has exactly these; an example is one of its names."""
    every = [Pattern(text) for text in texts]
    found = list(cells.cells(every))
    of_cells = {frozenset(cell.matching) for cell in found}

    of_names = {frozenset(pattern for pattern in every if pattern.matches(name)) for name in NAMES}

    assert of_names - {frozenset()} <= of_cells
    for cell in found:
        assert frozenset(pattern for pattern in every if pattern.matches(cell.example)) >= set(cell.matching)


def test_example_of_a_cell_is_a_shortest_name() -> None:
    """The name that an error shows is as plain as can be."""
    found = cells.cells([Pattern("orders-*"), Pattern("*-eu"), Pattern("*")])

    assert {cell.example: {str(pattern) for pattern in cell.matching} for cell in found} == {
        "a": {"*"},
        "-eu": {"*-eu", "*"},
        "orders-": {"orders-*", "*"},
        "orders-eu": {"orders-*", "*-eu", "*"},
    }


def test_too_many_overlaps_are_refused() -> None:
    """The search ends: what would take for ever is told."""
    every = [Pattern(f"*{one}{other}*") for one in "abcdef" for other in "xyz"]

    with pytest.raises(cells.TooIntricate):
        list(cells.cells(every))


def test_thousands_of_exact_names_are_no_search() -> None:
    """A table for each of the topics of a large cluster is read in no time worth naming."""
    every = [Pattern(f"topic-{number}") for number in range(5_000)] + [Pattern("topic-*"), Pattern("*-1")]

    found = list(cells.cells(every))

    assert len(found) == 5_000 + 3
