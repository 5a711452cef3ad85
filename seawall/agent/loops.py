"""Work that is done every so often, in a thread of its own, for as long as the agent lives.

Owns the thread, the pauses, and the edge where whatever goes wrong is told: in the log, in the counters, and
as a doubt by the loop's name. Nothing that goes wrong in a turn ends the loop (T7).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread
from types import TracebackType
from typing import Any

from seawall.agent.health import Health
from seawall.agent.metrics import Tally
from seawall.traces import span
from tiering.errors import StatedError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopContext:
    """What all loops of an agent share."""

    health: Health
    tally: Tally
    log: Any  # a structlog logger
    stop: Event


class Loop:
    """Begins with its making; ends when the agent stops, after the turn it is in.

    `first_s`: before the first turn, where that is another time. `jitter`: so much of a pause is left to
    chance, longer or shorter, so that the agents of a fleet do not all come at once.
    """

    def __init__(
        self,
        name: str,
        act: Callable[[], object],
        context: LoopContext,
        *,
        every_s: float,
        first_s: float | None = None,
        jitter: float = 0.0,
        chance: Callable[[float, float], float] = random.uniform,
    ) -> None:
        assert 0 <= jitter < 1, "a pause is no less than nothing"
        self._name = name
        self._act = act
        self._context = context
        self._every_s = every_s
        self._first_s = every_s if first_s is None else first_s
        self._jitter = jitter
        self._chance = chance
        self._thread = Thread(target=self._run, name=f"seawall-{name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Loop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause_s = self._first_s
        longest_pause_ms = int(self._every_s * (1 + self._jitter) * 1000)
        while not self._context.stop.wait(pause_s):
            self._context.health.beat(self._name, pause_ms=longest_pause_ms)
            turn(self._name, self._act, self._context)
            pause_s = self._every_s * self._chance(1 - self._jitter, 1 + self._jitter)
        self._context.health.ended(self._name)


def turn(name: str, act: Callable[[], object], context: LoopContext) -> None:
    """One turn of a loop, and the word on how it went."""
    try:
        with span(f"agent: {name}"):
            act()
    except Exception as trouble:  # noqa: BLE001 the edge of the loop: see the module's docstring
        is_stated = isinstance(trouble, StatedError)
        why = str(trouble) if is_stated else repr(trouble)
        context.tally.error(type(trouble).__name__)
        context.health.doubt(name, why)
        more = {} if is_stated else {"exc_info": trouble}
        context.log.warning(f"{name}_failed", error=type(trouble).__name__, why=why, **more)
    else:
        context.health.doubt(name, "")
