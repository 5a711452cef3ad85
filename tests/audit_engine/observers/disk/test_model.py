"""The observer beside a model of a broker's disk: exactly what happened is said, whenever it looks."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from audit_engine.observers.disk.observer import Observer
from rules.events import Event
from tests.audit_engine.observers.disk.model import Disk, Fact, ModelReads
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter

STEP_MS = 1_000
START_MS = 1_800_000_000_000
_WATERMARKS = "high_watermark"


def fact(event: Event) -> Fact:
    body = _own(event)
    match event.kind:
        case "segment_closed":
            return Fact(event.kind, body["base_offset"], body["end_offset"], body["size_bytes"])
        case "segment_deleted_local":
            kind = "swapped" if body["segment_removal"].value == "swapped" else event.kind
            return Fact(kind, body["base_offset"], body["end_offset"], body["size_bytes"])
        case "log_start_advanced":
            return Fact(event.kind, body["old_start"], body["new_start"])
        case "truncated":
            return Fact(event.kind, body["old_end"], body["new_end"])
        case "epoch_started":
            return Fact(event.kind, body["epoch"], body["start_offset"])
        case "replica_started":
            return Fact(event.kind, body["appearance"].value)
        case "replica_removed":
            return Fact(event.kind, body["replica_removal"].value)
        case "log_baseline":
            return Fact(event.kind, body["occasion"].value)
        case "directory_offline":
            return Fact(event.kind, body["path"])
    return Fact(event.kind)


def _own(event: Event) -> dict[str, Any]:
    return {
        name: getattr(event, name) for each in type(event).__mro__ for name in getattr(each, "__slots__", ())
    }


class Watched:
    """A disk, its observer with its folder, and what that one said."""

    def __init__(self, root: Path, *, has_remote: Callable[[str], bool | None] = lambda _: False) -> None:
        self.root, self.has_remote = root, has_remote
        self.said: list[Event] = []
        self.disk = Disk(root / "host", peek=lambda: None)
        self.now_ms = START_MS
        self.ids = count()
        (root / "agent").mkdir()
        self.observer = self.begin()

    def emit_many(self, events: Sequence[Event]) -> None:
        self.said += events

    def begin(self) -> Observer:
        surveyor = Surveyor(self.disk.paths, topics=TopicFilter(), now_ns=time.time_ns)
        return Observer(
            survey=surveyor.survey,
            sink=self,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"e{next(self.ids)}",
            folder=self.root / "agent",
            has_remote=self.has_remote,
            reads=ModelReads(),
            kept_every_ms=0,
        )

    def look(self) -> None:
        self.now_ms += STEP_MS
        self.observer.run_once()

    def restart(self) -> None:
        self.observer.close()
        self.observer = self.begin()

    def facts(self) -> Counter[Fact]:
        """What was said since the last call. Watermarks and periodic baselines come in their own time."""
        found = Counter(
            fact(each) for each in self.said if each.kind != _WATERMARKS and fact(each).a != "periodic"
        )
        self.said.clear()
        return found


class Broker(RuleBasedStateMachine):
    """After each act, two looks say what it was; looks in its middle, and a restart, add nothing to it."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.watched = Watched(Path(self.folder.name))
        self.disk = self.watched.disk
        self.ordinals: dict[tuple[object, object], int] = {}
        self.watched.look()
        self._numbered()
        assert self.watched.facts() == Counter(
            [Fact("replica_started", "first_seen"), Fact("log_baseline", "onboarding")]
        )

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.watched.observer.close()
            self.folder.cleanup()

    def expect(self, act: Callable[[], list[Fact]], way: str) -> None:
        """`way`: looked at only afterwards, also in the middle, or by an observer that was down meanwhile."""
        seen_ms = self.watched.now_ms
        often = act == self.disk.move or way == "peeks"
        looks = iter(range(9 if often else 1 if way == "peek" else 0))
        self.disk.peek = lambda: None if next(looks, None) is None else self.watched.look()
        expected = Counter(act())
        if way == "down":
            self.watched.restart()
            has_baseline = any(each.kind == "log_baseline" for each in expected)
            if self.disk.is_here and not has_baseline:
                expected[Fact("log_baseline", "started")] += 1
        self.watched.look()
        self.watched.look()
        for each in self.watched.said:
            not_before_ms = getattr(each, "not_before_ms", None)
            assert not_before_ms is not None
            assert not_before_ms <= seen_ms or act == self.disk.move, each  # two looks found that under way
            assert each.occurred_at_ms > max(seen_ms, not_before_ms)
        self._numbered()
        assert self.watched.facts() == expected
        self.watched.look()
        assert self.watched.facts() == Counter()

    def _numbered(self) -> None:
        for each in self.watched.said:
            life = (getattr(each, "directory_id", None), getattr(each, "replica_incarnation", None))
            if life[1] is not None:
                ordinal = getattr(each, "ordinal")  # noqa: B009 of replica events
                assert ordinal == self.ordinals.get(life, 0)
                self.ordinals[life] = ordinal + 1

    ways = st.sampled_from(("after", "peek", "down"))
    few = st.integers(1, 4)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways, count=few)
    def roll(self, way: str, count: int) -> None:
        self.expect(lambda: self.disk.roll(count), way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways, count=few)
    def append(self, way: str, count: int) -> None:
        self.expect(lambda: self.disk.append(count), way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways)
    def commit(self, way: str) -> None:
        self.expect(self.disk.commit, way)

    @precondition(lambda self: self.disk.is_here and not self.disk.has_hole and len(self.disk.bases) > 1)
    @rule(way=ways, count=few)
    def expire(self, way: str, count: int) -> None:
        self.expect(lambda: self.disk.expire(count), way)

    @precondition(
        lambda self: self.disk.is_here and not self.disk.has_hole and self.disk.end > self.disk.bases[-1]
    )
    @rule(way=ways)
    def expire_all(self, way: str) -> None:
        self.expect(self.disk.expire_all, way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways)
    def purge(self, way: str) -> None:
        self.expect(self.disk.purge, way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways, part=st.floats(0, 1))
    def delete_records(self, way: str, part: float) -> None:
        to = int(self.disk.start + part * (self.disk.end - self.disk.start))
        self.expect(lambda: self.disk.delete_records(to), way)

    @precondition(lambda self: self.disk.is_here and not self.disk.is_compacted and not self.disk.has_hole)
    @rule(way=ways, back=st.integers(1, 8))
    def truncate(self, way: str, back: int) -> None:
        to = self.disk.end - back
        if to >= self.disk.start:
            self.expect(lambda: self.disk.truncate(to), way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways)
    def elect(self, way: str) -> None:
        epochs = self.disk.epochs
        if not epochs or epochs[-1][1] < self.disk.end:
            self.expect(lambda: self.disk.elect(epochs[-1][0] + 1 if epochs else 0), way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways, on=st.integers(-8, 30))
    def empty(self, way: str, on: int) -> None:
        to = self.disk.end + on
        if to > self.disk.end or (0 <= to <= self.disk.bases[-1] and to not in self.disk.bases):
            way = "peeks" if way == "peek" and len(self.disk.bases) < 3 else way
            self.expect(lambda: self.disk.empty(to), way)

    @precondition(lambda self: self.disk.is_here and not self.disk.has_hole and len(self.disk.closed()) > 1)
    @rule(way=ways, pick=st.integers(0, 9))
    def compact(self, way: str, pick: int) -> None:
        way = "peeks" if way == "peek" else way
        self.expect(lambda: self.disk.compact(pick % (len(self.disk.closed()) - 1)), way)

    @precondition(
        lambda self: self.disk.is_here and not self.disk.is_compacted and len(self.disk.closed()) > 2
    )
    @rule(way=ways, pick=st.integers(0, 9))
    def lose_a_middle_one(self, way: str, pick: int) -> None:
        if not self.disk.has_hole:
            self.expect(lambda: self.disk.lose_a_middle_one(1 + pick % (len(self.disk.closed()) - 2)), way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways)
    def unassign(self, way: str) -> None:
        self.expect(self.disk.unassign, way)

    @precondition(lambda self: self.disk.at is None and not self.disk.unmounted)
    @rule(way=ways, to=st.integers(0, 1))
    def assign(self, way: str, to: int) -> None:
        self.expect(lambda: self.disk.assign(to), way)

    @precondition(lambda self: self.disk.is_here)
    @rule(way=ways)
    def recreate(self, way: str) -> None:
        self.expect(self.disk.recreate, way)

    @precondition(lambda self: self.disk.is_here and not self.disk.unmounted and not self.disk.has_hole)
    @rule()
    def move(self) -> None:
        self.expect(self.disk.move, "peek")

    @precondition(lambda self: not self.disk.unmounted)
    @rule(way=ways, which=st.integers(0, 1))
    def unmount(self, way: str, which: int) -> None:
        self.expect(lambda: self.disk.unmount(which), way)

    @precondition(lambda self: bool(self.disk.unmounted))
    @rule(way=ways)
    def mount(self, way: str) -> None:
        [which] = self.disk.unmounted
        self.expect(lambda: self.disk.mount(which), way)


TestBroker = Broker.TestCase
TestBroker.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
