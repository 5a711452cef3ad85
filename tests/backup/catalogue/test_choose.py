"""Which copies answer for a range: lineages, overlaps, and why what is lost is lost."""

from __future__ import annotations

from typing import Any

import pytest

from backup.catalogue.bytes import lineage_of, plan_log
from backup.catalogue.choose import choose, whole_lineage
from backup.plan import LostBecause, Origin, Range
from tests.backup.world import World
from tests.tiering.segments.strategies import LOG, gap
from tiering.segments.coverage import GapPiece
from tiering.segments.records import EpochStart, SegmentRecord


def chosen(world: World, start: int, end: int) -> list[tuple[int, int, str]]:
    """Pieces by their origin and lost ranges by their reason, in the order of offsets."""
    found = choose(world.catalogue(), Range(start, end))
    pieces = [(each.start, each.end, each.origin.value) for each in found.pieces]
    return sorted([*pieces, *((each.start, each.end, each.because.value) for each in found.lost)])


def removed(world: World, base: int, end: int, **fields: Any) -> SegmentRecord:
    record = world.copy(base, end, **fields)
    world.remove(record)
    return record


def test_each_offset_is_answered_for_once_by_what_reaches_furthest() -> None:
    """Overlapping copies of several leaders: as few of them as do it."""
    world = World()
    removed(world, 0, 10)
    removed(world, 0, 30)
    removed(world, 5, 20)
    removed(world, 25, 40)

    assert chosen(world, 0, 40) == [(0, 30, "version"), (30, 40, "version")]
    assert chosen(world, 3, 8) == [(3, 8, "version")]


def test_what_counts_already_is_not_copied_again() -> None:
    """A live copy that straddles the start answers for all that it has, although another reaches further."""
    world = World()
    world.copy(5, 20)
    world.copy(20, 30)
    removed(world, 0, 40)
    world.change(log_start=15, first_tiered_offset=15)

    assert chosen(world, 0, 30) == [(0, 30, "version")]
    assert chosen(world, 5, 30) == [(5, 20, "tier"), (20, 30, "tier")]


def test_why_a_range_is_lost() -> None:
    """Gone from the bucket, on record as a gap, or never copied: each range with its own reason."""
    world = World()
    first = removed(world, 0, 10)
    world.lifecycle_takes(f"{first.key_stem}.aux")
    world.copy(30, 40)
    world.change(gaps=(gap(10, 20),))

    assert chosen(world, 0, 40) == [
        (0, 10, "version_gone"),
        (10, 20, "on_record"),
        (20, 30, "never_copied"),
        (30, 40, "tier"),
    ]


def test_a_copy_with_a_hole_in_it_is_no_copy() -> None:
    """Fewer records than offsets: which are missing is not known."""
    world = World()
    removed(world, 0, 10, record_count=9)

    assert chosen(world, 0, 10) == [(0, 10, LostBecause.INCOMPLETE.value)]


def test_a_copy_of_another_history_is_none_of_the_logs() -> None:
    """A leader that was deposed by an unclean election wrote other records there."""
    world = World()
    world.change(leader_epochs=(EpochStart(0, 0), EpochStart(5, 10)))
    removed(world, 0, 10, epochs=((0, 0),))
    removed(world, 10, 20, epochs=((3, 10),))
    removed(world, 5, 15, epochs=((0, 5), (5, 10)), leader_epoch=5)

    assert chosen(world, 0, 20) == [(0, 10, "version"), (10, 15, "version"), (15, 20, "other_history")]


def test_the_lineage_is_led_back_by_the_copies_below_it() -> None:
    """The log's record knows its epochs from 30 on; the copies tell those before, to their first offsets."""
    world = World()
    removed(world, 0, 10, epochs=((0, 0), (1, 5)), leader_epoch=5)
    removed(world, 10, 30, epochs=((1, 10), (3, 20)), leader_epoch=5)
    world.copy(30, 40, epochs=((3, 30), (5, 35)), leader_epoch=5)
    world.change(log_start=30, first_tiered_offset=30, leader_epochs=(EpochStart(3, 30), EpochStart(5, 35)))

    lineage = whole_lineage(world.catalogue())
    assert [tuple(each) for each in lineage] == [(0, 0), (1, 5), (3, 20), (5, 35)]
    world.apply(world.plan())

    assert world.readable() == set(range(40))
    assert world.record.leader_epochs == lineage


def test_a_copy_below_with_a_later_epoch_does_not_lead_back() -> None:
    """Epochs rise with offsets: what contradicts that is another history."""
    world = World()
    removed(world, 0, 10, epochs=((4, 0),), leader_epoch=5)
    world.copy(10, 20, epochs=((3, 10),), leader_epoch=5)
    world.change(log_start=10, first_tiered_offset=10, leader_epochs=(EpochStart(3, 10),))

    assert chosen(world, 0, 20) == [(0, 10, "other_history"), (10, 20, "tier")]


@pytest.mark.parametrize("keeps", ["first", "second"])
def test_any_version_of_the_very_bytes_will_do(keeps: str) -> None:
    """Restored and expired again there are two versions; with one of them gone the other serves."""
    world = World()
    world.copy(0, 10)
    world.copy(10, 20)
    world.expire_below(10)
    world.apply(world.plan())
    world.change(keep_until_ms=None)
    world.expire_below(10)
    for versions in world.kept.objects.values():
        contents = [each for each in versions if not each.is_marker]
        if versions[-1].is_marker:
            versions.remove(contents[1] if keeps == "first" else contents[0])

    world.apply(world.plan())

    assert world.readable() == set(range(20))


def test_a_plan_reads_as_a_log() -> None:
    """From its own versions, removed as they are, with its gaps in their places and its own lineage."""
    world = World()
    removed(world, 0, 10, epochs=((0, 0), (1, 5)), leader_epoch=5)
    removed(world, 20, 30, epochs=((1, 20),), leader_epoch=5)
    world.copy(30, 40, epochs=((1, 30),), leader_epoch=5)
    world.change(log_start=30, first_tiered_offset=30, leader_epochs=(EpochStart(1, 30),))
    body = world.plan(2, 30).body

    log = plan_log(body)
    parts = list(log.coverage.pieces(log.start, log.end))

    assert (log.log, log.start, log.end) == (LOG, 2, 30)
    assert [(each.start, each.end, isinstance(each, GapPiece)) for each in parts] == [
        (2, 10, False),
        (10, 20, True),
        (20, 30, False),
    ]
    assert [tuple(each) for each in lineage_of(body.pieces)] == [(0, 2), (1, 5)]
    found = log.segment(body.pieces[0].record.segment_id)
    assert found is not None
    assert found.objects == body.pieces[0].record.objects
    assert body.pieces[0].origin is Origin.VERSION
