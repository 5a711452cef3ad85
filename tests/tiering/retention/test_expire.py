"""Carrying expiry out: the order of its steps, what stands after any of them, and who may come in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rules.events import DeleteCause
from tests.tiering.retention.world import DAY_MS, EPOCH, Killed, World, killed
from tiering.retention.expire import Run, dry_run, expire, forget, is_own_key
from tiering.retention.expiry import Advance
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import ForgetLog, Presence, RecordTopicGone, Remove
from tiering.retention.remote_policy import TOPIC_GRACE_MS, BlastLimit
from tiering.segments.findings import Reason as NotFollowedFor
from tiering.segments.records import SegmentId, SegmentRecord, SegmentState
from tiering.store.errors import Denied, StoreError
from tiering.uploader.errors import NotFollowed

FINISHED, STARTED = SegmentState.COPY_FINISHED, SegmentState.COPY_STARTED
DELETING, DELETED = SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED
A, B, C = (0, 100), (100, 200), (200, 300)


def world_of_three(log_start: int = 200) -> World:
    """Three expired copies; the start moved past the first two, long ago."""
    made = World()
    made.claim()
    for base, end in (A, B, C):
        made.copy(base, end)
    made.change(log_start=log_start)
    made.moment = 0
    return made


@pytest.fixture
def world() -> World:
    return world_of_three()


def records(world: World) -> list[SegmentRecord]:
    found = (world.segment(world.log, each.segment_id) for each in world.view.segments())
    return [record for record in found if record is not None]


def forgotten(world: World) -> tuple[SegmentId, ...]:
    found = forget(world.log, world.ports)
    assert not isinstance(found, Keep)
    return found


def test_the_start_is_moved_and_nothing_else() -> None:
    """An advance is one record under the standing claim: no object and no segment's record changes."""
    world = world_of_three(log_start=0)

    run = expire(world.log, world.ports)

    assert isinstance(run.plan, Advance)
    assert (run.stopped, run.removed) == (None, ())
    assert world.log_start == 300
    record = world.view.record
    assert record is not None
    assert (record.claim_epoch, record.claim_offset) == (EPOCH, 0)
    assert world.marked() == set()
    assert set(world.states().values()) == {FINISHED}


def test_an_advance_gives_way_to_what_came_in_between() -> None:
    """A hold placed after the look is not undone: the record based on an older one is not followed."""
    world = world_of_three(log_start=0)
    world.at = {1: lambda: world.hold(0, 100)}  # before the publication

    run = expire(world.log, world.ports)

    assert isinstance(run.stopped, NotFollowed)
    assert NotFollowedFor.LOST_RACE.value in str(run.stopped)
    assert world.log_start == 0
    assert world.view.own_key_shadowed


def test_removal_is_metadata_first_objects_second_ascending(world: World) -> None:
    """T5: DELETE_STARTED, three markers, DELETE_FINISHED, for the first segment, then for the next."""
    run = expire(world.log, world.ports)

    first, second, third = records(world)
    assert run.removed == (first.segment_id, second.segment_id)
    assert run.stopped is None
    assert world.findings == []
    assert world.states() == {A: DELETED, B: DELETED, C: FINISHED}
    assert world.kinds() == ["delete_started", "delete_finished"] * 2
    assert [world.is_marked(record) for record in (first, second, third)] == [True, True, False]
    assert len(world.marked()) == 6
    assert world.paced == 6


def test_the_events_say_what_the_topic_says(world: World) -> None:
    """An event has its record's id and time, and the offset at which the topic holds it."""
    expire(world.log, world.ports)

    [started, finished, *_] = world.removal_events()
    [first, *_] = records(world)
    assert (finished.event_id, finished.occurred_at_ms) == (first.event_id, first.occurred_at_ms)
    assert started.metadata_offset < finished.metadata_offset
    assert {event.cause for event in world.removal_events()} == {DeleteCause.LOG_START}
    key, value = world.topic_records[started.metadata_offset]
    assert value is not None
    assert started.segment_id in key.decode()
    assert b"DELETE_STARTED" in value


