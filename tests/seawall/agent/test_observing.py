"""An observer's post: its looks are counted, and where it cannot look, that is told in every way there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event as Stop
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from rules.events import DirectoryOffline, Event, EvidenceGap, LogBaseline, Source
from seawall.agent.health import Health
from seawall.agent.loops import LoopContext
from seawall.agent.metrics import Tally
from seawall.agent.observing import Observing
from seawall.agent.posts import Ground, Post, log_dirs, posts
from seawall.agent.sink import LoggedSink
from seawall.agent.world import Clockwork
from seawall.local.waiting import wait_until
from seawall.metrics.collected import Collected
from seawall.settings.model import AgentSettings
from tests.audit_engine.observers.disk.model import CLUSTER, Disk
from tests.seawall.agent.test_remote_storage import Answers
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.kafka import KafkaCluster

DEADLINE_S = 10.0


@dataclass
class Kept:
    """Keeps what it is given, and hears what the log says."""

    events: list[Event] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)

    def emit_many(self, events: Sequence[Event]) -> None:
        self.events += events

    def info(self, event: str, **_: Any) -> None:
        self.lines.append(("info", event))

    def warning(self, event: str, **_: Any) -> None:
        self.lines.append(("warning", event))


class World:
    """A ground to stand on, with a clock that a test sets."""

    def __init__(self, root: Path) -> None:
        self.now_ms, ids = 1_000, count()
        self.kept, self.answers = Kept(), Answers()
        self.health, self.tally = Health(now_ms=lambda: self.now_ms), Tally()
        self.disk = Disk(root / "host")
        (root / "agent").mkdir()
        self.ground = Ground(
            broker=BrokerIdentity(cluster_id=CLUSTER, broker_id=1),
            log_dirs=tuple(self.disk.paths),
            folder=root / "agent",
            config={},
            cluster=cast(KafkaCluster, self.answers),
            settings=AgentSettings(),
            sink=LoggedSink(keeper=self.kept, tally=self.tally, log=self.kept),
            health=self.health,
            clockwork=Clockwork(now_ms=lambda: self.now_ms, new_id=lambda: f"e{next(ids)}"),
        )
        self.context = LoopContext(health=self.health, tally=self.tally, log=self.kept, stop=Stop())
        self.registry = CollectorRegistry()

    def begin(self, stack: ExitStack, run_once: Callable[[], object]) -> Observing:
        post = Post(name="disk", source=Source.LOG_DIR, run_once=run_once, every_s=0.001)
        observing = Observing([post], self.ground)
        self.registry.register(Collected(collected=observing.metrics))
        observing.begin(self.context, stack)
        return observing

    def sample(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"seawall_observer_{name}", {"observer": "disk"})

    def gaps(self) -> list[EvidenceGap]:
        return [each for each in self.kept.events if isinstance(each, EvidenceGap)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_an_observer_that_fails_is_told_by_log_doubt_metric_and_evidence(world: World) -> None:
    """One gap when it begins, one over all of it when it looks again, and none between; then both end."""
    may_look, looks = Stop(), count()
    may_look.set()

    def look() -> None:
        next(looks)
        if not may_look.is_set():
            raise OSError("the disk is gone")

    with ExitStack() as stack:
        world.begin(stack, look)
        assert world.health.doubts() in ({}, {"observe_disk": "it has not looked yet"})
        _wait(lambda: (world.sample("looks_total") or 0) > 1)
        world.now_ms = 2_000
        _wait(lambda: world.sample("last_look_timestamp_seconds") == 2)
        assert (world.health.doubts(), world.gaps()) == ({}, [])

        may_look.clear()
        _wait(lambda: (world.sample("failures_total") or 0) > 2)
        assert "the disk is gone" in world.health.doubts()["observe_disk"]
        assert world.sample("blind") == 1
        world.now_ms = 9_000
        may_look.set()
        _wait(lambda: world.sample("blind") == 0)

    began, ended, *over = world.gaps()
    assert (began.problem, began.not_before_ms, began.occurred_at_ms) == ("observer_failed", 2_000, 2_000)
    assert (ended.problem, ended.not_before_ms, ended.occurred_at_ms) == ("observer_was_blind", 2_000, 9_000)
    assert [(each.problem, each.detail) for each in over] == [
        ("made_good", began.detail),
        ("made_good", ended.detail),
    ]
    assert began.source is Source.LOG_DIR
    assert "the disk is gone" in began.detail
    assert ("warning", "observe_disk_failed") in world.kept.lines
    assert ("warning", "evidence_gap") in world.kept.lines
    assert world.health.doubts() == {}


def test_an_agent_that_has_not_looked_is_not_ready(world: World) -> None:
    """Ready means that it sees its broker."""
    Observing(posts(world.ground), world.ground)

    assert world.health.doubts()["observe_log_dirs"] == "it has not looked yet"


def test_a_log_dir_that_is_unmounted_is_evidence_and_a_doubt_until_it_is_back(world: World) -> None:
    """Not a failed look: what lies in the other log dirs goes on being told."""
    post = log_dirs(world.ground)
    post.run_once()
    assert post.seen() == {"replicas": 1, "unreadable": 0}
    identity, aside = world.disk.dir(0) / "meta.properties", world.disk.root / "aside"
    identity.rename(aside)
    post.run_once()
    assert [each.path for each in world.kept.events if isinstance(each, DirectoryOffline)] == [
        str(world.disk.dir(0))
    ]
    assert "has no meta.properties" in world.health.doubts()["log dirs"]
    assert post.seen() == {"replicas": 1, "unreadable": 1}

    aside.rename(identity)
    world.now_ms += 5_000
    post.run_once()
    assert world.health.doubts() == {}
    assert [each.occasion.value for each in world.kept.events if isinstance(each, LogBaseline)][-1] == "gap"
    post.close()


def test_what_is_for_programs_is_kept_and_not_logged(world: World) -> None:
    """The first look of a host with thousands of replicas is no thousands of lines."""
    post = log_dirs(world.ground)
    post.run_once()
    post.close()

    assert {each.kind for each in world.kept.events} == {"replica_started", "log_baseline"}
    assert world.kept.lines == []
    assert world.tally.copy()[1] == {"replica_started": 1, "log_baseline": 1}


def _wait(condition: Callable[[], bool]) -> None:
    wait_until(condition, name="observing", wanted="the look", deadline_s=DEADLINE_S)
