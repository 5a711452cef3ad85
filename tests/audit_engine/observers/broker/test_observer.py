"""A broker's starts as its log dirs tell them: each once, and clean only where that was seen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from audit_engine.observers.broker.holder import LOCK, MARK, Sight, look
from audit_engine.observers.broker.observer import FILE_NAME, SURE_MS, Observer
from audit_engine.observers.errors import SourceSilent
from rules.events import BrokerStarted, Event, EvidenceGap
from tiering.cluster.interface import BrokerIdentity

STEP_MS = 5_000
HOLD = """
import fcntl, os, sys
held = [os.open(path, os.O_RDWR | os.O_CREAT) for path in sys.argv[1:]]
for each in held:
    fcntl.lockf(each, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Watched:
    """An observer over sights that a test sets, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_ms, self.ids = 1_000_000, count()
        self.sight = Sight("a", False)
        self.said: list[Event] = []
        self.emit: Callable[[Sequence[Event]], None] = self.said.extend
        self.begin()

    def begin(self) -> None:
        self.observer = Observer(
            look=lambda: self.sight,
            broker=BrokerIdentity(cluster_id="c", broker_id=1),
            sink=self,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"e{next(self.ids)}",
            folder=self.folder,
        )

    def emit_many(self, events: Sequence[Event]) -> None:
        self.emit(events)

    def see(self, holder: str | None, is_marked: bool | None, *, after_ms: int = STEP_MS) -> list[Event]:
        self.now_ms += after_ms
        self.sight = Sight(holder, is_marked)
        self.said.clear()
        self.observer.run_once()
        return list(self.said)

    def restart(self) -> None:
        self.observer.close()
        self.begin()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """It has seen the broker run."""
    found = Watched(tmp_path)
    [first] = found.see("a", False)
    assert isinstance(first, BrokerStarted)
    assert (first.is_clean, first.not_before_ms) == (None, None)
    return found


@pytest.mark.parametrize(
    ("sights", "is_clean"),
    [
        ([(None, True), ("b", False)], True),  # down in order
        ([(None, False), ("b", False)], False),  # killed
        ([(None, None), ("b", False)], None),  # a log dir could not be looked into
        ([("b", False)], None),  # between two looks, and the marks had gone
        ([("b", True)], True),  # between two looks, and the marks are still there
        ([(None, False), (None, True), ("b", False)], True),  # it was in the middle of its stop
    ],
)
def test_a_start_is_said_once_and_clean_as_far_as_it_was_seen(
    watched: Watched, sights: list[tuple[str | None, bool | None]], is_clean: bool | None
) -> None:
    """With the interval since the last look; a look that finds the same says nothing."""
    said = [event for sight in sights for event in watched.see(*sight)]

    [started] = said
    assert isinstance(started, BrokerStarted)
    assert (started.is_clean, started.broker_id) == (is_clean, 1)
    assert started.occurred_at_ms - (started.not_before_ms or 0) == STEP_MS
    assert watched.see("b", False) == []


def test_a_start_while_nobody_looked_is_said_by_the_next_run(watched: Watched) -> None:
    """Down in order and up long after, it may have started twice; down by a kill, it has started unclean."""
    for is_marked, is_clean in ((True, None), (False, False)):
        watched.see(None, is_marked)
        seen_ms = watched.now_ms
        watched.restart()
        [started] = watched.see(f"later-{is_marked}", False, after_ms=SURE_MS + 1)
        assert isinstance(started, BrokerStarted)
        assert (started.is_clean, started.not_before_ms) == (is_clean, seen_ms)


def test_what_a_killed_run_had_not_got_out_is_said_by_the_next_unchanged(watched: Watched) -> None:
    """The same event with the same id."""
    out: list[Event] = []

    def die(events: Sequence[Event]) -> None:
        out.extend(events)
        raise SystemExit

    watched.emit = die
    with pytest.raises(SystemExit):
        watched.see("b", False)
    watched.emit = watched.said.extend
    watched.restart()

    assert watched.see("b", False) == out
    assert watched.see("b", False) == []


def test_a_memory_that_cannot_be_read_is_evidence(watched: Watched) -> None:
    """What happened before it is not known, and said not to be."""
    watched.observer.close()
    (watched.folder / FILE_NAME).write_bytes(b"no database" * 400)
    watched.begin()

    gap, started = watched.see("a", False)

    assert isinstance(gap, EvidenceGap)
    assert isinstance(started, BrokerStarted)
    assert started.not_before_ms is None


@contextmanager
def held(*locks: Path) -> Iterator[None]:
    """Another process holds these, as a broker does."""
    arguments = [sys.executable, "-c", HOLD, *map(str, locks)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.kill()


def test_the_holder_of_a_lock_is_told_and_keeps_it(tmp_path: Path) -> None:
    """Another process is another holder, the lock is only asked for, and marks count when all are there."""
    dirs = [tmp_path / "one", tmp_path / "two"]
    with pytest.raises(SourceSilent, match="could not be looked into"):
        look(dirs)
    for each in dirs:
        each.mkdir()
        (each / "meta.properties").touch()
    assert look(dirs) == Sight(None, False)
    with held(*(each / LOCK for each in dirs)):
        first = look(dirs)
        assert first == look(dirs)
        assert first.holder is not None
    assert look(dirs).holder is None
    with held(*(each / LOCK for each in dirs)):
        second = look(dirs)
        assert second.holder not in (None, first.holder)
    (dirs[0] / MARK).touch()
    assert look(dirs).is_marked is False
    (dirs[1] / MARK).touch()
    assert look(dirs).is_marked is True
    (dirs[1] / "meta.properties").unlink()
    assert look(dirs).is_marked is None