def test_a_delete_is_a_marker(world: World) -> None:
    """Every version stays readable: a delete can be undone until the bucket's lifecycle comes."""
    [first, *_] = records(world)
    assert first.objects.log is not None

    expire(world.log, world.ports)

    versions = world.store.kept.objects[f"{first.key_stem}.log"]
    assert [version.is_marker for version in versions] == [False, True]


def test_a_bucket_without_versions_is_left_alone(world: World) -> None:
    """What is deleted there is gone for good: not even the metadata says that it goes."""
    world.store.kept.versioned = False

    run = expire(world.log, world.ports)

    assert isinstance(run.stopped, Keep)
    assert run.stopped.reason is Reason.NOT_VERSIONED
    assert set(world.states().values()) == {FINISHED}


def test_a_dry_run_does_nothing(world: World) -> None:
    """It says all that the run would do, and leaves the world as it was."""
    before = list(world.topic_records)

    plan = dry_run(world.log, world.ports)

    assert isinstance(plan, Remove)
    assert (world.topic_records, world.marked(), world.events) == (before, set(), [])
    run = expire(world.log, world.ports)
    assert run == Run(plan=plan, removed=tuple(copy.segment_id for copy in plan.copies))


def test_the_first_failure_ends_the_run(world: World) -> None:
    """A prefix, always: the second segment is not begun when the first could not be removed."""
    world.store.refuse("mark", Denied)

    run = expire(world.log, world.ports)

    assert isinstance(run.stopped, StoreError)
    assert (run.removed, world.states()) == ((), {A: DELETING, B: FINISHED, C: FINISHED})

    assert len(expire(world.log, world.ports).removed) == 2


def test_a_second_run_changes_nothing(world: World) -> None:
    """When all that is due is done, there is nothing to do."""
    expire(world.log, world.ports)
    world.policy = replace(world.policy, total_ms=10_000 * DAY_MS)
    before = list(world.topic_records)

    run = expire(world.log, world.ports)

    assert isinstance(run.plan, Keep)
    assert world.topic_records == before


def test_the_two_acts_take_turns() -> None:
    """Move the start, wait, remove, move again: to the end of the tier, each once."""
    world = world_of_three(log_start=0)
    world.policy = replace(world.policy, blast_per_hour=BlastLimit(2, 2**40), grace_ms=3_600_000)

    seen = []
    for _ in range(8):
        run = expire(world.log, world.ports)
        seen.append(run.plan.reason if isinstance(run.plan, Keep) else type(run.plan))
        world.now_ms += 1_800_000

    grace, frontier = Reason.GRACE, Reason.AT_FRONTIER
    assert seen == [Advance, grace, Remove, Advance, grace, Remove, frontier, frontier]
    assert world.states() == {A: DELETED, B: DELETED, C: DELETED}


def moments_of(make: Callable[[], World]) -> int:
    """How many moments an undisturbed run has."""
    world = make()
    expire(world.log, world.ports)
    return world.moment


@pytest.mark.parametrize("moment", range(moments_of(world_of_three)))
def test_killed_at_any_moment_the_next_run_ends_it(moment: int) -> None:
    """Each effect is repeatable; each object gets its marker; each event is said at least once per state."""
    world = world_of_three()
    world.at = {moment: killed}

    with pytest.raises(Killed):
        expire(world.log, world.ports)
    _assert_prefix(world)
    expire(world.log, world.ports)

    assert world.states() == {A: DELETED, B: DELETED, C: FINISHED}
    assert len(world.marked()) == 6
    said = {(event.segment_id, event.kind) for event in world.removal_events()}
    first, second, _ = records(world)
    assert said >= {(first.segment_id, "delete_started"), (second.segment_id, "delete_started")}


