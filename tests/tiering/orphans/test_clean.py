"""What each leftover is taken for, and that taking away any one guard loses a copy that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from rules.events import DeleteCause, DeleteFinished
from tests.tiering.orphans.world import DELETED, FINISHED, LAYOUT, Killed, World
from tests.tiering.segments.strategies import LOG
from tiering.orphans import clean
from tiering.orphans.clean import Ports
from tiering.orphans.judge import GRACE_MS, Judged, Reason, Verdict
from tiering.orphans.listing import listing
from tiering.segments.records import SegmentRecord
from tiering.store.content import InMemory
from tiering.store.interface import checksum_text, crc64

Step = Iterator[None]


@pytest.fixture
def world() -> World:
    found = World()
    found.claim()
    return found


def run(step: Step, effects: int = 99) -> Step:
    for _ in range(effects):
        next(step, None)
    return step


def only(world: World, grace_ms: int = GRACE_MS) -> tuple[Verdict, Reason]:
    [judged], _ = world.look_around(grace_ms)
    return judged.verdict, judged.reason


def put(world: World, key: str) -> None:
    world.store.put_new(key, InMemory(b"x"), checksum_text(crc64(b"x", 0)))


def clean_now(world: World) -> list[str | None]:
    return [outcome.kept for outcome in world.clean_up(world.look_around()[0])]


def test_a_committed_copy_is_referenced(world: World) -> None:
    """Nothing of it is ever an orphan, whatever its age."""
    run(world.upload(0))
    world.now_ms += 100 * GRACE_MS

    assert only(world) == (Verdict.REFERENCED, Reason.COMMITTED)
    assert clean_now(world) == []


@pytest.mark.parametrize("effects", range(1, 6))
def test_an_attempt_of_the_highest_claim_is_in_flight_for_its_grace(world: World, effects: int) -> None:
    """Wherever an upload stands: first in flight, then stalled; removed, its rest cannot commit."""
    upload = run(world.upload(0), effects)
    assert only(world) == (Verdict.IN_FLIGHT, Reason.STALLED)
    world.now_ms += GRACE_MS

    assert only(world) == (Verdict.ORPHAN, Reason.STALLED)
    assert clean_now(world) == [None]
    assert (world.live(), world.store.kept.uploads) == (set(), {})
    run(upload)
    assert world.committed() == {}


def test_an_attempt_under_a_lower_claim_goes_at_once(world: World) -> None:
    """Its commit would be fenced: no grace is needed, and the event says that it failed."""
    run(world.upload(0), 3)
    world.claim()

    assert only(world) == (Verdict.ORPHAN, Reason.ABANDONED)
    assert clean_now(world) == [None]
    [finished] = [event for event in world.events if isinstance(event, DeleteFinished)]
    assert (finished.cause, finished.leader_epoch) == (DeleteCause.FAILED_COPY, world.epoch)


def test_a_copy_committed_behind_a_claim_is_an_orphan(world: World) -> None:
    """T6: whole and finished, and counted by nobody; also where compaction left nothing but its commit."""
    upload = run(world.upload(0), 5)
    world.claim()
    run(upload)
    assert only(world) == (Verdict.ORPHAN, Reason.ABANDONED)
    world.compacted.add(1)

    assert only(world) == (Verdict.ORPHAN, Reason.FENCED)
    assert clean_now(world) == [None]
    assert world.live() == set()
    [finished] = [event for event in world.events if isinstance(event, DeleteFinished)]
    assert finished.cause is DeleteCause.ORPHAN


@pytest.mark.parametrize("effects", range(1, 5))
def test_a_removal_that_died_is_finished(world: World, effects: int) -> None:
    """From wherever it stopped, past the grace."""
    run(world.upload(0))
    [segment_id] = world.committed()
    run(world.remove(segment_id), effects)
    assert only(world) == (Verdict.IN_FLIGHT, Reason.HALF_REMOVED)
    world.now_ms += GRACE_MS

    assert clean_now(world) == [None]
    assert world.live() == set()
    assert world.in_state(DELETED) == [segment_id]


def test_what_a_restore_has_put_back_is_left_alone_until_it_says_so(world: World) -> None:
    """Objects under a finished removal are in flight for the grace, and then left over."""
    run(world.upload(0))
    [segment_id] = world.committed()
    run(world.remove(segment_id))
    restore = run(world.restore(segment_id), 2)

    assert only(world) == (Verdict.IN_FLIGHT, Reason.REMOVED)
    run(restore)
    assert only(world) == (Verdict.REFERENCED, Reason.COMMITTED)


def test_without_a_record_only_what_never_was_whole_is_removed(world: World) -> None:
    """A lost topic takes every record: what has a .json is reported and stays, whatever its age."""
    run(world.upload(0))
    stem = "seawall/MkU3OEVBNTcwNTJENDM2Qk/CgkTzsXgRlOwPTRJHnL2yg/3/00000000000000000007-"
    put(world, f"{stem}00000000-0000-4000-8000-000000000001.log")
    world.records.clear()
    world.claim()
    assert {each.verdict for each in world.look_around()[0]} == {Verdict.UNCONFIRMED, Verdict.IN_FLIGHT}
    world.now_ms += GRACE_MS
    whole = {key for key in world.live() if not key.startswith(stem)}

    assert clean_now(world) == [None]
    assert world.live() == whole


def test_nothing_foreign_is_ever_touched(world: World) -> None:
    """Keys that are not ours to the character are reported apart."""
    put(world, "seawall/notes.txt")
    world.now_ms += 100 * GRACE_MS

    judged, foreign = world.look_around()

    assert (judged, [each.key for each in foreign]) == ([], ["seawall/notes.txt"])


def test_a_log_without_a_claim_is_not_known() -> None:
    """A table that has no record of the log says nothing about its objects."""
    world = World()
    put(
        world,
        "seawall/MkU3OEVBNTcwNTJENDM2Qk/CgkTzsXgRlOwPTRJHnL2yg/3/00000000000000000007-"
        "00000000-0000-4000-8000-000000000001.log",
    )
    world.now_ms += 100 * GRACE_MS

    assert only(world) == (Verdict.KEPT, Reason.LOG_DOUBTED)


def test_a_hold_keeps_orphans_on_its_offsets_only(world: World) -> None:
    """One orphan is on held offsets, one is below them."""
    run(world.upload(0), 3)
    run(world.upload(20), 3)
    world.claim()
    world.hold((20, None))

    verdicts = {each.attempt.base_offset: each.verdict for each in world.look_around()[0]}

    assert verdicts == {0: Verdict.ORPHAN, 20: Verdict.KEPT}


def test_a_hold_that_comes_after_the_removal_was_begun_stops_it(world: World) -> None:
    """It is heeded before the first marker, and the next run goes on when it is released."""
    run(world.upload(0), 5)
    world.claim()
    planned, _ = world.look_around()
    world.meddle = lambda effect: world.hold((0, None)) if effect == 2 else None

    [outcome] = world.clean_up(planned)

    assert outcome.kept is not None
    assert "hold" in outcome.kept
    assert len(world.live()) == 3
    world.hold()
    world.now_ms += GRACE_MS
    assert clean_now(world) == [None]


@pytest.mark.parametrize("effect", range(1, 9))
def test_a_cleaner_killed_at_any_effect_is_gone_on_with(world: World, effect: int) -> None:
    """Looks, records, aborts and markers: the next run, past the grace, ends what the first began."""
    run(world.upload(0), 2)
    world.claim()

    def die(at: int) -> None:
        if at == effect:
            raise Killed

    world.meddle = die
    world.clean_up(world.look_around()[0])
    world.now_ms += GRACE_MS

    assert set(clean_now(world)) <= {None}
    assert (world.live(), world.store.kept.uploads) == (set(), {})
    assert world.in_state(DELETED) == [each.segment_id for each in world.view().segments()]


def test_a_bucket_without_versions_loses_nothing(world: World) -> None:
    """Where a delete could not be undone there is none."""
    run(world.upload(0), 4)
    world.claim()
    world.store.kept.versioned = False

    [kept] = clean_now(world)

    assert kept is not None
    assert "keeps no versions" in kept


# Each history has one guard that saves the copy: with it the copy counts at the end, without it, it is lost.


def committed_after_the_plan(world: World) -> None:
    """Planned while it was stalled; then its upload went on and committed it."""
    upload = run(world.upload(0), 4)
    world.now_ms += GRACE_MS
    planned, _ = world.look_around()
    run(upload)
    world.clean_up(planned)


def committed_under_the_cleaner(world: World) -> None:
    """Its upload commits between the cleaner's look and its first act."""
    upload = run(world.upload(0), 5)
    world.now_ms += GRACE_MS
    world.meddle = lambda effect: next(upload, None) if effect == 2 else None
    world.clean_up(world.look_around()[0])
    run(upload)


