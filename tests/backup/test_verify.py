"""What a look at the catalogue, and at the bytes, calls wrong: each kind once, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from backup.catalogue.bytes import StoredPieces
from backup.verify import Wrong, of_bytes, of_catalogue, pieces_of
from tests.backup.world import KINDS, World
from tiering.segments.records import SegmentRecord
from tiering.store.aux_file import AuxContents, encode_aux

WINDOW_MS = 1000


def wrong(world: World, **other: Any) -> list[Wrong]:
    said = {"window_ms": WINDOW_MS, "now_ms": 1_700_000_000_000, **other}
    return list(of_catalogue(world.catalogue(), **said))


def whole() -> tuple[World, list[SegmentRecord]]:
    world = World()
    return world, [world.copy(10 * place, 10 * place + 10) for place in range(4)]


def test_a_whole_tier_has_nothing_wrong() -> None:
    """Live copies, and what was removed with its versions."""
    world, _ = whole()
    world.expire_below(20)

    assert wrong(world) == []


def test_what_lost_its_objects_is_damaged() -> None:
    """Under a marker, under another version, or without the version that is on record."""
    for kind in KINDS:
        world, made = whole()
        world.store.mark_deleted(f"{made[1].key_stem}.{kind}")
        [found] = wrong(world)
        assert (found.kind, found.start, found.end) == ("damaged", 10, 20)
        assert "lies under a delete marker" in found.detail
    world, made = whole()
    world.kept.objects[f"{made[1].key_stem}.log"].clear()
    assert [each.kind for each in wrong(world)] == ["hole", "damaged"]


def test_a_removed_copy_without_versions_is_gone_if_the_window_is_not_over() -> None:
    """Inside of the window it was promised; after it nobody asks."""
    world, made = whole()
    world.expire_below(20)
    world.lifecycle_takes(f"{made[0].key_stem}.log")
    removed_ms = 1_700_000_000_000

    assert [each.kind for each in wrong(world, now_ms=removed_ms)] == ["gone"]
    assert wrong(world, now_ms=10**13) == []


def test_a_hole_in_the_live_range_is_told() -> None:
    """A copy in the middle that was removed while it counted: the frontier stands at it."""
    world, made = whole()
    world.remove(made[2])
    for kind in KINDS:
        world.lifecycle_takes(f"{made[2].key_stem}.{kind}")

    assert world.coverage().frontier.offset == 20
    assert {each.kind for each in wrong(world, now_ms=10**13)} == set()
    assert {each.kind for each in wrong(world)} == {"gone"}


def test_bytes_are_read_against_the_record() -> None:
    """A flipped byte in a .log, or an .aux that is none: named with its version."""
    world, made = whole()
    [first, second, *_] = pieces_of(world.catalogue())
    stored = StoredPieces(world.objects)
    told = of_bytes(first, "orders-3", stored)
    assert told is not None
    assert "aux" in told.detail  # its content is none that an uploader would write

    aux = encode_aux(
        AuxContents(
            base_offset=10,
            end_offset=20,
            offset_index=None,
            time_index=None,
            transaction_index=None,
            producer_snapshot=None,
            leader_epochs=made[1].leader_epochs,
            aborted=(),
        )
    )
    ref = world.put("some/other.aux", aux)
    record = replace(second.record, objects=replace(second.record.objects, aux=ref))
    right = replace(second, record=record)
    assert of_bytes(right, "orders-3", stored) is None
    world.kept.objects[right.log_object.key][0].content = b"x" * right.log_object.size_bytes
    told = of_bytes(right, "orders-3", stored)
    assert told is not None
    assert (told.kind, "checksum" in told.detail) == ("bytes", True)
