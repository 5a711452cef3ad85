"""The uploader as a whole, under all that may happen to a log, a broker, a store and an agent.

After every step what a reader would get is held against what leaders wrote: T1, T2, T3, T5, T6 and T7 as
properties of the real decisions, table and files, over three replicas that cut their logs differently. With
any one guard taken away the same machine must find a history that breaks a property
(`test_t*_unguarded`), else it would show nothing. Deterministic: the same histories in every run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
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

from rules.identity import LogId
from tests.tiering.uploader.small_cluster import SmallCluster
from tests.tiering.uploader.unguarded import VARIANTS, Unguarded
from tests.tiering.uploader.world import Killed
from tiering.segments.coverage import Coverage, GapPiece
from tiering.segments.records import SegmentState
from tiering.segments.rows import Standing
from tiering.segments.view import LogView, SegmentSummary
from tiering.uploader.status import LogStatus

pytestmark = pytest.mark.slow

BROKERS = st.integers(min_value=1, max_value=3)
EFFECTS = st.integers(min_value=1, max_value=8)  # a claim is one, a whole copy five, a clean-up five
DELETING = (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED)
# What an agent may say that it ran into here. Anything else is a defect of its own.
EXPECTED_TROUBLE = {
    "ConnectionError",
    "MemoryError",
    "NotLeading",
    "NotCommitted",
    "NotFollowed",
    "SegmentUnfit",
    "SegmentChanged",
    "LineageUnknown",
}


def store_fails() -> None:
    raise ConnectionError("the store went away")


def memory_ends() -> None:
    raise MemoryError


class UploaderModel(RuleBasedStateMachine):
    """What may happen to a tiered log, and what must hold whatever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.world: SmallCluster
        self.furthest: dict[LogId, int] = {}
        self.since: dict[LogId, int] = {}  # the epoch of the last unclean election

    @initialize(seed=st.integers(min_value=0, max_value=2**16), unclean_allowed=st.booleans())
    def begin(self, seed: int, unclean_allowed: bool) -> None:
        self.world = SmallCluster(Path(tempfile.mkdtemp(prefix="seawall-model-")), seed=seed)
        self.world.cluster.unclean_allowed = unclean_allowed

    # What producers, brokers and operators do

    @rule(count=st.integers(min_value=1, max_value=9))
    def produce(self, count: int) -> None:
        self.world.produce(count)

    @rule(count=st.integers(min_value=1, max_value=9))
    def produce_what_is_not_replicated(self, count: int) -> None:
        self.world.produce(count, replicated=False)

    @rule(broker=BROKERS)
    def roll(self, broker: int) -> None:
        self.world.cluster.replicas[broker].roll()

    @rule(broker=BROKERS)
    def elect(self, broker: int) -> None:
        """Unclean where the broker is not in sync: the log may lose its end, and get another one."""
        fork = self.world.move_leader(broker)
        if fork is not None:
            self.furthest[self.world.log] = min(self.furthest.get(self.world.log, 0), fork)
            self.since[self.world.log] = self.world.cluster.epoch

    @rule(broker=BROKERS)
    def stop_following(self, broker: int) -> None:
        self.world.stop_following(broker)

    @rule(broker=BROKERS)
    def follow_again(self, broker: int) -> None:
        self.world.follow_again(broker)

    @rule(broker=BROKERS)
    def local_retention(self, broker: int) -> None:
        self.world.local_retention(broker)

    @rule()
    def delete_records(self) -> None:
        self.world.delete_records()

    @rule(sure=st.integers(min_value=0, max_value=3))
    def recreate_the_topic(self, sure: int) -> None:
        if sure == 0:
            self.world.recreate_topic()

    @rule(broker=st.sampled_from([0, 0, 0, 1, 2, 3]), damage=st.sampled_from(["lose", "lose_last", "rot"]))
    def closed_segments_are_damaged(self, broker: int, damage: str) -> None:
        """Files vanish, or a bit flips, of one replica: nothing that another one could not make good."""
        replica = self.world.cluster.replicas.get(broker, self.world.cluster.leader)
        if replica is self.world.cluster.leader:
            self.world.produce(3)
        replica.roll()
        {"lose": replica.lose_closed, "lose_last": replica.lose_last, "rot": replica.rot_last}[damage]()

    # What agents do

    @rule(broker=BROKERS)
    def run_an_agent(self, broker: int) -> None:
        self.run(broker)

    @rule()
    def run_the_leaders_agent(self) -> None:
        self.run(self.world.cluster.leader_id)

    @rule(at=EFFECTS, applied=st.booleans())
    def kill_the_leaders_agent(self, at: int, applied: bool) -> None:
        """kill -9 before or after any effect on the topic or the bucket."""
        self.let_there_be_work()
        with self.world.plan.struck(at, applied=applied):
            self.run(self.world.cluster.leader_id)

    @rule(broker=BROKERS)
    def restart_an_agent(self, broker: int) -> None:
        self.world.stop_agent(broker)

    @rule(at=EFFECTS, applied=st.booleans(), strike=st.sampled_from([store_fails, memory_ends]))
    def trouble(self, at: int, applied: bool, strike: Callable[[], None]) -> None:
        """An effect is refused, or it happened and the answer is lost; or memory ends."""
        self.let_there_be_work()
        with self.world.plan.struck(at, applied=applied, strike=strike):
            self.run(self.world.cluster.leader_id)

    @rule(kind=st.sampled_from([".log", ".aux", ".json"]))
    def the_store_is_away(self, kind: str) -> None:
        self.world.objects.fail_on = kind
        self.run(self.world.cluster.leader_id)
        self.world.objects.fail_on = None

    @rule(broker=BROKERS, at=st.sampled_from([1, 1, 1, 2, 3, 4, 5, 6]), applied=st.booleans())
    def elect_while_an_agent_works(self, broker: int, at: int, applied: bool) -> None:
        """Between two effects of its own another leads, and that one's agent does all there is to do."""

        def elected() -> None:
            self.elect(broker)
            self.run(broker)

        self.run(self.world.cluster.leader_id)  # so that it has its claim, and begins with the copy
        self.let_there_be_work()
        with self.world.plan.struck(at, applied=applied, strike=elected):
            self.run(self.world.cluster.leader_id)

    @rule(broker=BROKERS)
    def elect_one_that_lacks_what_was_copied(self, broker: int) -> None:
        """It stopped following before the copy: an unclean election loses what the tier already holds."""
        self.world.stop_following(broker)
        self.let_there_be_work()
        self.run(self.world.cluster.leader_id)
        self.elect(broker)
        self.let_there_be_work()
        self.run(self.world.cluster.leader_id)

    @rule()
    def leave_it_alone(self) -> None:
        self.everything_closed_and_committed_is_covered()

    def let_there_be_work(self) -> None:
        self.world.produce(2)
        self.world.cluster.leader.roll()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.everything_closed_and_committed_is_covered()
                self.what_is_covered_reads_back()
                self.a_reader_from_the_start_sees_the_same()
            finally:
                self.world.close()

    def run(self, broker: int) -> Mapping[LogId, LogStatus]:
        """A pass. T7: whatever happens in it is a status that says so, of a kind that is known."""
        try:
            statuses = self.world.run_agent(broker)
        except Killed:
            return {}
        for status in statuses.values():
            kind = status.detail.partition(":")[0]
            assert status.state != "failed" or kind in EXPECTED_TROUBLE, status
        return statuses

    # What must hold

    @invariant()
    def what_is_covered_reads_back(self) -> None:
        """T2, T3, T6: each offset below the frontier is in a recorded gap, or reads back as it was."""
        for log, found, epoch in self.claimed():
            read = self.world.read_back(log, found)
            in_gaps = {
                offset
                for piece in found.pieces(found.frontier.start, found.frontier.offset)
                if isinstance(piece, GapPiece)
                for offset in range(piece.start, piece.end)
            }
            truth = self.world.truth(log, epoch)
            expected = set(range(found.frontier.start, found.frontier.offset)) - in_gaps
            assert read == {offset: truth.get(offset) for offset in expected}

    @invariant()
    def a_gap_is_where_the_log_has_nothing(self) -> None:
        """T2: when a gap was recorded, the log itself began behind it."""
        if hasattr(self, "world"):
            assert self.world.sink.wrong_gaps == []

    @invariant()
    def nothing_uncommitted_has_left(self) -> None:
        """T1: no committed copy reaches above the highest high watermark that the log ever had."""
        for log, segment in self.copies():
            if segment.state is SegmentState.COPY_FINISHED:
                assert segment.end_offset <= self.world.committed(log)

    @invariant()
    def no_copy_counts_behind_a_newer_claim(self) -> None:
        """T6: by the claims as they were made, whatever the table made of them."""
        for log, segment in self.copies():
            if segment.state not in DELETING:
                for epoch, offset in self.world.sink.claims.get(log, []):
                    assert segment.leader_epoch >= epoch or segment.metadata_offset < offset

    @invariant()
    def objects_and_metadata_agree(self) -> None:
        """T5: what was marked deleted is on record as such; no object is without a record."""
        if not hasattr(self, "world"):
            return
        known = {str(segment.segment_id): segment for _, segment in self.copies(every=True)}
        for key in self.world.objects.marked:
            assert known[_id_in(key)].state in DELETING
        for key in self.world.objects.live:
            assert _id_in(key) in known

    @invariant()
    def the_frontier_falls_to_a_fork_only(self) -> None:
        """T2: nothing expires here, so what is covered stays so, up to an unclean election."""
        for log, found, epoch in self.claimed():
            if epoch >= self.since.get(log, 0):
                assert found.frontier.offset >= self.furthest.get(log, 0)
                self.furthest[log] = found.frontier.offset

    def everything_closed_and_committed_is_covered(self) -> None:
        """T7: left alone, the leader's agent brings the frontier to the last closed, committed segment."""
        cluster = self.world.cluster
        committed = [end for _, end in cluster.leader.closed() if end <= cluster.high_watermark]
        for _ in range(6):  # one for each held segment that turns out to be unfit and gone from the disk
            status = self.run(cluster.leader_id)[self.world.log]
            found = self.world.coverage()
            if not committed or (found is not None and found.frontier.offset >= committed[-1]):
                return
        is_unknown = "LineageUnknown" in status.detail and cluster.unclean_allowed
        assert cluster.leader.is_damaged or is_unknown, status  # nothing else waits for people

    def a_reader_from_the_start_sees_the_same(self) -> None:
        """T6: tables that read the same topic at other times agree."""
        replayed = self.world.topic.replayed()
        for log in replayed.logs():
            ours, theirs = self.world.topic.reader.of(log), replayed.of(log)
            assert ours is not None
            assert theirs is not None
            mine, its = ours.digest(log), theirs.digest(log)
            assert mine is not None
            assert its is not None
            assert (mine.offset, mine.digest) == (its.offset, its.digest)
            assert [s.standing for s in _segments(ours.view(log))] == [
                s.standing for s in _segments(theirs.view(log))
            ]

    def claimed(self) -> list[tuple[LogId, Coverage, int]]:
        """Each log that has coverage, and the epoch of the claim that it is by."""
        if not hasattr(self, "world"):
            return []
        found = []
        for log in self.world.topic.reader.logs():
            view, covered = self.world.topic.reader.view(log), self.world.coverage(log)
            if covered is not None and view is not None and view.record is not None:
                found.append((log, covered, view.record.claim_epoch))
        return found

    def copies(self, *, every: bool = False) -> list[tuple[LogId, SegmentSummary]]:
        """Each segment that is followed, or every one."""
        if not hasattr(self, "world"):
            return []
        reader = self.world.topic.reader
        return [
            (log, segment)
            for log in reader.logs()
            for segment in _segments(reader.view(log))
            if every or segment.standing is Standing.FOLLOWED
        ]


def _segments(view: LogView | None) -> list[SegmentSummary]:
    return [] if view is None else list(view.segments())


def _id_in(key: str) -> str:
    """The segment id in an object's key."""
    return key.rpartition("/")[2].partition(".")[0][21:]


GUARDED = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
UNGUARDED = settings(GUARDED, max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)
TestUploaderModel = UploaderModel.TestCase
TestUploaderModel.settings = GUARDED


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_model_catches_what_is_left_unguarded(
    monkeypatch: pytest.MonkeyPatch, variant: Unguarded
) -> None:
    """With one guard taken away the same machine finds a history that loses, leaks or stops."""
    for where, instead in variant.patches.items():
        monkeypatch.setattr(where, instead)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(UploaderModel, settings=UNGUARDED)
