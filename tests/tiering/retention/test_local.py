"""What may be trimmed on the brokers' disks, and everything that keeps it (T4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rules.policy import read_policy
from tests.tiering.retention.trim_world import LOG, TrimWorld, settings_with
from tests.tiering.retention.world import DAY_MS, EPOCH, World
from tiering.cluster.gate import NotLeader, NotYet, Wait
from tiering.cluster.interface import Cause, Unknown
from tiering.log.checkpoints import EpochStart
from tiering.retention.digests import Said
from tiering.retention.local import LocalSegment, Trim, trim_decision
from tiering.retention.local_policy import LocalPolicy, local_policy
from tiering.retention.reasons import Keep, Reason
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import SegmentState


@pytest.fixture
def world() -> TrimWorld:
    """Three expired copies of a hundred offsets, and as many segments on disk, cut at the same offsets."""
    made = TrimWorld()
    made.fill(0, 100, 200)
    return made


def decided(world: TrimWorld) -> Trim | Keep:
    return trim_decision(world.facts())


def up_to(world: TrimWorld) -> int:
    found = decided(world)
    assert isinstance(found, Trim), found
    return found.up_to


def why(world: TrimWorld) -> Reason:
    found = decided(world)
    assert isinstance(found, Keep), found
    return found.reason


def test_what_has_expired_and_is_in_the_tier_may_go(world: TrimWorld) -> None:
    """All three, and the certificate says why: copies, frontier, digest, offset, and who agrees."""
    found = decided(world)

    assert isinstance(found, Trim)
    assert (found.old_start, found.up_to) == (0, 300)
    case = found.certificate
    assert [copy.base_offset for copy in case.copies] == [0, 100, 200]
    digest = world.tier.table.digest(LOG)
    assert digest is not None
    assert (case.metadata_offset, case.digest) == (digest.offset, digest.hex())
    assert (case.frontier, case.leader_epoch, case.agreeing_brokers) == (300, EPOCH, (1, 2, 3))


def test_it_is_off_unless_it_is_declared() -> None:
    """A policy that says nothing of trim trims nothing."""
    declared = read_policy(
        {
            "version": 1,
            "topics": {
                "orders": {
                    "total_retention_ms": "7d",
                    "local_retention_ms": "1d",
                    "tiering": True,
                    "trim": True,
                },
                "payments": {"total_retention_ms": "7d", "local_retention_ms": "1d", "tiering": True},
            },
        }
    )

    assert local_policy(declared.effective("orders")) == LocalPolicy(
        trims=True, local_ms=DAY_MS, local_bytes=None
    )
    assert not local_policy(declared.effective("payments")).trims
    assert not local_policy(declared.effective("unheard-of")).trims


def _is_off(world: TrimWorld) -> None:
    world.policy = replace(world.policy, trims=False)


def _is_unlimited(world: TrimWorld) -> None:
    world.policy = replace(world.policy, local_ms=None)


def _answers_are_old(world: TrimWorld) -> None:
    world.age_of_answers_ms = 60_001


def _settings_are_unknown(world: TrimWorld) -> None:
    world.settings = Unknown(cause=Cause.NO_ANSWER, reason="silence")


def _remote_storage_is_on(world: TrimWorld) -> None:
    world.settings = settings_with(remote_storage_enable="true")


def _is_compacted(world: TrimWorld) -> None:
    world.settings = settings_with(cleanup_policy="compact,delete")


def _was_compacted(world: TrimWorld) -> None:
    world.was_compacted = True


def _lags(world: TrimWorld) -> None:
    world.lag = 1


def _is_empty(world: TrimWorld) -> None:
    world.tier.table = type(world.tier.table)(world.tier.table.topic, 0, complete_from=0)
    world.tier.topic_records.clear()


def _is_unreadable(world: TrimWorld) -> None:
    segment_id = world.tier.view.finished.segment_id(2)
    world.tier.append_raw(segment_key(LOG, segment_id), b'{"kind":"segment"')


def _log_is_unreadable(world: TrimWorld) -> None:
    world.tier.append_raw(log_key(LOG), b'{"kind":"log","min_reader":9,"version":9}')


def _is_shadowed(world: TrimWorld) -> None:
    record = world.tier.view.record
    assert record is not None
    world.tier.append(replace(record, based_on=0, claim_offset=0, event_id="lost the race"))
    world.tier.append(replace(record, based_on=0, claim_offset=0, event_id="lost the race again"))


def _is_recorded_as_gone(world: TrimWorld) -> None:
    world.tier.change(topic_deleted_at_ms=1)


def _another_leads(world: TrimWorld) -> None:
    world.lead = NotLeader(leader_id=2)


def _epochs_differ(world: TrimWorld) -> None:
    world.lead = NotYet(wait=Wait.EPOCHS_DIFFER, reason="an election")


def _epoch_is_unknown(world: TrimWorld) -> None:
    world.lead = Unknown(cause=Cause.UNREADABLE, reason="no epoch on disk")


def _files_are_doubted(world: TrimWorld) -> None:
    world.doubts = ("leader-epoch-checkpoint cannot be read",)


def _another_claimed(world: TrimWorld) -> None:
    world.tier.claim(EPOCH + 1)


def _is_held(world: TrimWorld) -> None:
    world.tier.hold(900, 901)


def _is_restored(world: TrimWorld) -> None:
    world.tier.change(keep_until_ms=world.now_ms + 1)


def _one_has_not_said(world: TrimWorld) -> None:
    world.said = {2: world.facts().said[2]}


def _one_is_at_another_offset(world: TrimWorld) -> None:
    said = world.facts().said
    world.said = {2: said[2], 3: Said(said[3].metadata_offset - 1, said[3].digest)}


def _one_differs(world: TrimWorld) -> None:
    said = world.facts().said
    world.said = {2: said[2], 3: Said(said[3].metadata_offset, "f" * 64)}


def _ours_is_not_comparable(world: TrimWorld) -> None:
    world.complete_from = len(world.tier.topic_records)


def _head_is_not_in_the_tier(world: TrimWorld) -> None:
    world.tier, before = World(), world.tier
    world.tier.claim()
    world.tier.copy(100, 300)
    del before


def _epochs_are_not_saved(world: TrimWorld) -> None:
    world.epochs = (EpochStart(0, 0), EpochStart(3, 150))


def _a_file_is_missing(world: TrimWorld) -> None:
    del world.segments[0]


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (_is_off, Reason.OFF),
        (_is_unlimited, Reason.UNLIMITED),
        (_answers_are_old, Reason.ANSWERS_TOO_OLD),
        (_settings_are_unknown, Reason.SETTINGS_UNKNOWN),
        (_remote_storage_is_on, Reason.REMOTE_STORAGE),
        (_is_compacted, Reason.COMPACTED),
        (_was_compacted, Reason.COMPACTED),
        (_lags, Reason.TABLE_DOUBTED),
        (_is_empty, Reason.TABLE_DOUBTED),
        (_is_unreadable, Reason.TABLE_DOUBTED),
        (_log_is_unreadable, Reason.TABLE_DOUBTED),
        (_is_shadowed, Reason.TABLE_DOUBTED),
        (_is_recorded_as_gone, Reason.TOPIC_THERE),
        (_another_leads, Reason.NOT_LEADING),
        (_epochs_differ, Reason.EPOCH_UNCONFIRMED),
        (_epoch_is_unknown, Reason.EPOCH_UNCONFIRMED),
        (_files_are_doubted, Reason.REPLICA_DOUBTED),
        (_another_claimed, Reason.NOT_LEADING),
        (_is_held, Reason.HELD),
        (_is_restored, Reason.KEEP_UNTIL),
        (_one_has_not_said, Reason.DIGEST_MISSING),
        (_one_is_at_another_offset, Reason.DIGEST_MISSING),
        (_one_differs, Reason.DIGEST_DIFFERS),
        (_ours_is_not_comparable, Reason.DIGEST_MISSING),
        (_head_is_not_in_the_tier, Reason.NOT_IN_TIER),
        (_epochs_are_not_saved, Reason.EPOCHS_NOT_SAVED),
        (_a_file_is_missing, Reason.REPLICA_DOUBTED),
    ],
)
def test_what_keeps_everything(
    world: TrimWorld, happens: Callable[[TrimWorld], None], reason: Reason
) -> None:
    """T4: any one of these, and nothing is deleted; the answer says which."""
    assert isinstance(decided(world), Trim)

    happens(world)

    assert why(world) is reason


def test_the_end_must_be_asked_for_after_our_claim(world: TrimWorld) -> None:
    """An end that lies before our own claim says nothing of what others wrote up to it."""
    facts = world.facts()
    assert facts.tier.claim is not None
    early = replace(facts.tier, end_offset=facts.tier.claim.offset)

    found = trim_decision(replace(facts, tier=early))

    assert isinstance(found, Keep)
    assert found.reason is Reason.CLAIM_UNREAD


def test_answers_from_the_future_are_none(world: TrimWorld) -> None:
    """A clock that was put back between question and decision makes their age unknown."""
    world.age_of_answers_ms = -1

    assert why(world) is Reason.ANSWERS_TOO_OLD


def test_a_copy_that_is_young_keeps_all_behind_it(world: TrimWorld) -> None:
    """Only a prefix goes: the third is old enough, and stays."""
    made = TrimWorld()
    made.fill(0)
    made.copy(100, 200, age_ms=0)
    made.copy(200, 300)
    made.segments = world.segments

    assert up_to(made) == 100


def test_without_a_timestamp_nothing_is_old() -> None:
    """A copy without one never expires by time, whatever the files' own times say."""
    made = TrimWorld()
    made.tier.claim()
    made.copy(0, 100, max_timestamp_ms=-1)
    made.segments.append(LocalSegment(0, 100, 10))

    assert why(made) is Reason.NOT_EXPIRED


