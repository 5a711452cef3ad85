"""What the observer of KIP-405's topic tells, over its own restarts and whatever becomes of the topic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from audit_engine.observers.errors import SourceSilent
from audit_engine.observers.kip405.memory import FILE_NAME
from audit_engine.observers.kip405.observer import BASELINE_EVERY_MS, CHECK_EVERY_MS, Observer
from rules.events import (
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    Event,
    EvidenceGap,
    TierState,
)
from tests.audit_engine.observers.kip405.records import (
    CLUSTER_ID,
    METADATA_ID,
    Topic,
    deleted,
    deleting,
    finished,
    segment_id,
    started,
)


class Killed(Exception):
    """The process ends here."""


class Watched:
    """An observer of a topic in memory, and all that it said."""

    def __init__(self, folder: Path, topic: Topic, broker_id: int | None = None) -> None:
        self.folder, self.topic, self.broker_id = folder, topic, broker_id
        self.said: list[Event] = []
        self.now_ms = 1_000_000
        self.dies_after: int | None = None
        self.ids = count()
        self.restart()

    def restart(self) -> None:
        self.observer = Observer(
            source=self.topic,
            cluster_id=CLUSTER_ID,
            sink=self,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"e{next(self.ids)}",
            folder=self.folder,
            is_read=lambda brokers: self.broker_id is None or self.broker_id in brokers,
        )

    def emit_many(self, events: Sequence[Event]) -> None:
        for event in events:
            if self.dies_after is not None and len(self.said) >= self.dies_after:
                raise Killed
            self.said.append(event)

    def look(self) -> list[Event]:
        """What one look comes to."""
        before = len(self.said)
        told = self.observer.run_once()
        assert told == len(self.said) - before
        return self.said[before:]

    @property
    def copies(self) -> list[tuple[str, str]]:
        return [
            (each.kind, each.segment_id)
            for each in self.said
            if isinstance(each, CopyStarted | CopyFinished | DeleteStarted | DeleteFinished)
        ]


@pytest.fixture
def topic() -> Topic:
    found = Topic()
    found.append(started(1, 0, 9), finished(1), started(2, 10, 19), finished(2), deleting(1), deleted(1))
    found.append(started(3, 20, 29), finished(3), started(4, 30, 39), deleting(2))
    return found


@pytest.fixture
def watched(tmp_path: Path, topic: Topic) -> Watched:
    return Watched(tmp_path, topic)


THERE = [
    ("copy_started", segment_id(2)),
    ("copy_finished", segment_id(2)),
    ("copy_started", segment_id(3)),
    ("copy_finished", segment_id(3)),
    ("copy_started", segment_id(4)),
    ("delete_started", segment_id(2)),
]


def test_at_first_what_is_there_is_told_and_what_went_before_is_not(watched: Watched) -> None:
    """The records of the copies that are left, in their order; then the state of the log, as a baseline."""
    watched.look()

    assert watched.copies == THERE
    state = watched.said[-1]
    assert isinstance(state, TierState)
    assert (state.tiered_start, state.frontier, state.segment_count, state.size_bytes) == (20, 30, 1, 103)
    assert (state.metadata_partition, state.metadata_offset) == (0, 9)
    assert watched.look() == []


def test_from_then_on_each_record_is_told_as_it_comes(watched: Watched, topic: Topic) -> None:
    """One event a record, none twice, also of a copy that comes and goes between two looks."""
    watched.look()
    topic.append(finished(4), deleted(2), started(5, 40, 49), deleting(5), deleted(5))

    assert [each.kind for each in watched.look()] == [
        "copy_finished",
        "delete_finished",
        "copy_started",
        "delete_started",
        "delete_finished",
    ]
    assert watched.look() == []


def test_a_restart_tells_nothing_twice_and_says_the_state_again(watched: Watched, topic: Topic) -> None:
    """It goes on from where it was, knowing the ranges of what it read before."""
    watched.look()
    watched.observer.close()
    topic.append(deleting(3))
    watched.restart()
    [going, state] = watched.look()

    assert isinstance(going, DeleteStarted)
    assert (going.base_offset, going.end_offset) == (20, 30)
    assert isinstance(state, TierState)
    assert state.segment_count == 0


@pytest.mark.parametrize("dies_after", range(11))
def test_wherever_it_is_killed_each_event_is_told_and_a_repetition_is_the_same(
    tmp_path: Path, dies_after: int
) -> None:
    """Killed in what is there, or in what comes: nothing missing, nothing else, no id with two events."""
    told = {}
    for name, limit in (("killed", dies_after), ("not killed", None)):
        topic = Topic()
        (tmp_path / name).mkdir()
        watched = Watched(tmp_path / name, topic)
        watched.dies_after = limit
        for values in (
            (started(1, 0, 9), finished(1), started(2, 10, 19), finished(2)),
            (deleting(1), deleted(1), started(3, 20, 29), finished(3)),
        ):
            topic.append(*values)
            try:
                watched.look()
            except Killed:
                watched.dies_after = None
                watched.restart()
                watched.look()
        of_records = [each for each in watched.said if not isinstance(each, TierState)]
        told[name] = {each.event_id: each for each in of_records}
        assert all(told[name][each.event_id] == each for each in of_records)

    assert len(told["killed"]) == 8
    assert told["killed"] == told["not killed"]


def test_two_observers_say_the_same(tmp_path: Path, topic: Topic) -> None:
    """Ids and contents are the records' own: whoever reads them, and in how many pieces."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = Watched(tmp_path / "a", topic), Watched(tmp_path / "b", topic)
    one.look()
    topic.batch = 100
    other.look()

    assert one.said[:-1] == other.said[:-1]
    first, second = one.said[-1], other.said[-1]
    assert isinstance(first, TierState)
    assert isinstance(second, TierState)
    assert first.digest == second.digest


