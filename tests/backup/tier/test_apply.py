"""A restore to the tier: what it puts back, what it refuses, and how it goes on after a kill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backup.errors import (
    BucketUnfit,
    CannotRestore,
    GapInTheMiddle,
    NothingToRestore,
    OverlapsLive,
    PieceUnreadable,
    PlanOutdated,
    WrongCluster,
)
from backup.plan import LostBecause, Origin, Plan, Range
from backup.plan.codec import plan_of
from rules.events import CopyFinished, Restored, RestoreTarget
from rules.identity import ObjectRef
from rules.policy import read_policy
from tests.backup.world import DELETED, KINDS, Killed, Meddled, World
from tests.tiering.retention.world import POLICY
from tests.tiering.segments.strategies import LOG
from tiering.retention.facts import facts_of
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import Situation, next_act
from tiering.store.content import InMemory
from tiering.store.errors import ChecksumRefused, Denied, Unavailable
from tiering.store.interface import checksum_text, crc64


def expired(count: int = 4, below: int = 30, **fields: Any) -> World:
    """`count` copies of ten offsets, those below `below` expired."""
    world = World(**fields)
    for place in range(count):
        world.copy(10 * place, 10 * place + 10)
    world.expire_below(below)
    return world


def test_an_expired_prefix_is_read_again_at_once() -> None:
    """Its objects are live, its copies count in a new generation, the log begins where it began."""
    world = expired()
    assert world.readable() == set(range(30, 40))

    plan = world.plan()
    done = world.apply(plan)

    assert world.readable() == set(range(40))
    assert done.ranges == (Range(0, 30),)
    assert (world.record.log_start, world.record.first_tiered_offset) == (0, 0)
    assert done.objects_put_back == 9
    generations = [each.generation for each in world.view(LOG).segments()]
    assert generations == [1, 1, 1, 0]
    assert not any(versions[-1].is_marker for versions in world.kept.objects.values())


def test_it_is_kept_from_our_own_retention() -> None:
    """The promise is in the log's record, for as long as the plan says, and never shortens another."""
    world = expired()
    plan = world.plan(keep_for_ms=1000)
    world.change(keep_until_ms=world.now_ms + 5000)

    done = world.apply(plan)

    assert done.keep_until_ms == world.now_ms + 5000
    world = expired()
    assert world.apply(world.plan(keep_for_ms=1000)).keep_until_ms == world.now_ms + 1000


def test_the_promise_comes_first_and_the_start_last() -> None:
    """In between, agents neither expire what is put back nor see a hole."""
    world = expired()
    before = world.coverage().frontier

    def look(moment: int) -> None:
        if moment >= 2:
            assert world.record.keep_until_ms is not None
        if world.record.log_start == 30:
            assert world.coverage().frontier == before

    world.meddle = look
    world.apply(world.plan())
    assert world.coverage().frontier.offset == before.offset


def test_our_own_expiry_takes_nothing_of_it_at_any_step() -> None:
    """What expiry would do next, between any two effects and after them: keep, a restore asks for time."""
    world = expired()
    long_ago = {"occurred_at_ms": world.now_ms - 30 * POLICY.grace_ms}
    world.change(**long_ago)
    acts = []

    def look(moment: int) -> None:
        ends = len(world.topic_records)
        facts = facts_of(LOG, world.view(LOG), applied_to=ends, end_offset=ends)
        now = Situation(
            facts=facts,
            policy=POLICY,
            now_ms=world.now_ms,
            leader_epoch=world.epoch,
            may_advance=POLICY.blast_per_advance,
            may_remove=POLICY.blast_per_hour,
        )
        acts.append(next_act(now))

    world.meddle = look
    world.apply(world.plan())
    look(-1)

    kept = [each for each in acts[1:] if isinstance(each, Keep) and each.reason is Reason.KEEP_UNTIL]
    assert len(kept) == len(acts) - 1 > 20


def test_no_version_is_deleted() -> None:
    """Every version that was there before is there after it."""
    world = expired()
    before = {key: {each.version_id for each in found} for key, found in world.kept.objects.items()}

    world.apply(world.plan())

    after = {key: {each.version_id for each in found} for key, found in world.kept.objects.items()}
    assert all(before[key] <= after[key] for key in before)