def test_replicas_cut_their_segments_differently(world: TrimWorld) -> None:
    """The leader's own segments are what is trimmed, each only when all of it is in the tier."""
    world.segments = [LocalSegment(0, 150, 1), LocalSegment(150, 290, 1), LocalSegment(290, 310, 1)]

    assert up_to(world) == 290


def test_a_local_segment_is_as_young_as_the_youngest_copy_in_it(world: TrimWorld) -> None:
    """Its newest record may be in either of the copies that it spans."""
    made = TrimWorld()
    made.fill(0)
    made.copy(100, 200, age_ms=0)
    made.segments = [LocalSegment(0, 60, 1), LocalSegment(60, 120, 1), LocalSegment(120, 200, 1)]

    assert up_to(made) == 60


def test_never_past_the_frontier(world: TrimWorld) -> None:
    """A hole ends it, whatever lies behind; so does a copy that is begun and not finished."""
    made = TrimWorld()
    made.fill(0)
    made.copy(100, 200, state=SegmentState.COPY_STARTED)
    made.copy(200, 300)
    made.segments = world.segments

    assert up_to(made) == 100
    made.segments = made.segments[1:]
    made.disk_start = 100
    assert why(made) is Reason.NOT_IN_TIER


def test_what_expired_in_the_tier_first_may_go_from_disk(world: TrimWorld) -> None:
    """Expiry that came before a trim does not keep the disks full for ever; what is above the recorded start
    still needs its copies, and those are what the certificate names."""
    made = TrimWorld()
    made.segments = world.segments
    made.tier.claim()
    made.copy(100, 200)
    made.copy(200, 300, age_ms=0)
    made.tier.change(log_start=100, first_tiered_offset=0)

    found = decided(made)

    assert isinstance(found, Trim), found
    assert (found.old_start, found.up_to) == (0, 200)
    assert [copy.base_offset for copy in found.certificate.copies] == [100]