def test_what_retention_took_before_it_was_read_is_a_gap(watched: Watched, topic: Topic) -> None:
    """The offsets that nobody of us saw, then what comes behind them, and the state as it is known."""
    watched.look()
    topic.append(finished(4), deleted(2), started(5, 40, 49))
    topic.starts[0] = 12
    watched.restart()
    gap, begun, state = watched.look()

    assert isinstance(gap, EvidenceGap)
    assert (gap.problem, gap.gap_start, gap.gap_end) == ("topic_overtook", 10, 12)
    assert isinstance(begun, CopyStarted)
    assert isinstance(state, TierState)


def test_a_topic_that_went_back_is_told_anew(watched: Watched, topic: Topic) -> None:
    """Other records at the same offsets are other events; those that stayed are told as they were."""
    watched.look()
    before = {each.event_id: each for each in watched.said}
    del topic.logs[0][8:]
    watched.restart()
    gap, *again = watched.look()

    assert isinstance(gap, EvidenceGap)
    assert (gap.problem, gap.gap_start, gap.gap_end) == ("topic_went_back", 8, 10)
    assert [each.kind for each in again] == [*["copy_started", "copy_finished"] * 2, "tier_state"]
    assert all(before[each.event_id] == each for each in again[:-1])

    topic.epoch += 1
    topic.append(started(6, 30, 34))
    [other] = watched.look()
    assert other.event_id not in before


def test_a_topic_made_anew_is_read_from_its_beginning(watched: Watched, topic: Topic) -> None:
    """Nothing that was known holds of the new one; what happened in between is a gap."""
    watched.look()
    topic.topic_id, topic.logs = METADATA_ID[::-1], {0: [started(9, 0, 9)]}
    gap, begun, state = watched.look()

    assert isinstance(gap, EvidenceGap)
    assert gap.problem == "topic_recreated"
    assert isinstance(begun, CopyStarted)
    assert isinstance(state, TierState)
    assert state.segment_count == 0


def test_an_unreadable_record_is_a_gap_of_one(watched: Watched, topic: Topic) -> None:
    """It is said where it stands, and nothing behind it is lost."""
    watched.look()
    topic.append(b"?", finished(4))
    gap, done = watched.look()

    assert isinstance(gap, EvidenceGap)
    assert (gap.problem, gap.gap_start, gap.gap_end) == ("record_unreadable", 10, 11)
    assert "partition 0" in gap.detail
    assert isinstance(done, CopyFinished)


def test_a_damaged_memory_is_said_and_everything_told_again_as_it_was(watched: Watched) -> None:
    """An evidence gap; then the same events under the same ids."""
    watched.look()
    before = list(watched.said)
    watched.observer.close()
    path = watched.folder / FILE_NAME
    path.write_bytes(b"?" * path.stat().st_size)
    watched.restart()
    gap, *again = watched.look()

    assert isinstance(gap, EvidenceGap)
    assert gap.problem == "memory_lost"
    assert again[:-1] == before[:-1]
    assert list(watched.folder.glob("*.unreadable-*"))


def test_an_agent_reads_the_partitions_that_its_broker_holds(tmp_path: Path, topic: Topic) -> None:
    """Another's are another agent's; one that comes to this broker is read from its beginning."""
    topic.replicas = {0: frozenset({1, 2}), 1: frozenset({2, 3})}
    topic.append(started(7, 0, 9), partition=1)
    watched = Watched(tmp_path, topic, broker_id=1)
    watched.look()
    assert watched.copies == THERE

    topic.replicas[1] = frozenset({1, 3})
    watched.look()
    assert watched.copies == [*THERE, ("copy_started", segment_id(7))]


def test_a_reader_that_gets_nothing_though_there_is_something_says_so(watched: Watched, topic: Topic) -> None:
    """Asked once a minute: records that did not come from one time to the next are no end of the topic."""
    watched.look()
    topic.append(finished(4))
    topic.is_mute = True
    watched.now_ms += CHECK_EVERY_MS
    watched.look()  # they may be on their way
    watched.now_ms += CHECK_EVERY_MS
    with pytest.raises(SourceSilent, match="do not come"):
        watched.look()

    assert watched.copies == THERE

    topic.is_mute = False
    watched.look()
    assert watched.copies == [*THERE, ("copy_finished", segment_id(4))]


def test_a_reader_that_never_gets_anything_says_so(watched: Watched, topic: Topic) -> None:
    """Not that the topic is empty."""
    topic.is_mute = True
    watched.observer.turn_s = 0.05
    with pytest.raises(SourceSilent, match="nothing came"):
        watched.look()


def test_a_partition_that_goes_and_comes_back_is_read_on(tmp_path: Path, topic: Topic) -> None:
    """From where it was left."""
    topic.replicas = {0: frozenset({1}), 1: frozenset({1})}
    watched = Watched(tmp_path, topic, broker_id=1)
    watched.look()
    topic.replicas[0] = frozenset({2})
    topic.append(finished(4))
    assert watched.look() == []
    topic.replicas[0] = frozenset({1})

    assert [each.kind for each in watched.look()] == ["copy_finished"]


def test_the_state_is_said_again_every_six_hours(watched: Watched) -> None:
    """Whatever time of the day it began, once in six hours."""
    watched.look()
    said = 0
    for _ in range(6):
        watched.now_ms += BASELINE_EVERY_MS // 2
        said += len(watched.look())

    assert said == 3


def test_without_such_a_topic_there_is_nothing_to_say(watched: Watched, topic: Topic) -> None:
    """The brokers make it with the first topic that is tiered."""
    topic.is_there = False
    assert watched.look() == []

    topic.is_there = True
    watched.look()
    assert watched.copies == THERE
