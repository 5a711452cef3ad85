"""The observer of the policy's changes: each one that came into force is told, key by key, in their order.

Every agent tells all of them: a declaration is about patterns, and about logs that no host has yet. The
events follow from the records of `__seawall_policy` alone, so that what many agents tell is told once.

Owns how far it has told. Refuses to judge which changes count: that is `rules.policy.timeline`'s.

Invariant: each change is told at least once, whatever kills this process, and always in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from audit_engine.observers.kept import Kept
from audit_engine.observers.telling import TellingObserver
from rules.events import Event
from rules.policy.events import policy_declared
from rules.policy.timeline import Applied

FILE_NAME = "policy-observer.sqlite"
_TOLD = "told"


@dataclass(slots=True, kw_only=True)
class Observer(TellingObserver):
    """`changes` gives every change that came into force, in order; it raises where that is not known."""

    changes: Callable[[], Sequence[Applied]]
    cluster_id: str
    change_count: int = field(default=0, init=False)
    _memory: Kept = field(init=False)
    _told: str | None = field(default=None, init=False)  # the last change's event id
    _is_loaded: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._memory = Kept(self.folder / FILE_NAME, owner=f"policy of {self.cluster_id}")

    def run_once(self) -> int:
        """Read, keep, emit; how many events came of it."""
        applied = self.changes()
        if not self._is_loaded:
            self._load()
        self._emit()
        events = tuple(self._news(applied))
        if applied and applied[-1].change.event_id != self._told:
            self._memory.keep({_TOLD: applied[-1].change.event_id}, events=events)
            self._told, self._pending = applied[-1].change.event_id, events
        self.change_count = len(applied)
        self._emit()
        return len(events)

    def _news(self, applied: Sequence[Applied]) -> list[Event]:
        """Behind the last that was told; if that is there no more, all of it once more."""
        ids = [each.change.event_id for each in applied]
        first = ids.index(self._told) + 1 if self._told in ids else 0
        pairs = zip([None, *applied], applied, strict=False)
        return [event for before, each in [*pairs][first:] for event in policy_declared(before, each)]

    def _load(self) -> None:
        """Of a memory that was lost nothing is missed: all is told again, in the same words."""
        values, self._pending, _ = self._memory.load(self.now_ms())
        self._told = values.get(_TOLD)
        self._is_loaded = True