def test_three_requests_a_segment_beside_listings() -> None:
    """One copy an object; two listings, one of uploads, and once whether the bucket keeps versions."""
    world = expired(count=21, below=200)
    plan = world.plan()
    world.store.asked.clear()

    world.apply(plan)

    assert world.store.asked == {"copy": 3 * 20, "list versions": 2, "list uploads": 1, "versioning": 1}


def test_what_is_told_closes_exactly_what_was_put_back() -> None:
    """A copy_finished each segment, a restored for each unbroken range, the upper first."""
    world = expired()
    gone = next(each for each in world.view(LOG).segments() if each.base_offset == 10)
    record = world.segment(LOG, gone.segment_id)
    assert record is not None
    world.lifecycle_takes(f"{record.key_stem}.log")

    plan = world.plan()
    world.apply(plan)

    told = [each for each in world.events if isinstance(each, Restored)]
    assert [(each.start_offset, each.end_offset) for each in told] == [(20, 30), (0, 10)]
    assert all(
        (each.planned_start, each.planned_end) == (each.start_offset, each.end_offset) for each in told
    )
    assert {each.plan_hash for each in told} == {plan.hash}
    finished = [each for each in world.events if isinstance(each, CopyFinished)]
    assert [(each.base_offset, each.generation) for each in finished] == [(0, 1), (20, 1)]


def test_applied_twice_it_is_done_once() -> None:
    """The second time finds it done: no new version, no new record, the same events by their ids."""
    world = expired()
    plan = world.plan()
    world.apply(plan)
    picture, told = world.picture(), [each.event_id for each in world.events]

    again = world.apply(plan)

    assert again.was_over
    assert world.picture() == picture
    assert [each.event_id for each in world.events] == told + told


def test_a_kill_at_every_step_is_gone_on_with() -> None:
    """Before and after each effect: the second run ends where an undisturbed one does."""
    whole = expired()
    whole.apply(whole.plan())
    moments = whole.moment
    assert moments >= 28
    for moment in range(moments):
        world = expired()
        plan = world.plan()

        def kill(at: int, wanted: int = moment) -> None:
            if at == wanted:
                raise Killed

        world.meddle = kill
        with pytest.raises(Killed):
            world.apply(plan)
        world.meddle = lambda moment: None
        assert set(range(30, 40)) <= world.readable()

        world.apply(plan)

        assert world.readable() == set(range(40)), moment
        assert len({each.event_id for each in world.events}) == len(whole.events)
        live = [sum(not each.is_marker for each in found) for found in world.kept.objects.values()]
        assert max(live) <= 2, "an object was put back twice"


def test_many_threads_put_back_the_same() -> None:
    """Sixteen workers: all of it, each object once."""
    world = expired(count=41, below=400)

    done = world.apply(world.plan(), workers=16)

    assert world.readable() == set(range(410))
    assert done.objects_put_back == 120


def test_a_removal_that_was_cut_off_is_undone() -> None:
    """DELETE_STARTED, with some markers or none: only what is covered is copied."""
    for until in range(1, 5):
        world = World()
        first, _ = world.copy(0, 10), world.copy(10, 20)
        world.change(log_start=10)
        world.remove(first, until=until)

        done = world.apply(world.plan())

        assert world.readable() == set(range(20))
        assert done.objects_put_back == until - 1


def test_a_start_that_moved_and_nothing_else_costs_no_copy() -> None:
    """Within the grace the copies are all live: the record is enough."""
    world = World()
    world.copy(0, 10)
    world.copy(10, 20)
    world.change(log_start=10)

    plan = world.plan()
    done = world.apply(plan)

    assert [piece.origin for piece in plan.body.pieces] == [Origin.TIER]
    assert done.objects_put_back == 0
    assert world.readable() == set(range(20))


def test_objects_deleted_under_a_record_come_back() -> None:
    """Somebody's delete markers in the live range: FINISHED again, of the next generation."""
    world = World()
    record = world.copy(0, 10)
    world.copy(10, 20)
    for kind in KINDS:
        world.store.mark_deleted(f"{record.key_stem}.{kind}")

    done = world.apply(world.plan())

    assert done.ranges == (Range(0, 10),)
    assert world.record.log_start == 0
    again = world.segment(LOG, record.segment_id)
    assert again is not None
    assert again.generation == 1
    assert not world.kept.objects[f"{record.key_stem}.log"][-1].is_marker


