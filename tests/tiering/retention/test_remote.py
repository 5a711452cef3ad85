"""What is done about a log's expiry: in which order, after how long, and what stops all of it (T5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rules.events import DeleteCause
from rules.policy import read_policy
from tests.tiering.retention.world import DAY_MS, EPOCH, HOUR_MS, POLICY, World
from tiering.retention.expiry import Advance
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import Act, ForgetLog, Presence, RecordTopicGone, Remove, next_act
from tiering.retention.remote_policy import (
    BLAST_BYTES_PER_HOUR,
    TOPIC_GRACE_MS,
    BlastLedger,
    BlastLimit,
    RemotePolicy,
    remote_policy,
)
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import SegmentState

STARTED, DELETING = SegmentState.COPY_STARTED, SegmentState.DELETE_STARTED


def act(world: World) -> Act:
    return next_act(world.look(world.log))


def why(world: World) -> Reason:
    found = act(world)
    assert isinstance(found, Keep), found
    return found.reason


def ids(found: Act) -> list[str]:
    assert isinstance(found, Remove), found
    return [copy.segment_id for copy in found.copies]


@pytest.fixture
def world() -> World:
    """Three expired copies of a hundred offsets, the start moved past the first two, two graces ago."""
    made = World()
    made.claim()
    for base in (0, 100, 200):
        made.copy(base, base + 100)
    made.change(log_start=200)
    return made


def test_what_lies_below_the_recorded_start_is_removed_first(world: World) -> None:
    """The start moves on only when what the last move freed is gone: the two acts never meet."""
    found = act(world)

    assert isinstance(found, Remove)
    assert [(copy.base_offset, copy.end_offset) for copy in found.copies] == [(0, 100), (100, 200)]
    assert found.cause is DeleteCause.LOG_START


def test_readers_are_given_a_grace(world: World) -> None:
    """Not before a grace after the record that moved the start."""
    world.change(log_start=200, occurred_at_ms=world.now_ms - DAY_MS + 1)
    assert why(world) is Reason.GRACE

    world.now_ms += 1

    assert len(ids(act(world))) == 2


def test_a_record_from_the_future_gives_no_leave(world: World) -> None:
    """A writer's clock that is ahead makes the grace longer, never shorter."""
    world.change(occurred_at_ms=world.now_ms + 30 * DAY_MS)

    assert why(world) is Reason.GRACE


def test_a_copy_that_reaches_past_the_start_is_not_removed(world: World) -> None:
    """Wholly below, or not at all."""
    world.change(log_start=199)

    assert len(ids(act(world))) == 1


def _lags(world: World) -> None:
    world.lag = 1


def _is_empty(world: World) -> None:
    world.table = type(world.table)(world.table.topic, 0, complete_from=0)
    world.topic_records.clear()


def _is_unreadable(world: World) -> None:
    world.append_raw(segment_key(world.log, world.view.finished.segment_id(2)), b'{"kind":"segment"')


def _log_is_unreadable(world: World) -> None:
    world.append_raw(log_key(world.log), b'{"kind":"log","min_reader":9,"version":9}')


def _is_shadowed(world: World) -> None:
    record = world.view.record
    assert record is not None
    world.append(replace(record, based_on=0, claim_offset=0, event_id="lost the race"))


def _another_leads(world: World) -> None:
    world.claim(EPOCH + 1)


def _we_do_not_lead_yet(world: World) -> None:
    world.leader_epoch = EPOCH + 1


def _is_off(world: World) -> None:
    world.policy = replace(world.policy, deletes=False)


def _is_restored(world: World) -> None:
    world.change(keep_until_ms=world.now_ms + 1)


def _nobody_knows_the_topic(world: World) -> None:
    world.topic = Presence.UNKNOWN


def _is_deleted_and_there(world: World) -> None:
    world.change(topic_deleted_at_ms=world.now_ms - 100 * DAY_MS)


