"""The uploader as a whole, under leader moves, kills at any effect, store outages and local retention.

After every step what a reader would get is held against what producers wrote: T1 to T3, T6 and T7 as
properties of the real decisions, table and files, over three replicas that cut their logs differently.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.tiering.uploader.small_cluster import SmallCluster
from tests.tiering.uploader.world import Killed
from tiering.segments.coverage import GapPiece
from tiering.segments.frontier import CaughtUp, CopyNext, Range
from tiering.segments.records import SegmentState
from tiering.uploader.decide import LogFacts, Step, next_step

BROKERS = st.integers(min_value=1, max_value=3)


class UploaderModel(RuleBasedStateMachine):
    """What may happen to a tiered log, and what must hold whatever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.world: SmallCluster
        self.furthest = 0

    @initialize(seed=st.integers(min_value=0, max_value=2**16))
    def begin(self, seed: int) -> None:
        self.world = SmallCluster(Path(tempfile.mkdtemp(prefix="seawall-model-")), seed=seed)
        self.lost: set[int] = set()

    @rule(count=st.integers(min_value=1, max_value=9))
    def produce(self, count: int) -> None:
        self.world.produce(count)

    @rule(broker=BROKERS)
    def roll(self, broker: int) -> None:
        self.world.cluster.replicas[broker].roll()

    @rule(broker=BROKERS)
    def move_leader(self, broker: int) -> None:
        if broker != self.world.cluster.leader_id:
            self.world.move_leader(broker)

    @rule(count=st.integers(min_value=0, max_value=12))
    def hold_back_the_high_watermark(self, count: int) -> None:
        """Followers are slow: so many records at the end are not committed."""
        cluster = self.world.cluster
        committed = cluster.high_watermark
        cluster.held_back = max(0, min(count, cluster.leader.end - committed))

    @rule(broker=BROKERS)
    def run_an_agent(self, broker: int) -> None:
        self.world.run_agent(broker)

    @rule(broker=BROKERS, at=st.integers(min_value=1, max_value=12), applied=st.booleans())
    def run_an_agent_and_kill_it(self, broker: int, at: int, applied: bool) -> None:
        self.world.plan.count, self.world.plan.at, self.world.plan.applied = 0, at, applied
        try:
            self.world.run_agent(broker)
        except Killed:
            pass
        finally:
            self.world.plan.at = None

    @rule(kind=st.sampled_from([".log", ".aux", ".json"]))
    def run_the_leaders_agent_while_the_store_is_away(self, kind: str) -> None:
        self.world.objects.fail_on = kind
        try:
            self.world.run_agent(self.world.cluster.leader_id)
        finally:
            self.world.objects.fail_on = None

    @rule()
    def local_retention(self) -> None:
        """The leader's retention takes a segment; followers below its start follow at their next fetch."""
        cluster = self.world.cluster
        cluster.leader.drop_first()
        for replica in cluster.replicas.values():
            while len(replica.segments) > 1 and replica.segments[1][0] <= cluster.leader.start:
                replica.drop_first()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.run_agent(self.world.cluster.leader_id)
            self.world.run_agent(self.world.cluster.leader_id)
            self.what_is_covered_reads_back()
            self.everything_closed_and_committed_is_covered()
            self.world.close()

    @invariant()
    def what_is_covered_reads_back(self) -> None:
        """T2, T3: each offset below the frontier is a recorded gap, or reads back as it was written, once."""
        found = self.world.coverage() if hasattr(self, "world") else None
        if found is None:
            return
        read = self.world.read_back(found)
        gaps = [
            piece
            for piece in found.pieces(found.frontier.start, found.frontier.offset)
            if isinstance(piece, GapPiece)
        ]
        in_gaps = {offset for gap in gaps for offset in range(gap.start, gap.end)}
        expected = set(range(found.frontier.start, found.frontier.offset)) - in_gaps
        assert read == {offset: self.world.written[offset] for offset in expected}
        self.a_gap_is_on_no_replica(in_gaps)

    def a_gap_is_on_no_replica(self, in_gaps: set[int]) -> None:
        """T2: what the frontier passes by a gap record is on no replica's disk."""
        for offset in in_gaps - self.lost:
            assert not self.world.cluster.leader.has(offset)
        self.lost |= in_gaps

    @invariant()
    def nothing_uncommitted_has_left(self) -> None:
        """T1: no committed copy reaches above the high watermark."""
        if not hasattr(self, "world"):
            return
        for partition in self.world.topic.replayed().partitions():
            for log in partition.logs():
                view = partition.view(log)
                assert view is not None
                for segment in view.segments():
                    if segment.state is SegmentState.COPY_FINISHED:
                        assert segment.end_offset <= self.world.cluster.high_watermark

    @invariant()
    def the_frontier_never_goes_back(self) -> None:
        """Elections here are clean and nothing is deleted from the tier: what is covered stays covered."""
        found = self.world.coverage() if hasattr(self, "world") else None
        if found is not None:
            assert found.frontier.offset >= self.furthest
            self.furthest = found.frontier.offset

    def everything_closed_and_committed_is_covered(self) -> None:
        """Left alone, the leader's agent brings the frontier to the last closed, committed segment."""
        cluster, found = self.world.cluster, self.world.coverage()
        if any("LineageUnknown" in status.detail for status in self.world.statuses.values()):
            return  # retention cut the history up to its own epoch: stopped on purpose (docs/STATUS.md)
        closed_ends = [base for base, _ in cluster.leader.segments[1:]]
        reachable = max((end for end in closed_ends if end <= cluster.high_watermark), default=None)
        if reachable is not None:
            assert found is not None
            assert found.frontier.offset >= reachable, self.world.statuses