def test_what_the_topic_has_forgotten_is_told_by_the_bucket() -> None:
    """A tombstone, and versions that a hold kept: the .json under its marker is enough."""
    world = World()
    first = world.copy(0, 10, record_count=10)
    world.copy(10, 20)
    world.change(log_start=10)
    world.forget(world.remove(first))

    world.apply(world.plan())

    assert world.readable() == set(range(20))


def test_a_restored_prefix_that_expired_again_comes_back_again() -> None:
    """Generation after generation; the latest version on record is the source."""
    world = expired()
    for generation in (1, 2, 3):
        world.apply(world.plan())
        assert max(each.generation for each in world.view(LOG).segments()) == generation
        assert world.readable() == set(range(40))
        world.change(keep_until_ms=None)
        world.expire_below(30)
        assert world.readable() == set(range(30, 40))


def test_a_new_leader_meanwhile_is_no_reason_to_stop() -> None:
    """A claim between any two effects: what was based on the record before is written again."""
    whole = expired()
    whole.apply(whole.plan())
    for moment in range(0, whole.moment, 3):
        world = expired()
        plan = world.plan()

        def claim(at: int, world: World = world, wanted: int = moment) -> None:
            if at == wanted:
                world.claim()

        world.meddle = claim
        world.apply(plan)

        assert world.readable() == set(range(40)), moment


# What is refused, with nothing changed.


def refused(world: World, plan: Plan, kind: type[Exception], *, but_for: str = "", **other: Any) -> str:
    """The message of an apply that raised, and changed nothing that anybody could see.

    `but_for`: a key that the test itself changes meanwhile.
    """
    before = world.picture()
    with pytest.raises(kind) as caught:
        world.apply(plan, **other)
    now = world.picture()
    assert now[:5] == before[:5]
    for key, versions in before[5].items():
        assert key == but_for or versions == [each for each in now[5][key] if each in versions]
    assert now[6] == before[6], "something is live that was not, or the reverse"
    assert world.events == []
    return str(caught.value)


def source_of(world: World, base: int, kind: str = "log") -> str:
    found = next(each for each in world.view(LOG).segments() if each.base_offset == base)
    record = world.segment(LOG, found.segment_id)
    assert record is not None
    return f"{record.key_stem}.{kind}"


def test_a_version_that_is_gone_since() -> None:
    """The lifecycle took it between plan and apply."""
    world = expired()
    plan = world.plan()
    world.lifecycle_takes(source_of(world, 10))

    said = refused(world, plan, PlanOutdated)

    assert "not any more" in said
    assert "make another plan" in said


def test_a_version_that_goes_while_it_is_copied() -> None:
    """What was put back until then is under a marker again."""
    world = expired()
    plan = world.plan()
    key = source_of(world, 20)

    def take(moment: int) -> None:
        if moment == 4:
            world.kept.objects[key] = world.kept.objects[key][-1:]

    world.meddle = take
    assert "not any more" in refused(world, plan, PieceUnreadable, but_for=key)


def test_bytes_that_are_not_those_on_record() -> None:
    """The store's checksum of what it copied is another."""
    world = expired()
    plan = world.plan()
    world.kept.objects[source_of(world, 10)][0].content = b"?" * 1000

    class Comparing(Meddled):
        """The store as the S3 adapter makes it: it compares."""

        def copy_version(self, source: ObjectRef) -> str | None:
            if world.content(source) is None:
                raise ChecksumRefused(bucket="memory", key=source.key, operation="copy", why="other bytes")
            return super().copy_version(source)

    assert "is not what is on record" in refused(world, plan, PieceUnreadable, objects=Comparing(world))


def test_a_gap_in_the_middle() -> None:
    """Without --pass-gaps nothing is done; what lies above it can be had, as the error says."""
    world = expired()
    world.lifecycle_takes(source_of(world, 10))
    plan = world.plan(passes_gaps=False)

    said = refused(world, plan, GapInTheMiddle)
    assert "[10, 20)" in said
    assert "from offset 20 on" in said
    assert [(each.start, each.end, each.because) for each in plan.body.lost] == [
        (10, 20, LostBecause.VERSION_GONE)
    ]

    world.apply(world.plan(20, 30, passes_gaps=False))
    assert world.readable() == set(range(20, 40))


