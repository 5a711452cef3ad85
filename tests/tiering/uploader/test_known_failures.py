"""What goes wrong in systems that tier logs today, each by its name, and why it does not here.

The same uploader as in `test_model`, in histories written out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rules.events import UploadStalled
from tests.tiering.uploader.small_cluster import Agent, SmallCluster
from tests.tiering.uploader.unguarded import any_hole, by_base, past_failures
from tests.tiering.uploader.world import Killed
from tiering.log.directory import read_partition_directory
from tiering.segments.records import SegmentRecord, SegmentState
from tiering.uploader.errors import NotFollowed
from tiering.uploader.holder import SegmentHolder

NewWorld = Callable[..., SmallCluster]


@pytest.fixture
def new_world(tmp_path: Path) -> Iterator[NewWorld]:
    """Makes small clusters; ends their agents when the test is over."""
    made: list[SmallCluster] = []

    def make(brokers: int = 1) -> SmallCluster:
        made.append(SmallCluster(tmp_path / str(len(made)), brokers=brokers))
        return made[-1]

    yield make
    for world in made:
        world.close()


def frontier(world: SmallCluster) -> int:
    found = world.coverage()
    assert found is not None
    return found.frontier.offset


def reads_back(world: SmallCluster) -> dict[int, bytes]:
    found = world.coverage()
    assert found is not None
    return world.read_back(world.log, found)


def fill(world: SmallCluster, *counts: int) -> None:
    """A closed segment of so many records each, on the leader and on nobody else."""
    for count in counts:
        world.cluster.leader.append_new(count, world.cluster.epoch)
        world.cluster.leader.roll()
    world.replicate()


def straddling(world: SmallCluster) -> None:
    """Broker 1 covers [0, 4); broker 2, which leads then, has [0, 7) and [7, 10) in one segment each."""
    one, two = world.cluster.replicas[1], world.cluster.replicas[2]
    world.chance.random = lambda: 1.0  # type: ignore[method-assign]  # nobody rolls by himself
    for count, rolls in ((4, [one]), (3, [two]), (3, [one, two])):
        world.produce(count)
        for replica in rolls:
            replica.roll()
    world.cluster.high_watermark = 4
    world.run_agent(1)
    world.cluster.high_watermark = 10
    world.move_leader(2)


def test_a_resume_marker_does_not_skip_the_segment_that_straddles_a_leader_change(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T2: the next segment is the one that holds the frontier, wherever it begins."""
    world = new_world(brokers=2)
    straddling(world)
    assert frontier(world) == 4

    world.run_agent(2)

    assert frontier(world) == 10
    assert reads_back(world) == world.cluster.leader.values()
    other = new_world(brokers=2)
    straddling(other)
    monkeypatch.setattr("tiering.uploader.decide.next_segment", by_base)
    other.run_agent(2)
    assert frontier(other) == 4  # [4, 7) is in no segment that begins at 4 or later


