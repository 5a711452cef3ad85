"""The observer through all that a broker does to its metadata log, in any order, held against the log."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.audit_engine.observers.kraft.world import (
    Watched,
    dated,
    expected,
    known_of,
    reached,
    replayed,
    swallowed,
)
from tests.tiering.cluster.histories import Act, Model, acts, in_transaction
from tiering.log.kraft.cluster import AbortTransactionRecord
from tiering.log.kraft.records import MetadataRecord

pytestmark = pytest.mark.slow


@settings(deadline=None, max_examples=20)
@given(history=st.lists(acts(), min_size=1, max_size=25), cuts=st.sets(st.integers(0, 40)), kills=st.data())
def test_however_the_log_is_cut_into_runs_the_events_are_the_same(
    history: list[Act], cuts: set[int], kills: st.DataObject
) -> None:
    """One run over all of it, or a run behind any batches, with restarts and kills: equal events by id."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("whole", "cut"):
            (Path(folder) / name).mkdir()
        whole, cut, model = Watched(Path(folder) / "whole"), Watched(Path(folder) / "cut"), Model()
        start = model.create("first", [(1, 2, 3)])
        for each in (whole, cut):
            each.write(start)
            each.look()
        for at, act in enumerate(history):
            records = act(model)
            whole.write(records)
            cut.write(records)
            if at in cuts:
                cut.killed_after(kills.draw(st.integers(0, 4)))
        cut.look()
        whole.look()

        assert cut.told.once == whole.told.once
        told, wanted = dated(whole.told.once), expected(whole.disk)
        assert told == {at: said for at, said in wanted.items() if said and at >= len(start)}
        whole.observer.close()
        cut.observer.close()


class ObservedLog(RuleBasedStateMachine):
    """A replica's disk with all that happens to it, a quorum that does not always answer, an observer."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.watched = Watched(self.folder)
        self.disk = self.watched.disk
        self.model = Model()
        self.models = {0: Model()}  # the cluster as of each batch boundary

    def teardown(self) -> None:
        self.watched.quorum_answers = True
        self.write([*self.model.idle()])
        self.disk.commit(self.disk.end_offset)
        self.watched.look()
        self.holds()
        assert reached(self.watched) == self.disk.end_offset
        self.nothing_is_missing()
        self.watched.observer.close()
        shutil.rmtree(self.folder)

    def write(self, records: list[MetadataRecord]) -> None:
        if records:
            self.disk.append(records)
            self.models[self.disk.end_offset] = copied(self.model)

    @initialize()
    def begin(self) -> None:
        self.write(self.model.create("orders", [(1, 2)]))

    @rule(act=acts())
    def control(self, act: Act) -> None:
        self.write(act(self.model))

    @rule(act=acts(), ended=st.booleans())
    def control_in_a_transaction(self, act: Act, ended: bool) -> None:
        before = copied(self.model)
        records = act(self.model)
        if not ended:
            self.model = before
        for each in in_transaction(records, ended=ended):
            self.write([each])

    @rule(share=st.floats(0, 1))
    def commit(self, share: float) -> None:
        open_ones = [at for at in self.disk.boundaries if at >= self.disk.committed]
        self.disk.commit(open_ones[int(share * (len(open_ones) - 1))])

    @rule(share=st.floats(0, 1))
    def elect(self, share: float) -> None:
        """Another controller: what it does not have was not committed. It aborts an open transaction."""
        kept = [at for at in self.disk.boundaries if at >= self.disk.committed]
        keep_to = kept[int(share * (len(kept) - 1))]
        self.disk.elect(keep_to)
        open_one = self.disk.image_at(keep_to).undecided is not None
        self.model = copied(self.models[keep_to])
        if open_one:
            self.model = copied(self.models[self.before_transaction(keep_to)])
            self.write([AbortTransactionRecord()])
        else:
            self.write(self.model.idle())

    def before_transaction(self, end: int) -> int:
        return max(
            at for at in self.disk.boundaries if at <= end and self.disk.image_at(at).undecided is None
        )

    @rule()
    def roll(self) -> None:
        self.disk.roll()

    @precondition(lambda self: self.disk.committed > 0)
    @rule()
    def snapshot(self) -> None:
        decided = [
            at
            for at in self.disk.boundaries
            if 0 < at <= self.disk.committed and self.disk.image_at(at).undecided is None
        ]
        if decided and decided[-1] not in self.disk.snapshot_ends:
            self.disk.snapshot(decided[-1])

    @precondition(lambda self: self.disk.snapshot_ends)
    @rule()
    def delete_behind(self) -> None:
        self.disk.delete_behind_snapshot()

    @precondition(lambda self: self.disk.snapshot_ends and self.disk.snapshot_ends[-1] > 0)
    @rule()
    def overtake(self) -> None:
        self.disk.replace_by_snapshot()

    @rule(before=acts(), history=st.lists(acts(), min_size=1, max_size=4), answers=st.booleans())
    def sleep_through_a_snapshot(self, before: Act, history: list[Act], answers: bool) -> None:
        """All that happens meanwhile is committed, in a snapshot, and in no log any more."""
        self.control(before)
        self.commit(1.0)
        self.watched.quorum_answers = True
        self.watched.look()
        for act in history:
            self.control(act)
        self.commit(1.0)
        self.snapshot()
        if self.disk.snapshot_ends:
            self.overtake()
        self.look(answers)

    @rule(lost=acts(), kept=acts())
    def believe_in_a_fallen_leader(self, lost: Act, kept: Act) -> None:
        """What was read of it is not committed; what is, another wrote in its place, and nobody says so."""
        self.commit(1.0)
        self.control(lost)
        self.look(answers=False)
        self.elect(0.0)
        self.control(kept)
        self.commit(1.0)
        self.snapshot()
        self.look(answers=False)

    @rule(answers=st.booleans())
    def look(self, answers: bool) -> None:
        self.watched.quorum_answers = answers
        self.watched.look()

    @rule(acts=st.lists(acts(), max_size=3), events=st.integers(0, 3))
    def kill(self, acts: list[Act], events: int) -> None:
        for act in acts:
            self.control(act)
        self.commit(1.0)
        self.watched.quorum_answers = True
        self.watched.killed_after(events)

    @rule()
    def restart(self) -> None:
        self.watched.restart()

    @invariant()
    def holds(self) -> None:
        """What is told is of the committed log, and whoever has only the events knows what we know."""
        told, wanted = dated(self.watched.told.once), expected(self.disk)
        for offset, said in told.items():
            assert offset < self.disk.committed
            assert said <= wanted.get(offset, set()), "invented"

    def nothing_is_missing(self) -> None:
        events = self.watched.told.once
        assert replayed(events) == known_of(self.disk.image_at(self.disk.end_offset))
        if not events:
            return
        first = self.watched.told.events[0].event_id.split(":")[2]
        baseline = int(first.rpartition(".")[2])
        told, unseen = dated(events), swallowed(events)
        for offset, wanted in expected(self.disk).items():
            if offset >= baseline and offset not in unseen:
                assert told.get(offset, set()) == wanted, f"at offset {offset}"


def copied(model: Model) -> Model:
    return Model(
        topics={
            name: (topic_id, [replace(each) for each in partitions])
            for name, (topic_id, partitions) in model.topics.items()
        },
        configs={key: dict(entries) for key, entries in model.configs.items()},
        brokers=dict(model.brokers),
        ids_used=model.ids_used + 1000,
    )


TestObservedLog = ObservedLog.TestCase
TestObservedLog.settings = settings(deadline=None, max_examples=30, stateful_step_count=30)