def test_a_gap_just_below_the_live_log_is_in_the_way_too() -> None:
    """Between the last piece and the start nothing may be missing either."""
    world = expired()
    world.lifecycle_takes(source_of(world, 20))

    refused(world, world.plan(passes_gaps=False), GapInTheMiddle)
    world.apply(world.plan())
    assert world.readable() == set(range(40)) - set(range(20, 30))


def test_a_gap_that_was_passed_once_is_on_record_for_the_next_time() -> None:
    """Expired and restored again, it is one gap still, and stands in nobody's way."""
    world = expired()
    world.lifecycle_takes(source_of(world, 10))
    world.apply(world.plan())
    world.change(keep_until_ms=None)
    world.expire_below(30)
    plan = world.plan(passes_gaps=False)

    world.apply(plan)

    assert [(each.start, each.end, each.because) for each in plan.body.lost] == [
        (10, 20, LostBecause.ON_RECORD)
    ]
    assert [(each.start_offset, each.end_offset) for each in world.record.gaps] == [(10, 20)]
    assert world.readable() == set(range(40)) - set(range(10, 20))


def test_a_start_that_moved_since() -> None:
    """Somebody else restored, or expiry went on."""
    world = expired()
    plan = world.plan()
    world.expire_below(40)

    assert "begins at 40" in refused(world, plan, PlanOutdated)


def test_a_policy_that_changed_since() -> None:
    """Whoever approved the plan did so under another policy."""
    world = expired()
    plan = world.plan()
    world.policy = read_policy({"topics": {"*": {"backup_window_days": 3}}}).effective("orders")

    assert "policy" in refused(world, plan, PlanOutdated)


def test_a_bucket_that_changed_since() -> None:
    """Another marker on a key: somebody deleted it once more."""
    world = expired()
    plan = world.plan()
    world.store.mark_deleted(source_of(world, 0))

    assert "another marker" in refused(world, plan, PlanOutdated)


@pytest.mark.parametrize("size", [7, 1000])
def test_a_foreign_object_on_a_key(size: int) -> None:
    """Never written over, be it of another size or of the same."""
    world = expired()
    plan = world.plan()
    content = b"x" * size
    world.store.put_new(source_of(world, 10), InMemory(content), checksum_text(crc64(content, 0)))

    assert "another object" in refused(world, plan, OverlapsLive)


def test_another_cluster() -> None:
    """A plan names its cluster."""
    world = expired()

    assert "and this is elsewhere" in refused(world, world.plan(), WrongCluster, cluster_id="elsewhere")


def test_a_bucket_that_keeps_no_versions() -> None:
    """Neither planned nor applied."""
    world = expired()
    plan = world.plan()
    world.kept.versioned = False

    refused(world, plan, BucketUnfit)
    with pytest.raises(BucketUnfit):
        world.plan()


def test_credentials_that_may_not_read_versions() -> None:
    """Denied at the listing, or at the first copy."""
    world = expired()
    plan = world.plan()
    world.store.refuse("list versions", Denied)
    refused(world, plan, Denied)

    world.store.refuse("copy", Denied)
    refused(world, plan, Denied)


def test_a_plan_for_another_target() -> None:
    """Each target carries out its own."""
    world = expired()
    plan = world.plan()
    other = plan_of(replace(plan.body, target=RestoreTarget.TOPIC))

    assert "for target topic" in refused(world, other, CannotRestore)


def test_nothing_to_restore() -> None:
    """Everything is live, or nothing is left."""
    world = World()
    world.copy(0, 10)
    with pytest.raises(NothingToRestore, match="is live"):
        world.plan()
    world = expired(count=1, below=10)
    for kind in KINDS:
        world.lifecycle_takes(source_of(world, 0, kind))
    with pytest.raises(NothingToRestore):
        world.plan()


def test_an_outage_leaves_what_is_there_for_the_next_run() -> None:
    """The store is away for longer than the patience: the same plan goes on, and copies the rest."""
    world = expired()
    plan = world.plan()
    copied = 0

    def away(moment: int) -> None:
        nonlocal copied
        if moment == 8:
            world.store.refuse("copy", *[Unavailable] * 2)

    world.meddle = away
    with pytest.raises(Unavailable):
        world.apply(plan)
    assert world.record.keep_until_ms is not None
    world.meddle = lambda moment: None
    assert world.readable() == set(range(30, 40))

    done = world.apply(plan)

    assert 0 < done.objects_put_back < 9
    assert world.readable() == set(range(40))
    assert all(each.state is not DELETED for each in world.view(LOG).segments())