def _is_held(world: World) -> None:
    world.hold(0, 1)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (_lags, Reason.TABLE_DOUBTED),
        (_is_empty, Reason.TABLE_DOUBTED),
        (_is_unreadable, Reason.TABLE_DOUBTED),
        (_log_is_unreadable, Reason.TABLE_DOUBTED),
        (_is_shadowed, Reason.TABLE_DOUBTED),
        (_another_leads, Reason.NOT_LEADING),
        (_we_do_not_lead_yet, Reason.NOT_LEADING),
        (_is_off, Reason.OFF),
        (_is_restored, Reason.KEEP_UNTIL),
        (_nobody_knows_the_topic, Reason.TOPIC_UNKNOWN),
        (_is_deleted_and_there, Reason.TOPIC_THERE),
        (_is_held, Reason.HELD),
    ],
)
@pytest.mark.parametrize("log_start", [0, 200])
def test_what_stops_everything(
    world: World, happens: Callable[[World], None], reason: Reason, log_start: int
) -> None:
    """Neither the start moves nor is anything removed, and the answer says why."""
    world.change(log_start=log_start)
    assert isinstance(act(world), Advance if log_start == 0 else Remove)

    happens(world)

    assert why(world) is reason


def test_keeping_ends_with_its_time(world: World) -> None:
    """A restored range is kept until the moment that the restore asked for, and no longer."""
    world.change(keep_until_ms=world.now_ms + 1)

    world.now_ms += 1

    assert len(ids(act(world))) == 2


def test_a_hold_ends_the_prefix(world: World) -> None:
    """What lies beyond the first held segment stays, although nobody holds it."""
    world.hold(150, 160)

    found = act(world)

    assert isinstance(found, Remove)
    assert [copy.base_offset for copy in found.copies] == [0]
    assert found.then is not None
    assert found.then.reason is Reason.HELD


def test_a_hold_above_is_in_nobodys_way(world: World) -> None:
    """A hold is of a range: what lies below it may go."""
    world.hold(200)

    assert len(ids(act(world))) == 2


def test_unfinished_copies_are_their_uploaders(world: World) -> None:
    """A copy that was begun and never finished is not expiry's to remove, nor does it keep anything."""
    begun = world.copy(0, 100, state=STARTED)

    assert begun.segment_id not in ids(act(world))


def test_what_is_half_gone_needs_no_second_grace(world: World) -> None:
    """A removal that was cut off goes on at once, whatever was written of the log since; the others wait."""
    [first, _, _] = [world.segment(world.log, s.segment_id) for s in world.view.segments()]
    assert first is not None
    world.append(replace(first, state=DELETING, leader_epoch=EPOCH, event_id="begun"))
    world.change(occurred_at_ms=world.now_ms)

    found = act(world)

    assert ids(found) == [first.segment_id]
    assert isinstance(found, Remove)
    assert found.then is not None
    assert found.then.reason is Reason.GRACE


