"""Copying a segment: the order of its steps, and what stands after it ends at any of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from rules.events import CopyFailed, DeleteCause, SegmentRejected
from tests.encode.segment import batches, write_segment
from tests.tiering.uploader.world import ATTEMPTS, Killed, World
from tiering.log.directory import read_partition_directory
from tiering.segments.codec import decode_segment
from tiering.segments.records import SegmentRecord, SegmentState
from tiering.uploader.copy import copy_segment, remove_segment
from tiering.uploader.errors import NotCommitted, NotFollowed, NotLeading, SegmentChanged, SegmentUnfit
from tiering.uploader.holder import HeldSegment, SegmentHolder

STARTED, FINISHED = SegmentState.COPY_STARTED, SegmentState.COPY_FINISHED
DELETING, DELETED = SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """One closed segment of offsets 0 to 8, and an active one."""
    path = tmp_path / "orders-0"
    path.mkdir()
    write_segment(path, 0, [*batches(0, count=2, leader_epoch=3), *batches(6, count=1, leader_epoch=5)])
    write_segment(path, 9, [])
    return path


@pytest.fixture
def holder() -> Iterator[SegmentHolder]:
    held = SegmentHolder()
    yield held
    held.close()


@pytest.fixture
def segment(partition: Path, holder: SegmentHolder) -> HeldSegment:
    [held] = holder.keep("orders-0", read_partition_directory(partition).segments)
    return held


def states(world: World) -> list[SegmentState]:
    return [record.state for record in world.tier.published]


def test_a_sound_segment_is_announced_stored_and_committed(segment: HeldSegment, partition: Path) -> None:
    """STARTED before the first object, FINISHED after the last; the record says what the bytes hold."""
    world = World()

    committed = copy_segment(ATTEMPTS, segment, world.ports)

    assert states(world) == [STARTED, FINISHED]
    assert world.sink.kinds() == ["copy_started", "copy_finished"]
    assert (committed.base_offset, committed.end_offset, committed.data_end) == (0, 9, 9)
    assert [tuple(start) for start in committed.leader_epochs] == [(3, 0), (5, 6)]
    assert (committed.record_count, committed.batch_count) == (9, 3)
    assert {kind for kind, _ in committed.objects.present()} == {"log", "aux", "json"}
    stored = world.objects.live[f"{committed.key_stem}.log"]
    assert stored == (partition / f"{0:020d}.log").read_bytes()


def test_the_json_object_tells_the_story_without_the_topic(segment: HeldSegment) -> None:
    """The bucket alone holds the committed record, all but the .json's own reference."""
    world = World()

    committed = copy_segment(ATTEMPTS, segment, world.ports)

    alone = decode_segment(world.objects.live[f"{committed.key_stem}.json"])
    assert alone.state is FINISHED
    assert (alone.objects.log, alone.objects.aux) == (committed.objects.log, committed.objects.aux)
    assert alone.segment_id == committed.segment_id


def test_unsound_bytes_never_leave(partition: Path, holder: SegmentHolder) -> None:
    """T3: a flipped bit ends the copy before anything is announced, and says where it is."""
    path = partition / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    [held] = holder.keep("orders-0", read_partition_directory(partition).segments)
    world = World()

    with pytest.raises(SegmentUnfit):
        copy_segment(ATTEMPTS, held, world.ports)

    assert (states(world), world.objects.versions) == ([], {})
    [rejected] = world.sink.events
    assert isinstance(rejected, SegmentRejected)
    assert (rejected.problem, rejected.position) == ("crc_mismatch", 0)


def test_a_segment_that_ends_early_is_not_coverage(partition: Path, holder: SegmentHolder) -> None:
    """T2: records that end before the next base are a hole that Kafka does not see; it is not uploaded."""
    write_segment(partition, 0, batches(0, count=2))
    [held] = holder.keep("orders-0", read_partition_directory(partition).segments)
    world = World()

    with pytest.raises(SegmentUnfit) as caught:
        copy_segment(ATTEMPTS, held, world.ports)

    assert caught.value.problem == "hole"
    assert states(world) == []


@pytest.mark.parametrize(
    ("bounds", "error", "seen"),
    [
        ([8], NotCommitted, []),
        ([None], NotLeading, []),
        ([9, 8], NotCommitted, [STARTED]),
        ([9, None], NotLeading, [STARTED]),
    ],
)
def test_leading_and_commitment_are_asked_before_and_after(
    segment: HeldSegment, bounds: list[int | None], error: type[Exception], seen: list[SegmentState]
) -> None:
    """T1: the leader's word is asked before the first byte and again before COPY_FINISHED."""
    world = World(bounds=bounds)

    with pytest.raises(error):
        copy_segment(ATTEMPTS, segment, world.ports)

    assert states(world) == seen
    assert world.tier.in_state(FINISHED) == []