@pytest.mark.parametrize("never_there", [{"first_tiered_offset": 50}, {"gap": (40, 60)}])
def test_what_was_never_in_the_tier_has_not_expired_there(
    world: TrimWorld, never_there: dict[str, Any]
) -> None:
    """Below the recorded start, and never copied, or in a gap on record: it stays on disk."""
    made = TrimWorld()
    made.segments = world.segments
    made.tier.claim()
    made.copy(100, 200)
    if "gap" in never_there:
        made.tier.gaps(never_there["gap"])
        made.tier.change(log_start=100, first_tiered_offset=0)
    else:
        made.tier.change(log_start=100, **never_there)

    assert why(made) is Reason.NOT_IN_TIER


def test_a_recorded_gap_is_no_copy() -> None:
    """The frontier passes a gap; a replica that has its bytes after all must not lose them."""
    made = TrimWorld()
    made.fill(0)
    made.copy(200, 300)
    made.tier.gaps((100, 200))
    made.segments += [LocalSegment(100, 200, 1), LocalSegment(200, 300, 1)]
    assert made.facts().tier.frontier == 300

    assert up_to(made) == 100


def test_never_past_what_is_committed(world: TrimWorld) -> None:
    """The gate's bound is a bound here, too."""
    world.high_watermark = 199

    assert up_to(world) == 100


def test_by_bytes_what_is_left_is_never_less_than_declared(world: TrimWorld) -> None:
    """Each segment goes only while what is local behind it, the active one included, is enough."""
    world.policy = LocalPolicy(trims=True, local_ms=None, local_bytes=20_050)
    assert up_to(world) == 100

    world.policy = replace(world.policy, local_bytes=20_051)
    assert why(world) is Reason.NOT_EXPIRED


def test_a_start_inside_a_segment_goes_on_from_there(world: TrimWorld) -> None:
    """After somebody's DeleteRecords the log starts where no file does."""
    world.disk_start = 150

    found = decided(world)

    assert isinstance(found, Trim)
    assert (found.old_start, found.up_to) == (150, 300)
    assert [copy.base_offset for copy in found.certificate.copies] == [100, 200]