def test_the_blast_limit_is_of_the_hour() -> None:
    """What went within the hour counts, run after run; a segment more than that waits."""
    ledger = BlastLedger()
    limit = BlastLimit(3, 1000)
    ledger.spend("a", 400, now_ms=0)
    ledger.spend("a", 500, now_ms=HOUR_MS // 2)

    assert ledger.left("a", limit, now_ms=HOUR_MS - 1) == BlastLimit(1, 100)
    assert ledger.left("b", limit, now_ms=HOUR_MS - 1) == limit
    assert ledger.left("a", limit, now_ms=HOUR_MS) == BlastLimit(2, 500)
    assert ledger.left("a", limit, now_ms=10 * HOUR_MS) == limit


def test_a_clock_put_back_frees_no_allowance() -> None:
    """What was spent stays spent when the clock goes back."""
    ledger = BlastLedger()
    ledger.spend("a", 400, now_ms=10 * HOUR_MS)

    assert ledger.left("a", BlastLimit(1, 1000), now_ms=0) == BlastLimit(0, 600)


def test_the_blast_limit_cuts_a_removal_short(world: World) -> None:
    """As many as may go now, the first of them first."""
    world.policy = replace(world.policy, blast_per_hour=BlastLimit(1, 10**9))

    found = act(world)

    assert isinstance(found, Remove)
    assert [copy.base_offset for copy in found.copies] == [0]
    assert found.then is not None
    assert found.then.reason is Reason.BLAST_LIMIT

    world.policy = replace(world.policy, blast_per_hour=BlastLimit(10, 9_999))
    assert why(world) is Reason.BLAST_LIMIT


@pytest.fixture
def gone(world: World) -> World:
    """The topic was deleted; what its log had is all there, one copy unfinished."""
    world.copy(300, 400, age_ms=0, state=STARTED)
    world.topic = Presence.GONE
    return world


def test_a_deleted_topic_is_put_on_record_first(gone: World) -> None:
    """Whether or not anything may be removed: the grace begins with the record."""
    gone.policy = replace(gone.policy, deletes=False)

    assert act(gone) == RecordTopicGone(deleted_at_ms=gone.now_ms)


def test_a_deleted_topic_keeps_its_tier_for_its_own_grace(gone: World) -> None:
    """All of it goes, in order, young or old, begun or finished, after the topic's grace."""
    gone.change(topic_deleted_at_ms=gone.now_ms - TOPIC_GRACE_MS + 1)
    assert why(gone) is Reason.GRACE

    gone.now_ms += 1

    found = act(gone)
    assert isinstance(found, Remove)
    assert [copy.base_offset for copy in found.copies] == [0, 100, 200, 300]
    assert found.cause is DeleteCause.TOPIC_DELETED


def test_nobody_has_to_lead_a_deleted_topic(gone: World) -> None:
    """There is no leader any more whose claim could stand."""
    gone.change(topic_deleted_at_ms=gone.now_ms - TOPIC_GRACE_MS)
    gone.leader_epoch = -1

    assert len(ids(act(gone))) == 4


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (_lags, Reason.TABLE_DOUBTED),
        (_is_unreadable, Reason.TABLE_DOUBTED),
        (_is_off, Reason.OFF),
        (_is_restored, Reason.KEEP_UNTIL),
        (_nobody_knows_the_topic, Reason.TOPIC_UNKNOWN),
        (_is_held, Reason.HELD),
    ],
)
def test_what_stops_the_removal_of_a_deleted_topic(
    gone: World, happens: Callable[[World], None], reason: Reason
) -> None:
    """The same as of any other, but the claim."""
    gone.change(topic_deleted_at_ms=gone.now_ms - TOPIC_GRACE_MS)

    happens(gone)

    assert why(gone) is reason


def test_the_log_is_forgotten_last() -> None:
    """Not while a removed segment is on record, nor while somebody holds it."""
    made = World(topic=Presence.GONE)
    made.claim(topic_deleted_at_ms=made.now_ms - TOPIC_GRACE_MS)
    assert act(made) == ForgetLog()

    made.hold(0)
    assert why(made) is Reason.GRACE


def test_the_policy_is_read_as_it_was_declared() -> None:
    """Undeclared and unlimited keep for ever; a deleted topic has a week at least."""
    declared = read_policy(
        {
            "version": 1,
            "topics": {
                "orders": {
                    "total_retention_ms": "30d",
                    "remote_deletion": True,
                    "delete_grace_ms": "2d",
                    "blast_limit_segments_per_hour": 7,
                    "backup_window_days": 3,
                }
            },
        }
    )

    assert remote_policy(declared.effective("orders")) == RemotePolicy(
        deletes=True,
        total_ms=30 * DAY_MS,
        total_bytes=None,
        grace_ms=2 * DAY_MS,
        topic_grace_ms=7 * DAY_MS,
        window_ms=3 * DAY_MS,
        blast_per_hour=BlastLimit(7, BLAST_BYTES_PER_HOUR),
    )
    undeclared = remote_policy(declared.effective("payments"))
    assert (undeclared.deletes, undeclared.total_ms, undeclared.total_bytes) == (False, None, None)
    assert POLICY.topic_grace_ms == TOPIC_GRACE_MS
