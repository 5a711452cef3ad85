"""A closed segment is found by the rescan where its events were lost, or never came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tiering.uploader.brokers import PARTITION
from tests.tiering.uploader.small_cluster import SmallCluster
from tiering.cluster.file_events import FileEvents, Look, Lookout
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter

RESCAN_S = 5.0
QUEUE_MAX = Path("/proc/sys/fs/inotify/max_queued_events")
EVENTS_MAX = 100_000


@dataclass
class Clock:
    now_s: float = 100.0

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SmallCluster]:
    """One broker with an empty partition in its log dir."""
    made = SmallCluster(tmp_path, brokers=1)
    made.chance.random = lambda: 1.0  # type: ignore[method-assign]  # it rolls when it is told to
    yield made
    made.close()


@pytest.fixture
def events() -> Iterator[FileEvents]:
    made = FileEvents()
    yield made
    made.close()


def lookout(events: FileEvents | None, clock: Clock) -> Lookout:
    return Lookout(events, monotonic_s=lambda: clock.now_s, wait_s=clock.wait, rescan_s=RESCAN_S)


def closed(world: SmallCluster) -> list[int]:
    """The bases of the closed segments that a survey sees."""
    log_dir = world.cluster.leader.path.parent
    found = Surveyor([log_dir], topics=TopicFilter(), now_ns=lambda: 0).survey()
    return [each.base_offset for each in found.live[PARTITION].closed_segments]


def roll(world: SmallCluster) -> None:
    world.produce(3)
    world.cluster.leader.roll()


def test_without_any_events_the_rescan_finds_a_closed_segment(world: SmallCluster) -> None:
    """No inotify at all: nothing says a word until the interval is over, and the look then sees it."""
    clock = Clock()
    looks = lookout(None, clock)
    assert looks.wait(0.0) is Look.RESCAN  # the first look is given at once
    assert closed(world) == []

    roll(world)

    assert looks.wait(RESCAN_S - 1.0) is Look.NOT_YET
    assert looks.wait(1.0) is Look.RESCAN
    assert closed(world) == [0]


def test_a_directory_that_could_not_be_watched_is_named_and_left_to_the_rescan(
    world: SmallCluster, events: FileEvents
) -> None:
    """Its events never come, while those of others do; the rescan comes all the same."""
    clock, path = Clock(), world.cluster.leader.path
    elsewhere = path.parent / "payments-0"
    elsewhere.mkdir()
    away = path.rename(path.with_name("away"))
    [refused] = events.follow([], [path, elsewhere])
    away.rename(path)
    looks = lookout(events, clock)
    assert looks.wait(0.0) is Look.RESCAN

    roll(world)

    assert (refused.path, bool(refused.reason)) == (path, True)
    assert looks.wait(0.05) is Look.NOT_YET
    clock.wait(RESCAN_S)
    assert looks.wait(0.0) is Look.RESCAN
    assert closed(world) == [0]
    (elsewhere / "00000000000000000009.log").touch()
    assert events.wait(RESCAN_S)


@pytest.mark.skipif(not QUEUE_MAX.exists(), reason="the kernel says how long its queue may be in /proc")
def test_a_queue_that_ran_over_is_a_reason_to_look(world: SmallCluster, events: FileEvents) -> None:
    """Thousands of events that mean nothing, and behind them the kernel's word that others were lost."""
    limit = int(QUEUE_MAX.read_text())
    if limit > EVENTS_MAX:
        pytest.skip(f"it takes more than {EVENTS_MAX} events to fill this kernel's queue")
    log_dir, path = world.cluster.leader.path.parent, world.cluster.leader.path
    assert events.follow([log_dir], [path]) == ()
    for _ in range(limit // 2 + 1):  # a checkpoint's files come and go
        (log_dir / "replication-offset-checkpoint.tmp").touch()
        (log_dir / "replication-offset-checkpoint.tmp").unlink()

    roll(world)  # its events find no room

    said = [events.wait(0.0) for _ in range(limit)]
    assert said.count(True) == 1, "the overflow alone, and once"
    assert closed(world) == [0]