def seen_by_an_old_table(world: World) -> None:
    """Listed half uploaded, and looked up in a table that has not read that it was begun."""
    upload = run(world.upload(0), 3)
    world.lag = 1
    found, _ = world.look_around()
    planned = [
        Judged(
            attempt=each.attempt,
            segment=None,
            verdict=Verdict.ORPHAN,
            reason=Reason.UNRECORDED,
            detail="an old table had no record of it",
        )
        for each in found
    ]
    run(upload)
    world.lag = 2
    world.now_ms += GRACE_MS
    world.clean_up(planned)


def no_second_look(planned: Judged, ports: Ports) -> str | None:
    record = ports.table.segment(LOG, planned.attempt.segment_id)
    assert record is not None
    return clean._remove_recorded(ports.table.look(LOG), planned.attempt, record, planned.reason, ports)


def objects_first(known: Any, attempt: Any, record: SegmentRecord, reason: Any, ports: Ports) -> None:
    for kind in ("json", "aux", "log"):
        ports.objects.mark_deleted(f"{record.key_stem}.{kind}")


@dataclass(frozen=True, slots=True)
class Case:
    history: Callable[[World], None]
    where: str
    unguarded: object


@pytest.mark.parametrize(
    "case",
    [
        Case(committed_after_the_plan, "tiering.orphans.clean._clean", no_second_look),
        Case(committed_under_the_cleaner, "tiering.orphans.clean._remove_recorded", objects_first),
        Case(seen_by_an_old_table, "tiering.orphans.judge.DOUBTS", ()),
    ],
    ids=lambda case: case.history.__name__,
)
def test_each_guard_saves_a_copy(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """The same history is played with the guard and without it."""

    def is_saved() -> bool:
        world = World()
        world.claim()
        case.history(world)
        return len(world.in_state(FINISHED)) == 1 and world.referenced() <= world.live()

    assert is_saved()
    monkeypatch.setattr(case.where, case.unguarded)
    assert not is_saved()


def test_a_listing_keeps_of_committed_copies_the_sums_alone(world: World) -> None:
    """A bucket has millions of them; they are counted, with their bytes, and nothing else is left out."""
    run(world.upload(0))
    run(world.upload(3), 3)
    committed = world.committed()

    found = listing(
        LAYOUT,
        world.bucket.list_keys("seawall/"),
        world.bucket.list_uploads("seawall/"),
        is_committed=lambda segment: segment.segment_id in committed,
    )

    [record] = committed.values()
    assert found.committed_segments == 1
    assert found.committed_bytes == sum(ref.size_bytes for _, ref in record.objects.present())
    assert [each.base_offset for each in found.attempts] == [3]
