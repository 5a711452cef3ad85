"""A loop outlives whatever its turns run into, and says so."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from seawall.agent.health import STUCK_AFTER_MS, Health
from seawall.agent.loops import Loop, LoopContext
from seawall.agent.metrics import Tally
from seawall.local.waiting import wait_until
from tiering.cluster.errors import ClusterUnreachable


class Said:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **said: Any) -> None:
        self.lines.append((event, said))


@pytest.fixture
def context() -> LoopContext:
    """An agent's, that nobody has stopped."""
    return LoopContext(health=Health(now_ms=lambda: 1_000), tally=Tally(), log=Said(), stop=Event())


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (ClusterUnreachable(bootstrap="b:1", why="nobody answers"), "nobody answers"),
        (MemoryError("no room"), "MemoryError('no room')"),
        (KeyError("orders"), "KeyError('orders')"),
    ],
)
def test_loop_outlives_its_turns(context: LoopContext, trouble: Exception, why: str) -> None:
    """T7: an error of ours, a defect, or memory that ran out ends one turn; it is a doubt, a count and a line
    until a turn goes well."""
    turns: list[int] = []
    may_go_well = Event()

    def act() -> None:
        turns.append(1)
        if not may_go_well.is_set():
            raise trouble

    with Loop("expiry", act, context, every_s=0.001):
        wait_until(lambda: len(turns) > 2, name="loop", wanted="turns", deadline_s=10)
        assert why in context.health.doubts()["expiry"]
        may_go_well.set()
        wait_until(lambda: not context.health.doubts(), name="loop", wanted="no doubt", deadline_s=10)

    assert context.tally.copy()[2][type(trouble).__name__] >= 2
    event, said = context.log.lines[0]
    assert (event, said["error"]) == ("expiry_failed", type(trouble).__name__)
    assert ("exc_info" in said) is not isinstance(trouble, ClusterUnreachable)


def test_a_loop_that_pauses_for_long_is_not_called_stuck_for_it(context: LoopContext) -> None:
    """One that comes round every hour is late only after that hour, and after what any turn may take."""
    turned = Event()
    with Loop("trim", turned.set, context, every_s=3_600, first_s=0):
        assert turned.wait(10)
        wait_until(lambda: bool(context.health._beats), name="loop", wanted="its beat", deadline_s=10)
        within = Health(now_ms=lambda: 1_000 + 3_600_000 + STUCK_AFTER_MS)
        beyond = Health(now_ms=lambda: 1_001 + 3_600_000 + STUCK_AFTER_MS)
        within._beats = beyond._beats = context.health._beats
        assert within.stuck() == {}
        assert "trim" in beyond.stuck()


def test_pauses_are_left_to_chance_as_far_as_they_may_be(context: LoopContext) -> None:
    """The first turn at once, then pauses between a fifth shorter and a fifth longer."""
    asked: list[tuple[float, float]] = []
    turned = Event()

    def chance(least: float, most: float) -> float:
        asked.append((least, most))
        return least

    with Loop("observe", turned.set, context, every_s=3600, first_s=0, jitter=0.2, chance=chance):
        assert turned.wait(10)
        wait_until(lambda: bool(asked), name="loop", wanted="its pause", deadline_s=10)

    assert asked == [(0.8, 1.2)]


def test_stopped_loop_is_not_called_stuck(context: LoopContext) -> None:
    """A loop that was asked to end leaves no beat behind that would grow old."""
    beaten = Event()
    with Loop("snapshot", beaten.set, context, every_s=0.001):
        assert beaten.wait(10)

    late = Health(now_ms=lambda: 10**12)
    late._beats = context.health._beats
    assert late.stuck() == {}