def test_no_marker_passes_a_failed_segment(new_world: NewWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """T2: what failed is tried again, and until it succeeds nothing behind it is copied."""
    world = new_world()
    fill(world, 4, 4)
    world.objects.fail_on = ".aux"
    world.run_agent(1)
    assert world.coverage() is not None
    assert frontier(world) == 0
    world.objects.fail_on = None

    world.run_agent(1)

    assert frontier(world) == 8
    other = new_world()
    monkeypatch.setattr("tiering.uploader.one_log.frontier", past_failures)
    fill(other, 4, 4)
    other.objects.fail_on = ".aux"
    other.run_agent(1)
    other.objects.fail_on = None
    for _ in range(3):
        other.run_agent(1)
    assert frontier(other) == 0  # the marker stands at 4 or beyond, and [0, 4) never comes


def test_out_of_memory_in_one_copy_does_not_end_the_loop(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T7: it is a status and a back-off; the next pass of the same process copies the segment."""
    world = new_world()
    fill(world, 4)

    def exhausted(*_: object, **__: object) -> object:
        raise MemoryError

    with monkeypatch.context() as starved:
        starved.setattr("tiering.uploader.copy.scan", exhausted)
        [status] = world.run_agent(1).values()
        assert (status.state, status.detail) == ("failed", "MemoryError: MemoryError()")
    agent = world.agents[1]
    world.run_agent(1)

    assert world.agents[1] is agent
    assert frontier(world) == 4


def test_a_file_that_cannot_be_opened_ends_one_logs_turn_only(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T7: too many open files, say, meets one log while the pass looks at it; the pass itself goes on."""
    world = new_world()
    fill(world, 4)

    def refused(*_: object) -> object:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as starved:
        starved.setattr("tiering.uploader.holder.open_segment", refused)
        [status] = world.run_agent(1).values()
        assert status.state == "failed"
    world.run_agent(1)

    assert frontier(world) == 4


def test_copies_of_one_range_never_overwrite_each_other(new_world: NewWorld) -> None:
    """T3: each attempt has its own keys, so deleting what is left of one takes nothing from another."""
    world = new_world()
    fill(world, 4)
    with world.plan.struck(6, applied=False), pytest.raises(Killed):  # before COPY_FINISHED
        world.run_agent(1)
    left = set(world.objects.live)
    assert len(left) == 3

    world.run_agent(1)

    assert left == world.objects.marked
    assert not left & set(world.objects.live)
    assert {key.rpartition("/")[2][:20] for key in world.objects.versions} == {f"{0:020d}"}
    assert len(world.objects.versions) == 6
    assert reads_back(world) == world.cluster.leader.values()


def test_a_restarted_agent_does_nothing_before_it_has_caught_up(new_world: NewWorld) -> None:
    """T2, T5: by an old table the committed copy is an attempt that somebody left: it is not touched."""
    world = new_world()
    fill(world, 4)
    world.run_agent(1)
    world.stop_agent(1)
    before = {partition: list(records) for partition, records in world.topic.records.items()}
    behind: Agent = world.started(1, world.topic.replayed(upto=2))  # a claim, and COPY_STARTED
    world.agents[1] = behind

    [status] = world.run_agent(1).values()

    assert status.state == "unknown"
    assert world.topic.records == before
    assert not world.objects.marked
    for partition, records in world.topic.records.items():
        behind.metadata.applied(partition, records)
    world.run_agent(1)
    assert (frontier(world), world.objects.marked) == (4, set())


def test_a_stale_decision_to_abandon_takes_no_committed_copy(new_world: NewWorld) -> None:
    """T5: two agents on one broker: one decides to clean up what the other finishes meanwhile."""
    world = new_world()
    fill(world, 4)
    seen: list[SegmentRecord] = []

    def look() -> None:
        table, view = world.topic.reader.of(world.log), world.topic.reader.view(world.log)
        assert table is not None
        assert view is not None
        seen.extend(filter(None, (table.segment(world.log, each) for each in view.unfinished())))

    with world.plan.struck(3, applied=True, strike=look):  # COPY_STARTED and .log are there
        world.run_agent(1)
    [attempt] = seen

    with pytest.raises(NotFollowed):
        world.agents[1].metadata.publish(replace(attempt, state=SegmentState.DELETE_STARTED))

    assert (frontier(world), world.objects.marked) == (4, set())


def test_a_hole_above_the_logs_start_is_not_passed(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T2: the first file gone from the leader's disk, though the log claims it, stops the frontier."""
    world = new_world()
    fill(world, 4, 4)
    world.run_agent(1)
    world.stop_agent(1)
    fill(world, 4, 4)
    for base in (0, 4, 8):
        (world.cluster.leader.path / f"{base:020d}.log").unlink()

    [status] = world.run_agent(1).values()

    assert (status.state, frontier(world)) == ("stalled", 8)
    monkeypatch.setattr("tiering.uploader.one_log.next_step", any_hole)
    world.run_agent(1)
    assert frontier(world) == 16
    assert world.sink.wrong_gaps


def test_bytes_of_another_history_are_refused_before_they_are_sent(new_world: NewWorld) -> None:
    """T6: a file whose epochs are not the log's is no part of it, though every checksum is right."""
    world = new_world()
    fill(world, 4, 4)
    world.cluster.leader.epochs = [(0, 6)]  # an erased checkpoint, begun again at 6
    world.cluster.leader.write_epochs()

    [status] = world.run_agent(1).values()

    assert status.state == "failed"
    assert "off_lineage" in status.detail
    assert not world.objects.versions


def test_a_held_file_that_a_truncation_replaced_is_let_go(tmp_path: Path) -> None:
    """T6: the same name, base, end and size, and another file: the one that was held is not the log's now."""
    world = SmallCluster(tmp_path / "w", brokers=1)
    fill(world, 4, 4)
    path = world.cluster.leader.path / f"{4:020d}.log"
    holder = SegmentHolder()
    first = holder.keep("log", read_partition_directory(path.parent).segments)
    shutil.copy(path, path.with_suffix(".new"))
    path.unlink()
    path.with_suffix(".new").rename(path)

    second = holder.keep("log", read_partition_directory(path.parent).segments)

    assert [each.base_offset for each in second] == [0, 4]
    assert first[0] is second[0]
    assert first[1] is not second[1]
    holder.close()
    world.close()


def test_an_idle_log_that_retention_emptied_goes_on_after_an_election(new_world: NewWorld) -> None:
    """T6: the leader's history begins with its own epoch; without unclean elections it can go on."""
    world = new_world(brokers=2)
    world.cluster.unclean_allowed = False
    fill(world, 4, 4)
    world.run_agent(1)
    for broker in (1, 2):
        world.cluster.replicas[broker].start_at(8)
    world.move_leader(2)
    assert world.cluster.leader.epochs == [(1, 8)]

    fill(world, 4)
    world.run_agent(2)

    assert frontier(world) == 12
    assert reads_back(world) == world.cluster.leader.values()


def test_where_unclean_elections_are_allowed_it_waits_and_says_what_for(new_world: NewWorld) -> None:
    """T6: the same log, and nobody can know whether its end was replaced: nothing is guessed."""
    world = new_world(brokers=2)
    fill(world, 4, 4)
    world.run_agent(1)
    for broker in (1, 2):
        world.cluster.replicas[broker].start_at(8)
    world.move_leader(2)
    fill(world, 4)

    [status] = world.run_agent(2).values()

    assert status.state == "failed"
    assert "LineageUnknown" in status.detail
    assert "unclean.leader.election.enable=false" in status.detail
    world.cluster.unclean_allowed = False
    world.run_agent(2)
    assert frontier(world) == 12


def test_a_deleted_topics_files_are_let_go(new_world: NewWorld) -> None:
    """T7: what is held of a topic that is made anew under its name would stay on disk for ever."""
    world = new_world()
    fill(world, 4)
    world.objects.fail_on = ".log"
    world.run_agent(1)
    held = world.agents[1].service.tools.holder
    assert held.totals().count == 1

    world.recreate_topic()
    world.run_agent(1)

    assert held.totals().count == 0
    assert list(world.agents[1].service.statuses()) == [world.log]


def test_a_clock_that_is_put_back_delays_no_retry(new_world: NewWorld) -> None:
    """T7: a next try that lies further ahead than any back-off is due."""
    world = new_world()
    fill(world, 4)
    [status] = world.run_agent(1).values()
    fill(world, 4)
    status.next_try_ms = 2**60

    world.run_agent(1)

    assert frontier(world) == 8


def test_a_frontier_that_stands_still_is_told_once(new_world: NewWorld) -> None:
    """T7: work waits, the store is away for long: one event, with the reason; the next one after it moved."""
    world = new_world()
    fill(world, 4)
    world.objects.fail_on = ".log"
    for _ in range(3):
        world.run_agent(1)

    [stalled] = [event for event in world.sink.events if isinstance(event, UploadStalled)]

    assert (stalled.frontier, stalled.waiting_segments) == (0, 1)
    assert "ConnectionError" in stalled.reason


def test_what_was_copied_is_not_held_open_for_as_long_as_it_is_on_the_disk(new_world: NewWorld) -> None:
    """Found by a soak: the room was full of committed segments, so that those to be copied had none, and what
    retention removed stayed on the disk."""
    world = new_world()
    fill(world, 3, 3, 3)
    held = world.agent(1).service.tools.holder

    for _ in range(3):
        world.run_agent(1)
        assert held.totals().count == 0
    assert frontier(world) == 9
    fill(world, 2)
    world.run_agent(1)
    world.run_agent(1)
    assert (frontier(world), held.totals().count) == (11, 0)
