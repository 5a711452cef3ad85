"""What observers that keep a look before they tell of it have in common.

Owns the way out: what was found waits, and is told again as it was if the sink refuses. Refuses to say that
something is out before all of it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from audit_engine.observers.sinks import TOGETHER, EventsSink
from rules.events import Event, EvidenceGap, Source

MEMORY_LOST = "memory_lost"


class Remembers(Protocol):
    """An observer's memory, in which events wait until they are out."""

    def emitted(self) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class TellingObserver:
    """`folder` is the agent's own. Without a memory yet, nothing has been looked at."""

    sink: EventsSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    folder: Path
    _memory: Remembers | None = field(init=False, default=None)
    _pending: tuple[Event, ...] = field(init=False, default=())  # kept, and not known to be out

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    def _emit(self) -> None:
        """What is not out yet. Events whose emit raised are emitted again next time, with all behind them."""
        while self._pending:
            self.sink.emit_many(self._pending[:TOGETHER])
            self._pending = self._pending[TOGETHER:]
        if self._memory is not None:
            self._memory.emitted()

    def _memory_lost(self, source: Source, cluster_id: str, why: str) -> EvidenceGap:
        event_id, at_ms = self.new_id(), self.now_ms()
        return gap_of(source, MEMORY_LOST, why, cluster_id=cluster_id, event_id=event_id, at_ms=at_ms)


def gap_of(
    source: Source,
    problem: str,
    detail: str,
    *,
    cluster_id: str,
    event_id: str,
    at_ms: int,
    since_ms: int | None = None,
    missed: tuple[int | None, int | None] = (None, None),
) -> EvidenceGap:
    """A gap that is of no single log. `missed`: the range of the source's own offsets."""
    return EvidenceGap(
        event_id=event_id,
        occurred_at_ms=at_ms,
        cluster_id=cluster_id,
        topic_id=None,
        topic=None,
        partition=None,
        source=source,
        problem=problem,
        detail=detail,
        gap_start=missed[0],
        gap_end=missed[1],
        not_before_ms=since_ms,
    )
