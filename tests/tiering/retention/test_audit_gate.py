"""What the audit would condemn is not deleted: the gate by itself, and before a removal and a trim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.events import DeleteCause
from tests.tiering.retention.trim_world import TrimWorld
from tests.tiering.retention.world import DAY_MS, POLICY, World
from tiering.retention.audit_gate import _runs, before_removal, before_trim
from tiering.retention.expire import Run, expire
from tiering.retention.facts import TierCopy
from tiering.retention.local import Trim, trim_decision
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import Presence, Situation
from tiering.retention.unique_bytes import Extent
from tiering.segments.records import SegmentId, SegmentState

STARTED = SegmentState.DELETE_STARTED


def _world(*, age_ms: int = 30 * DAY_MS, log_start: int = 200) -> World:
    """Three copies, the start moved past two of them, long ago."""
    made = World()
    made.claim()
    for base in (0, 100, 200):
        made.copy(base, base + 100, age_ms=age_ms)
    made.change(log_start=log_start)
    made.moment = 0
    return made


def _asked(world: World, cause: DeleteCause = DeleteCause.LOG_START, **changed: object) -> Keep | None:
    now: Situation = replace(world.look(world.log), **changed)  # type: ignore[arg-type]
    return before_removal(now, now.facts.copies[0], cause)


def test_what_has_expired_may_go() -> None:
    """By the total retention that is declared."""
    assert _asked(_world()) is None


def test_what_has_not_expired_is_kept() -> None:
    """DEL-01: the start was moved, and nothing that the audit knows justifies it. Nothing is written."""
    world = _world(age_ms=DAY_MS)
    before = len(world.topic_records)

    run = expire(world.log, world.ports)

    assert isinstance(run, Run)
    assert isinstance(run.stopped, Keep)
    assert run.stopped.reason is Reason.AUDIT_WOULD_CONDEMN
    assert "DEL-01" in run.stopped.detail
    assert run.removed == ()
    assert len(world.topic_records) == before
    assert world.events == []


def test_what_a_longer_retention_keeps_by_now_is_kept() -> None:
    """The start moved under the old policy; under the one in force it would not."""
    longer = replace(POLICY, total_ms=90 * DAY_MS)

    kept = _asked(_world(), policy=longer)

    assert kept is not None
    assert "DEL-01" in kept.detail


def test_what_nobody_declared_to_expire_is_kept() -> None:
    """No total retention: nothing may go, however old."""
    undeclared = replace(POLICY, total_ms=None)

    assert _asked(_world(), policy=undeclared) is not None


def test_what_is_held_is_kept() -> None:
    """HLD-01, also where the guard before it had overlooked the hold."""
    world = _world()
    world.hold(0, 50)

    kept = _asked(world)

    assert kept is not None
    assert "HLD-01" in kept.detail


def test_what_has_no_time_is_kept_unless_something_else_lets_it_go() -> None:
    """Whether it has expired cannot be told; covered by another copy it may go."""
    world = World()
    world.claim()
    world.copy(0, 100, max_timestamp_ms=-1)
    world.change(log_start=100)
    kept = _asked(world)
    assert kept is not None
    assert "cause_unknown" in kept.detail

    world.copy(0, 100)
    assert _asked(world) is None


def test_by_size_only_what_the_rest_exceeds_may_go() -> None:
    """Each offset once, tier and disk together: it goes if what is left meets the limit, a byte less not."""
    world = _world(age_ms=DAY_MS)
    now = world.look(world.log)
    left = sum(copy.size_bytes for copy in now.facts.copies[1:])
    by_size = replace(POLICY, total_ms=None, total_bytes=left)

    assert _asked(world, policy=by_size) is None
    assert _asked(world, policy=replace(by_size, total_bytes=left + 1)) is not None
    disk = (Extent(300, 400, 1),)
    assert _asked(world, policy=replace(by_size, total_bytes=left + 1), local=disk) is None


def test_what_is_left_of_a_deleted_topic_may_go() -> None:
    """Once its end is on record, whatever its age."""
    world = _world(age_ms=DAY_MS)
    world.change(topic_deleted_at_ms=world.now_ms - 8 * DAY_MS)

    assert _asked(world, DeleteCause.TOPIC_DELETED, topic=Presence.GONE) is None


@pytest.fixture
def trimmed() -> TrimWorld:
    made = TrimWorld()
    made.fill(0, 100, 200)
    return made


def _plan(world: TrimWorld) -> Trim:
    plan = trim_decision(world.facts())
    assert isinstance(plan, Trim)
    return plan


def test_what_the_tier_holds_may_be_trimmed(trimmed: TrimWorld) -> None:
    """Every offset below the new start is in a finished copy."""
    assert before_trim(trimmed.facts(), _plan(trimmed)) is None


def test_a_trim_may_end_inside_a_copy(trimmed: TrimWorld) -> None:
    """The tier's segments begin and end elsewhere than the disk's."""
    plan = _plan(trimmed)

    assert before_trim(trimmed.facts(), replace(plan, up_to=plan.up_to - 50)) is None


def test_what_the_tier_lacks_is_not_trimmed(trimmed: TrimWorld) -> None:
    """START-02: a copy that is not there, that is being deleted, that does not cover its end."""
    plan = _plan(trimmed)
    facts = trimmed.facts()
    [first, middle, *rest] = facts.tier.copies

    def kept(*copies: TierCopy) -> str:
        found = before_trim(replace(facts, tier=replace(facts.tier, copies=copies)), plan)
        assert found is not None
        assert found.reason is Reason.AUDIT_WOULD_CONDEMN
        return found.detail

    assert "START-02" in kept(first, *rest)
    assert "START-02" in kept(first, middle._replace(state=STARTED), *rest)
    assert "START-02" in kept(first, middle._replace(covered_end=150), *rest)


def test_what_expired_before_is_no_hindrance(trimmed: TrimWorld) -> None:
    """The tier's first copy is gone with the log's own start; the disk still has its offsets."""
    facts, plan = trimmed.facts(), _plan(trimmed)
    first, *others = facts.tier.finished()
    expired = replace(facts.record, log_start=first.end_offset)
    lacks = replace(facts.tier, copies=tuple(others))

    assert before_trim(replace(facts, tier=replace(lacks, record=expired)), plan) is None
    assert before_trim(replace(facts, tier=lacks), plan) is not None


def test_what_is_held_is_not_trimmed(trimmed: TrimWorld) -> None:
    """HLD-01 by the certificate, also where the guard before it had overlooked the hold."""
    plan = _plan(trimmed)
    trimmed.tier.hold(0, 50)

    kept = before_trim(trimmed.facts(), plan)

    assert kept is not None
    assert "HLD-01" in kept.detail


def test_a_refusal_asks_nothing_of_the_broker(trimmed: TrimWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn ends with the reason; there is no certificate, and no request."""
    refused = Keep(reason=Reason.AUDIT_WOULD_CONDEMN, detail="START-02")
    monkeypatch.setattr("tiering.retention.local_trim.before_trim", lambda *_: refused)

    run = trimmed.trim()

    assert run.stopped == refused
    assert trimmed.asked == []
    assert trimmed.events == []


def test_ten_thousand_copies_are_told_as_what_they_cover() -> None:
    """As few runs as there are holes, each offset's bytes once."""
    whole = [
        TierCopy(
            segment_id=SegmentId(f"s{at}"),
            base_offset=at * 10,
            end_offset=at * 10 + 10,
            covered_end=at * 10 + 10,
            max_timestamp_ms=at,
            size_bytes=100,
            state=SegmentState.COPY_FINISHED,
            is_whole=True,
            metadata_offset=at,
        )
        for at in range(10_000)
        if at != 5_000
    ]
    overlapping = whole[0]._replace(
        segment_id=SegmentId("over"), base_offset=5, end_offset=15, covered_end=15
    )

    first, second = _runs([*whole, overlapping])

    assert (first.start, first.end, first.size_bytes) == (0, 50_000, 500_000)
    assert (second.start, second.end, second.newest_ms) == (50_010, 100_000, 9_999)
