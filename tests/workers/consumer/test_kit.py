"""The test kit itself: its checks see what is wrong, its plans reach it, and a seed is a run."""

from __future__ import annotations

import inspect
import os

import pytest

from tests.workers.consumer.worlds import P0, joined, settle, world
from workers.consumer import core, epochs, order
from workers.consumer.offsets import OffsetTracker
from workers.consumer.outcomes import Done
from workers.consumer.work import Work
from workers.testing.checks import assert_key_order, assert_no_loss, repeats
from workers.testing.faults import plan, replay, tally

SEEDS = int(os.environ.get("SEAWALL_TEST_WORKER_SEEDS", "40"))


@pytest.mark.slow
def test_plans_of_faults_lose_nothing_and_reach_everything() -> None:
    """Every outcome, late results, rewinds and remembered records come up, and every run ends well."""
    total = tally(range(SEEDS))

    rare = {"unassigned", "maps_ignored", "stalls", "rewinds"}
    assert not [name for name, count in total.items() if count == 0 and name not in rare]


def test_a_seed_is_a_run() -> None:
    """The same seed gives the same plan and the same journal."""
    assert plan(7, 50) == plan(7, 50)
    assert replay(7).journal == replay(7).journal


def test_the_checks_see_a_commit_past_unfinished_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracker as naive as the position is caught, and the error names the seed."""
    monkeypatch.setattr(OffsetTracker, "commit_point", property(lambda tracker: tracker.position))

    with pytest.raises(AssertionError, match=r"committed past the unfinished .*replay\("):
        tally(range(5))


def test_the_checks_see_a_late_result_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without epochs a result of before a rebalance finishes a record of after it."""
    monkeypatch.setattr(epochs.Epochs, "is_current", lambda *_: True)

    with pytest.raises((AssertionError, KeyError)):
        tally(range(40))


def test_the_checks_see_a_key_that_is_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without lanes two records of a key run side by side."""
    monkeypatch.setattr(core, "lane_of", lambda *_: None)

    with pytest.raises(AssertionError, match="began be"):
        tally(range(5))


def test_the_checks_see_a_hole_that_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracker that counts from offset to offset, as Pyrallel's does, never comes to an end."""
    monkeypatch.setattr(OffsetTracker, "reach", lambda *_: None)
    point = inspect.getattr_static(OffsetTracker, "commit_point")

    def contiguous(tracker: OffsetTracker) -> int | None:
        found: int | None = point.fget(tracker)
        return found if found is None or found < 3 else 3  # 3 was compacted away

    monkeypatch.setattr(OffsetTracker, "commit_point", property(contiguous))
    made = world(*[b"k%d" % number for number in range(6)])
    made.broker.logs[P0].trim(4)
    made.join()

    with pytest.raises(AssertionError, match="never dealt with"):
        made.quiesce()


def test_repeats_are_counted() -> None:
    """A record that was done and is begun once more, after a crash."""
    made = world(b"a", b"b", b"c")
    member = joined(made)
    member.executor.finish(1, Done())
    made.crash(member)
    joined(made)

    assert repeats(made.journal) == 1
    assert_no_loss(made.broker, made.journal)
    assert_key_order(made.broker, made.journal)


def test_lanes_keep_the_holder_when_what_waits_is_dropped() -> None:
    """A lane is held until its running record comes back."""
    lanes = order.Lanes()
    made = world(b"a", b"a")
    settle(made)
    records = list(made.broker.logs[P0].records.values())
    first, second = (
        Work(record, epoch=1, lane=(P0, b"a"), number=record.offset, size_bytes=1) for record in records
    )
    assert lanes.enter(first)
    assert not lanes.enter(second)

    assert list(lanes.drop(lambda work: work is second)) == [second]
    assert len(lanes) == 1
    assert lanes.leave(first) is None
    assert len(lanes) == 0
