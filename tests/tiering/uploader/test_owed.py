"""A claim, or a gap, whose agent was killed before it could tell of it, is told by the next one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rules.events import GapRecorded, LeadershipClaimed, LogEvent
from tests.tiering.uploader.small_cluster import SmallCluster, WatchedSink
from tests.tiering.uploader.world import Killed
from tiering.segments.view import LogView
from tiering.uploader.errors import MetadataSilent
from tiering.uploader.owed import owed


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SmallCluster]:
    made = SmallCluster(tmp_path / "world", brokers=2)
    made.chance.random = lambda: 1.0  # type: ignore[method-assign]  # a segment ends when it is told to
    yield made
    made.close()


def close_a_segment(world: SmallCluster) -> None:
    world.produce(4)
    for replica in world.cluster.replicas.values():
        replica.roll()


def lose_a_segment(world: SmallCluster) -> None:
    """One segment is copied; the next one is taken by retention before it is."""
    close_a_segment(world)
    world.run_agent(1)
    close_a_segment(world)
    world.start_at(8)


def view(world: SmallCluster) -> LogView:
    found = world.topic.reader.view(world.log)
    assert found is not None
    return found


def killed_before_telling(
    world: SmallCluster, kind: type[LogEvent], monkeypatch: pytest.MonkeyPatch
) -> LogEvent:
    """The event that the agent beside broker 1 would have told next."""
    lost: list[LogEvent] = []
    take = WatchedSink.emit

    def emit(sink: WatchedSink, event: LogEvent) -> None:
        if isinstance(event, kind):
            lost.append(event)
            raise Killed
        take(sink, event)

    with monkeypatch.context() as patched:
        patched.setattr(WatchedSink, "emit", emit)
        with pytest.raises(Killed):
            world.run_agent(1)
    [found] = lost
    return found


def of_kind(world: SmallCluster, kind: type[LogEvent]) -> list[LogEvent]:
    return [event for event in world.sink.events if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("kind", "prepare"), [(LeadershipClaimed, close_a_segment), (GapRecorded, lose_a_segment)]
)
def test_what_a_killed_agent_did_not_tell_is_told_once_by_the_next(
    kind: type[LogEvent],
    prepare: object,
    world: SmallCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record is in the topic, the event was never taken: the next process makes it again from the record,
    the same to the last field, and those after it do not tell it a second time."""
    assert callable(prepare)
    prepare(world)
    lost = killed_before_telling(world, kind, monkeypatch)
    assert of_kind(world, kind) == []

    world.run_agent(1)
    for _ in range(2):
        world.stop_agent(1)
        world.run_agent(1)

    assert of_kind(world, kind) == [lost]


def test_what_was_told_and_is_remembered_by_nobody_is_told_again_under_its_id(world: SmallCluster) -> None:
    """A spool that was lost: the repetition is the same act, and nobody counts it twice."""
    close_a_segment(world)
    world.run_agent(1)
    [told] = of_kind(world, LeadershipClaimed)
    world.stop_agent(1)
    world.sink.events.clear()

    world.run_agent(1)

    assert of_kind(world, LeadershipClaimed) == [told]


def test_a_claim_whose_answer_was_lost_is_told_by_the_same_process(world: SmallCluster) -> None:
    """The topic took the record, and the agent heard an error: it goes on under the claim, and says so."""
    close_a_segment(world)

    def silent() -> None:
        raise MetadataSilent(log=world.log, offset=0, segment_id="", waited_s=1.0)

    with world.plan.struck(1, applied=True, strike=silent):
        world.run_agent(1)
    assert of_kind(world, LeadershipClaimed) == []

    world.run_agent(1)

    [told] = of_kind(world, LeadershipClaimed)
    standing = view(world).record
    assert standing is not None
    assert told.event_id == standing.event_id


def test_only_the_writer_of_the_record_that_stands_owes_its_event(world: SmallCluster) -> None:
    """Not another broker's agent, and nobody for a record that changed something else."""
    close_a_segment(world)
    world.run_agent(1)
    found = view(world)
    assert found.record is not None

    assert isinstance(owed(found, 1), LeadershipClaimed)
    assert owed(found, 2) is None
    assert owed(replace(found, record=replace(found.record, claim_offset=0, event_id="a hold's")), 1) is None
    assert owed(None, 1) is None
