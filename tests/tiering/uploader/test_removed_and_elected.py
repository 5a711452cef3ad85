"""What an unclean election does to a tier whose head has expired already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiering.uploader.removing import Remover, declared
from tests.tiering.uploader.small_cluster import SmallCluster


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SmallCluster]:
    """Two brokers; nobody rolls a segment by himself."""
    made = SmallCluster(tmp_path, brokers=2)
    made.chance.random = lambda: 1.0  # type: ignore[method-assign]
    yield made
    made.close()


def expired_then_elected(world: SmallCluster) -> Remover:
    """Broker 2 stops following at 3. [0, 9) is copied and expires; then broker 2 leads, and writes on."""
    remover = Remover(world, policy=declared("by time"))
    remover.begin()
    world.produce(3)
    world.stop_following(2)
    world.produce(6)
    world.cluster.leader.roll()
    world.run_agent(1)
    remover.run(1)
    assert remover.starts[world.log][-1][1] == 9
    world.move_leader(2)
    world.produce(4)
    world.cluster.leader.roll()
    return remover


def test_the_tier_starts_anew_where_another_history_begins_below_its_start(world: SmallCluster) -> None:
    """The expired [3, 9) was of the lost history: what stands at 3 now is copied, and reads back."""
    expired_then_elected(world)

    world.run_agent(2)

    found = world.coverage()
    assert found is not None
    assert (found.frontier.start, found.frontier.offset) == (3, 7)
    truth = world.cluster.leader.values()
    assert world.read_back(world.log, found) == {offset: truth[offset] for offset in range(3, 7)}


def test_records_of_another_history_are_not_trimmed_as_expired(world: SmallCluster) -> None:
    """Before they are copied nothing of them goes from the disks, though the old start lay beyond them."""
    remover = expired_then_elected(world)
    world.objects.fail_on = ".log"
    world.run_agent(2)

    remover.run(2)

    assert remover.wrong == []
    assert world.cluster.leader.log_start <= 3


def test_a_start_that_stays_has_them_trimmed(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unguarded: the judge sees records go that are nowhere in the tier."""
    monkeypatch.setattr("tiering.uploader.log_records.fork", lambda *_: None)
    remover = expired_then_elected(world)
    world.run_agent(2)

    remover.run(2)

    assert remover.wrong == [f"offset {offset} is trimmed and nowhere in the tier" for offset in range(3, 7)]
