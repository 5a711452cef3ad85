"""The observer of one broker's starts: one look, compared with the one before, kept, said.

    down, then held           it started: clean if each log dir had the mark when it was down
    held by another           it started between two looks: clean if the marks are still there, else not known
    held, and nothing before  it is seen for the first time

Owns the order of looking, keeping and emitting. Refuses to run twice at once: one thread calls `run_once`.

Invariant: each start that was seen is said once, with the look before it, whatever kills this process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from audit_engine.observers.broker.holder import Sight
from audit_engine.observers.kept import Kept
from audit_engine.observers.telling import TellingObserver
from rules.events import BrokerStarted, Event, Source
from tiering.cluster.interface import BrokerIdentity

FILE_NAME = "broker-observer.sqlite"
KEPT_EVERY_MS = 60_000  # a look that found nothing new costs no write
SURE_MS = 60_000  # a broker that was down in order, and is up so long after, may have started twice
_LOOK = "look"


class Known(NamedTuple):
    """The last look."""

    at_ms: int
    holder: str | None
    is_marked: bool | None


@dataclass(slots=True, kw_only=True)
class Observer(TellingObserver):
    """`look` is `holder.look` of the broker's log dirs."""

    look: Callable[[], Sight]
    broker: BrokerIdentity
    is_running: bool = field(default=False, init=False)
    _memory: Kept = field(init=False)
    _known: Known | None = None
    _kept: Known | None = None
    _is_loaded: bool = False

    def __post_init__(self) -> None:
        owner = f"broker {self.broker.broker_id} of {self.broker.cluster_id}"
        self._memory = Kept(self.folder / FILE_NAME, owner=owner)

    def run_once(self) -> int:
        """Look, compare, keep, emit; how many events came of it. Raises SourceSilent."""
        sight = self.look()
        if not self._is_loaded:
            self._load()
        self._emit()
        before = self._known
        at_ms = self.now_ms() if before is None else max(self.now_ms(), before.at_ms)
        events: tuple[Event, ...] = ()
        if sight.holder is not None and (before is None or before.holder != sight.holder):
            events = (self._started(before, sight, at_ms),)
        self._keep(Known(at_ms, *sight), events)
        self.is_running = sight.holder is not None
        self._emit()
        return len(events)

    def _started(self, before: Known | None, sight: Sight, at_ms: int) -> BrokerStarted:
        return BrokerStarted(
            event_id=self.new_id(),
            occurred_at_ms=at_ms,
            cluster_id=self.broker.cluster_id,
            broker_id=self.broker.broker_id,
            is_clean=None if before is None else is_clean(before, sight, at_ms),
            not_before_ms=None if before is None else before.at_ms,
        )

    def _keep(self, known: Known, events: tuple[Event, ...]) -> None:
        kept = self._kept
        if events or kept is None or kept[1:] != known[1:] or known.at_ms - kept.at_ms >= KEPT_EVERY_MS:
            self._memory.keep({_LOOK: known}, events=events)
            self._kept = known
        self._known, self._pending = known, events

    def _load(self) -> None:
        values, pending, damage = self._memory.load(self.now_ms())
        self._known = self._kept = Known(*values[_LOOK]) if _LOOK in values else None
        self._pending = (
            pending
            if damage is None
            else (self._memory_lost(Source.LOG_DIR, self.broker.cluster_id, damage),)
        )
        self._is_loaded = True


def is_clean(before: Known, now: Sight, at_ms: int) -> bool | None:
    """Whether the broker that holds the log dirs now had ended in order before; None: it was not seen."""
    if now.is_marked:
        return True  # it is at its beginning, and has not taken the marks away yet
    if before.holder is not None:
        return None
    is_recent = at_ms - before.at_ms <= SURE_MS
    return before.is_marked if is_recent or before.is_marked is False else None