SETTINGS = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
UNGUARDED = settings(SETTINGS, max_examples=400, phases=[Phase.generate], report_multiple_bugs=False)
TestUploaderModel = UploaderModel.TestCase
TestUploaderModel.settings = SETTINGS


def by_base(closed: Sequence[Range], offset: int) -> object:
    """Unguarded: a marker of bases, which takes the first segment that begins at the frontier or later."""
    following = next((segment for segment in closed if segment.start >= offset), None)
    return CaughtUp() if following is None else CopyNext(segment=following)


def any_bound(facts: LogFacts) -> Step:
    """Unguarded: what is closed may leave, committed or not."""
    return next_step(replace(facts, may_leave_below=2**60))


def any_hole(facts: LogFacts) -> Step:
    """Unguarded: what this replica has no file for is taken to be on none."""
    return next_step(replace(facts, log_start=facts.active_base))


def no_clean_check(*_: object) -> None:
    """Unguarded: the second look at the leader is left out, and the first."""


@pytest.mark.parametrize(
    ("where", "unguarded"),
    [
        ("tiering.uploader.decide.next_segment", by_base),
        ("tiering.uploader.one_log.next_step", any_bound),
    ],
)
def test_the_model_catches_what_is_left_unguarded(
    monkeypatch: pytest.MonkeyPatch, where: str, unguarded: object
) -> None:
    """T1, T2: with one guard taken away the same machine finds a history that loses or leaks data."""
    if unguarded is any_bound:
        monkeypatch.setattr("tiering.uploader.copy._check_lead", no_clean_check)
    monkeypatch.setattr(where, unguarded)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            UploaderModel,
            settings=settings(
                SETTINGS, max_examples=400, phases=[Phase.generate], report_multiple_bugs=False
            ),
        )


def test_a_hole_above_the_logs_start_is_not_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T2: a middle segment gone from the leader's disk stops the frontier; unguarded, it is passed."""
    ends = {}
    for name in ("guarded", "unguarded"):
        world = SmallCluster(tmp_path / name, brokers=1)
        for _ in range(3):
            world.produce(4)
            world.cluster.leader.roll()
        (world.cluster.leader.path / f"{4:020d}.log").unlink()
        if name == "unguarded":
            monkeypatch.setattr("tiering.uploader.one_log.next_step", any_hole)
        world.run_agent(1)
        found = world.coverage()
        assert found is not None
        ends[name] = found.frontier.offset

    assert ends["guarded"] == 0
    assert ends["unguarded"] > 4