def test_one_event_id_one_payload() -> None:
    """An event that a killed run may or may not have said is said again in the same words (AUD-02)."""
    for moment in range(moments_of(world_of_three)):
        world = world_of_three()
        world.at = {moment: killed}
        with pytest.raises(Killed):
            expire(world.log, world.ports)
        expire(world.log, world.ports)

        by_id = {event.event_id: event for event in world.events}
        assert all(by_id[event.event_id] == event for event in world.events)


@pytest.mark.parametrize("moment", range(moments_of(world_of_three)))
def test_a_hold_at_any_moment_keeps_what_was_not_on_its_way(moment: int) -> None:
    """A hold before DELETE_STARTED, or before the last look, leaves the objects alone; else it is late."""
    world = world_of_three()
    held_at: list[int] = []

    def hold() -> None:
        held_at.append(len(world.topic_records))
        world.hold(100, 200)

    world.at = {moment: hold}
    expire(world.log, world.ports)
    world.at = {}

    _, second, _ = records(world)
    started = [e.metadata_offset for e in world.removal_events() if e.segment_id == second.segment_id]
    if world.is_marked(second):
        assert started
        assert min(started) < held_at[0]
    _assert_prefix(world)
    marked = world.marked()
    assert isinstance(expire(world.log, world.ports).plan, Keep)
    assert world.marked() == marked


def test_a_hold_after_the_announcement_spares_the_objects(world: World) -> None:
    """The metadata says DELETE_STARTED, and then a hold comes: no marker is put, by this run or the next."""
    [first, *_] = records(world)
    world.at = {4: lambda: world.hold(0, 100)}  # after the publication of DELETE_STARTED

    run = expire(world.log, world.ports)

    assert world.states()[A] is DELETING
    assert isinstance(run.stopped, Keep)
    assert run.stopped.reason is Reason.HELD
    assert not world.is_marked(first)


@pytest.mark.parametrize("moment", range(moments_of(world_of_three)))
def test_a_new_leader_at_any_moment_ends_the_old_ones_run(moment: int) -> None:
    """A claim above ours: what we began is left for the new leader's agent, who ends it."""
    world = world_of_three()
    world.at = {moment: lambda: world.claim(EPOCH + 1)}
    expire(world.log, world.ports)
    _assert_prefix(world)

    world.leader_epoch = EPOCH + 1
    expire(world.log, world.ports)

    assert world.states() == {A: DELETED, B: DELETED, C: FINISHED}


def test_a_segment_restored_in_between_keeps_its_objects(world: World) -> None:
    """A restore after our DELETE_STARTED opens a new generation, which is not ours to remove."""
    [first, *_] = records(world)

    def restore() -> None:
        world.restore(first)
        world.change(log_start=0, keep_until_ms=world.now_ms + DAY_MS)

    world.at = {4: restore}

    run = expire(world.log, world.ports)

    assert isinstance(run.stopped, Keep)
    assert not world.is_marked(first)
    assert world.states()[A] is FINISHED


def test_a_key_of_something_else_is_not_touched(world: World) -> None:
    """A record that names another's objects, by mistake or by malice, is kept."""
    victim = records(world)[2]
    world.copy(0, 50, key_stem=victim.key_stem)

    run = expire(world.log, world.ports)

    assert isinstance(run.stopped, Keep)
    assert run.stopped.reason is Reason.TABLE_DOUBTED
    assert not world.is_marked(victim)


def test_own_keys_are_told_under_any_prefix(world: World) -> None:
    """The prefix may have changed since; cluster, topic, partition, base and id may not."""
    [first, *_] = records(world)
    own = first.key_stem.removeprefix("seawall/")

    assert is_own_key(first, world.log)
    assert is_own_key(replace(first, key_stem=own), world.log)
    assert is_own_key(replace(first, key_stem=f"a/b/{own}"), world.log)
    assert not is_own_key(replace(first, key_stem=f"x{own}"), world.log)
    assert not is_own_key(replace(first, base_offset=1), world.log)
    assert not is_own_key(first, world.log._replace(partition=4))


