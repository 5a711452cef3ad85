"""What of a log is on brokers alone: neither had back, nor lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backup.catalogue.summary import summary, with_leader
from backup.plan import Range
from tests.backup.world import World


def with_a_hole() -> World:
    """Copies of [0, 10), [20, 30), [30, 40); the first two are expired, and of [10, 20) there is none."""
    world = World()
    for base in (0, 20, 30):
        world.copy(base, base + 10)
    world.expire_below(30)
    return world


def test_what_the_tier_lacks_and_a_leader_has_is_held() -> None:
    """A hole that the disk still fills, and what is above the frontier; the rest of the hole is lost."""
    found = with_leader(summary(with_a_hole().catalogue()), 15, 55)

    assert found.held == (Range(15, 20), Range(40, 55))
    assert [(each.start, each.end) for each in found.lost] == [(10, 15)]
    assert (found.recoverable_offsets, found.held_offsets, found.lost_offsets) == (20, 20, 5)


def test_a_leader_that_begins_above_changes_nothing_below() -> None:
    """What it lost is lost, or had back."""
    before = summary(with_a_hole().catalogue())

    found = with_leader(before, 35, 40)

    assert (found.lost, found.held) == (before.lost, ())


@pytest.mark.slow
@given(st.integers(0, 60), st.integers(0, 60))
def test_each_offset_is_in_one_place(start: int, length: int) -> None:
    """Pieces, held and lost ranges do not overlap, and the leader's whole range is in pieces or held."""
    world, end = with_a_hole(), start + length
    found = with_leader(summary(world.catalogue()), start, end)

    copied = [Range(each.start, each.end) for each in found.pieces]
    lost = [Range(each.start, each.end) for each in found.lost]
    offsets = [offset for each in (*copied, *lost, *found.held) for offset in range(*each)]
    assert len(offsets) == len(set(offsets))
    assert {offset for each in (*copied, *found.held) for offset in range(*each)} >= set(range(start, end))
    assert set(offsets) >= set(range(40))
