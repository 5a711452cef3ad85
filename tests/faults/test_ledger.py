"""What the ledger calls kept, and what it calls broken."""

from __future__ import annotations

import pytest

from tests.faults.ledger import Place, Promised

PROMISED = Promised(by_place={Place(0, 0): b"a", Place(0, 1): b"b"}, unplaced=frozenset({b"c"}))
ALL = {Place(0, 0): b"a", Place(0, 1): b"b", Place(0, 2): b"c"}


def test_all_there_once_is_kept() -> None:
    """The record whose offset nobody was told may be anywhere, once."""
    assert PROMISED.differences(ALL) == []


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({Place(0, 0): b"a", Place(0, 2): b"c"}, "lost"),
        ({Place(0, 0): b"a", Place(0, 1): b"b"}, "lost"),
        (ALL | {Place(0, 1): b"a"}, "another"),
        (ALL | {Place(0, 3): b"c"}, "2 times"),
        (ALL | {Place(0, 3): b"d"}, "never promised"),
    ],
)
def test_anything_else_is_broken(read: dict[Place, bytes], said: str) -> None:
    """Lost with and without a place, another record in its place, twice, and from nowhere."""
    [difference] = PROMISED.differences(read)

    assert said in difference