def test_runs_share_the_hours_limit(world: World) -> None:
    """Two segments within the hour, whichever run they go in; the third waits."""
    world.change(log_start=300)
    world.policy = replace(world.policy, blast_per_hour=BlastLimit(2, 2**40))

    runs = [expire(world.log, world.ports), expire(world.log, world.ports)]

    assert [len(run.removed) for run in runs] == [2, 0]
    assert isinstance(runs[1].plan, Keep)
    assert runs[1].plan.reason is Reason.BLAST_LIMIT
    world.now_ms += 3_600_000
    assert len(expire(world.log, world.ports).removed) == 1


def test_a_deleted_topic_ends_as_a_tombstone(world: World) -> None:
    """Put on record; after its grace all its copies go; after the window they, and then it, are forgotten."""
    world.copy(300, 400, state=STARTED)
    world.topic = Presence.GONE
    world.leader_epoch = -1
    assert isinstance(expire(world.log, world.ports).plan, RecordTopicGone)
    assert isinstance(expire(world.log, world.ports).plan, Keep)

    world.now_ms += TOPIC_GRACE_MS
    assert len(expire(world.log, world.ports).removed) == 4
    assert {event.cause for event in world.removal_events()} == {DeleteCause.TOPIC_DELETED}
    world.now_ms += world.policy.window_ms
    assert len(forgotten(world)) == 4

    assert isinstance(expire(world.log, world.ports).plan, ForgetLog)
    assert world.view.record is None
    assert [value for _, value in world.topic_records[-5:]] == [None] * 5


def test_only_this_topic_ids_objects_go() -> None:
    """A topic made again under the same name is another log, with other keys."""
    world = world_of_three()
    other = World(log=world.log._replace(topic_id="3cVtEW_RTm2TSqxDBnRsEA"), store=world.store)
    other.claim()
    kept = other.copy(0, 100)
    world.topic = Presence.GONE
    world.change(topic_deleted_at_ms=world.now_ms - TOPIC_GRACE_MS)

    run = expire(world.log, world.ports)

    assert len(run.removed) == 3
    assert not other.is_marked(kept)


def test_a_removed_segment_is_forgotten_after_the_backup_window(world: World) -> None:
    """Before that its record says what a restore would put back."""
    expire(world.log, world.ports)
    world.now_ms += world.policy.window_ms - 1
    found = forget(world.log, world.ports)
    assert isinstance(found, Keep)
    assert found.reason is Reason.GRACE

    world.now_ms += 1

    assert len(forgotten(world)) == 2
    assert world.states() == {C: FINISHED}


def test_a_held_segment_is_not_forgotten(world: World) -> None:
    """Who holds a range wants to know what was in it, removed or not."""
    expire(world.log, world.ports)
    world.hold(0, 50)
    world.now_ms += 2 * world.policy.window_ms

    assert len(forgotten(world)) == 1
    assert world.states() == {A: DELETED, C: FINISHED}


def test_a_doubted_table_forgets_nothing(world: World) -> None:
    """A lagging table may not know of a restore."""
    expire(world.log, world.ports)
    world.now_ms += 2 * world.policy.window_ms
    world.lag = 1

    found = forget(world.log, world.ports)

    assert isinstance(found, Keep)
    assert found.reason is Reason.TABLE_DOUBTED


def _assert_prefix(world: World) -> None:
    """Whatever is on its way out lies below the start, and nothing before it is still there."""
    order = [FINISHED, DELETING, DELETED]
    stages = [order.index(record.state) for record in records(world)]
    assert stages == sorted(stages, reverse=True)
    for record in records(world):
        if record.state is not FINISHED or world.is_marked(record):
            assert record.end_offset <= world.log_start
        if record.state is FINISHED:
            assert not world.is_marked(record)
