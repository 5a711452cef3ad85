"""Pins: what they keep, what they leave, and when a removed copy may go."""

from __future__ import annotations

import itertools

import pytest

from backup.errors import NothingToRestore
from backup.pins import Leaves, NoSuchPin, Pinned, ends_at_ms, keep, leaving, over, pin_id, unkeep
from backup.plan import Range
from tests.backup.world import World
from tests.tiering.segments.strategies import LOG
from tiering.holds.placing import Means
from tiering.segments.records import Hold, ReleasedHold

DAY_MS = 86_400_000


def expired() -> World:
    world = World()
    for place in range(4):
        world.copy(10 * place, 10 * place + 10)
    world.expire_below(30)
    return world


def means(world: World) -> Means:
    ids = itertools.count(1)
    return Means(
        tier=world, now_ms=lambda: world.now_ms, new_id=lambda: f"pin-record-{next(ids)}-{world.moment}"
    )


def pinned(
    world: World, start: int, end: int, *, until_ms: int | None = None, token: str = "0" * 8
) -> Pinned:
    hold = Hold(
        hold_id=pin_id(token, until_ms),
        start_offset=start,
        end_offset=end,
        reason="an audit",
        placed_by="somebody",
        placed_at_ms=world.now_ms,
    )
    return keep(world.catalogue(), Range(start, end), hold, means(world), world.objects)


def unpinned(world: World, name: str) -> Pinned:
    released = ReleasedHold(
        hold_id=name, released_by="somebody", reason="it is over", released_at_ms=world.now_ms
    )
    return unkeep(world.catalogue(), released, means(world), world.objects)


def held(world: World) -> set[int]:
    """Base offsets of segments all of whose versions are held."""
    found = set()
    for each in world.view(LOG).segments():
        record = world.segment(LOG, each.segment_id)
        assert record is not None
        refs = [ref for _, ref in record.objects.present()]
        if all(world.store.is_held(ref.key, ref.version_id or "") for ref in refs):
            found.add(each.base_offset)
    return found


def test_a_pin_holds_each_version_of_its_range_and_no_other() -> None:
    """On record with its reason, and by legal hold; what it touches in part it holds whole."""
    world = expired()

    done = pinned(world, 5, 20)

    assert held(world) == {0, 10}
    assert (done.versions.held, done.versions.trouble) == (6, None)
    [hold] = world.record.holds
    assert (hold.start_offset, hold.end_offset, hold.reason) == (5, 20, "an audit")


def test_released_it_leaves_what_another_pin_keeps() -> None:
    """The versions of a range that two pins keep go free with the second."""
    world = expired()
    first, second = pinned(world, 0, 20, token="1" * 8), pinned(world, 10, 30, token="2" * 8)

    unpinned(world, first.hold.hold_id)
    assert held(world) == {10, 20}
    unpinned(world, second.hold.hold_id)
    assert held(world) == set()
    assert world.record.holds == ()
    assert len(world.record.released_holds) == 2


def test_what_is_no_pin_is_not_released_here() -> None:
    """A finding's hold, or none at all."""
    world = expired()
    with pytest.raises(NoSuchPin):
        unpinned(world, "pin-00000000")
    hold = Hold(hold_id="finding-1", start_offset=0, end_offset=None, reason="", placed_by="", placed_at_ms=0)
    world.change(holds=(hold,))
    with pytest.raises(NoSuchPin):
        unpinned(world, "finding-1")


def test_nothing_can_be_pinned_where_nothing_is_left() -> None:
    """The lifecycle was first."""
    world = expired()
    for record in [world.segment(LOG, each.segment_id) for each in world.view(LOG).segments()][:1]:
        assert record is not None
        world.lifecycle_takes(f"{record.key_stem}.log")

    with pytest.raises(NothingToRestore):
        pinned(world, 0, 10)


def test_a_pin_ends_where_it_says() -> None:
    """Its end is in its name; past it, and not before, it is over."""
    world = expired()
    pinned(world, 0, 10, until_ms=world.now_ms + 500, token="1" * 8)
    forever = pinned(world, 10, 20, token="2" * 8)

    assert over(world.catalogue(), world.now_ms + 499) == ()
    [ended] = over(world.catalogue(), world.now_ms + 500)
    assert (ended.start_offset, ends_at_ms(ended)) == (0, world.now_ms + 500)
    assert ends_at_ms(forever.hold) is None


def test_when_a_removed_copy_may_go() -> None:
    """After the window, counted from its marker; never while held; gone is gone; live ones are not told."""
    world = expired()
    pinned(world, 10, 20)
    last = [each for each in world.catalogue().copies if each.record.base_offset == 20]
    world.lifecycle_takes(f"{last[0].record.key_stem}.aux")
    marked_ms = world.now_ms

    told = {each.start: each for each in leaving(world.catalogue(), window_ms=DAY_MS, now_ms=marked_ms)}
    later = list(leaving(world.catalogue(), window_ms=DAY_MS, now_ms=marked_ms + DAY_MS))

    assert [each.leaves for each in told.values()] == [Leaves.LATER, Leaves.HELD, Leaves.GONE]
    assert told[0].at_ms is not None
    assert abs(told[0].at_ms - marked_ms - DAY_MS) < 10
    assert [each.leaves for each in later] == [Leaves.ANY_DAY, Leaves.HELD, Leaves.GONE]
    assert world.readable() == set(range(30, 40))