def test_a_commit_behind_a_newer_claim_does_not_count(segment: HeldSegment) -> None:
    """T6: COPY_FINISHED behind a newer leader's claim is not followed, and the copy says so."""
    world = World()
    world.tier.fenced_from = 1

    with pytest.raises(NotFollowed):
        copy_segment(ATTEMPTS, segment, world.ports)

    assert world.tier.in_state(FINISHED) == []
    assert world.sink.kinds() == ["copy_started", "copy_failed"]


@pytest.mark.parametrize("kind", [".log", ".aux", ".json"])
def test_a_store_that_fails_leaves_an_attempt_that_says_what_it_left(segment: HeldSegment, kind: str) -> None:
    """An error ends the attempt uncommitted; the event names every key that may hold something."""
    world = World()
    world.objects.fail_on = kind

    with pytest.raises(ConnectionError):
        copy_segment(ATTEMPTS, segment, world.ports)

    assert states(world) == [STARTED]
    failed = world.sink.events[-1]
    assert isinstance(failed, CopyFailed)
    assert set(world.objects.live) <= set(failed.leftovers)


def test_a_file_that_changes_between_two_reads_is_not_committed(segment: HeldSegment) -> None:
    """What was verified first and what was sent must be the same."""
    world = World()
    world.objects.corrupt = True

    with pytest.raises(SegmentChanged):
        copy_segment(ATTEMPTS, segment, world.ports)

    assert world.tier.in_state(FINISHED) == []


def test_a_removal_is_metadata_first_and_leaves_every_version(segment: HeldSegment) -> None:
    """T5: DELETE_STARTED before the first marker, DELETE_FINISHED after the last; no version goes."""
    world = World()
    committed = copy_segment(ATTEMPTS, segment, world.ports)

    remove_segment(committed, DeleteCause.LOG_START, world.ports, ATTEMPTS)

    assert states(world)[2:] == [DELETING, DELETED]
    assert world.objects.live == {}
    assert len(world.objects.versions) == 3


def run_until_done(world: World, segment: HeldSegment) -> SegmentRecord:
    """What an agent does: clean up what a dead attempt left, then copy; again after each kill."""
    for _ in range(20):
        try:
            for record in world.tier.in_state(STARTED, DELETING):
                remove_segment(record, DeleteCause.FAILED_COPY, world.ports, ATTEMPTS)
            finished = world.tier.in_state(FINISHED)
            return finished[0] if finished else copy_segment(ATTEMPTS, segment, world.ports)
        except Killed:
            world.plan.at = None
    raise AssertionError("twenty restarts were not enough")


EFFECTS = 5  # STARTED, .log, .aux, .json, FINISHED


@pytest.mark.parametrize(("at", "applied"), list(itertools.product(range(1, EFFECTS + 1), [False, True])))
def test_a_kill_at_any_effect_ends_in_exactly_one_copy(segment: HeldSegment, at: int, applied: bool) -> None:
    """Killed just before or just after each effect and restarted: one committed copy, nothing else live."""
    world = World()
    world.plan.at, world.plan.applied = at, applied

    committed = run_until_done(world, segment)

    assert world.tier.in_state(FINISHED) == [committed]
    assert world.tier.in_state(STARTED, DELETING) == []
    assert set(world.objects.live) == {f"{committed.key_stem}.{kind}" for kind in ("log", "aux", "json")}


@pytest.mark.parametrize(("at", "applied"), list(itertools.product(range(1, 6), [False, True])))
def test_a_kill_at_any_effect_of_a_removal_ends_in_its_end(
    segment: HeldSegment, at: int, applied: bool
) -> None:
    """A removal that is killed anywhere and begun again ends deleted, with nothing live."""
    world = World()
    committed = copy_segment(ATTEMPTS, segment, world.ports)
    world.plan.count, world.plan.at, world.plan.applied = 0, at, applied

    for _ in range(3):
        record = world.tier.followed[committed.segment_id]
        if record.state is DELETED:
            break
        try:
            remove_segment(record, DeleteCause.LOG_START, world.ports, ATTEMPTS)
        except Killed:
            world.plan.at = None

    assert world.tier.followed[committed.segment_id].state is DELETED
    assert world.objects.live == {}
    assert len(world.objects.versions) == 3
