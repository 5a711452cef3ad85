"""Where the agent's events go: to its log, to its counters, and to whatever keeps them.

Invariant: `emit` returns when the keeper has the event; a keeper that fails is heard, never passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from rules.events import EventSink, LogEvent
from rules.identity import LogId
from seawall.agent.metrics import Tally

_LOUD = frozenset(
    {
        "segment_rejected",
        "copy_failed",
        "upload_stalled",
        "retention_warning",
        "gap_recorded",
        "record_refused",
    }
)
_QUIET = frozenset({"tier_state", "tier_set"})  # one for each record of the topic: for programs


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSink:
    """Keeps an event, then tells it."""

    keeper: EventSink
    tally: Tally
    log: Any  # a structlog logger

    def emit(self, event: LogEvent) -> None:
        self.keeper.emit(event)
        self.tally.event(event.kind)
        if event.kind in _QUIET:
            return
        tell = self.log.warning if event.kind in _LOUD else self.log.info
        tell(event.kind, **_said(event))


def _said(event: LogEvent) -> dict[str, Any]:
    said: dict[str, Any] = {"log": _name(event.topic, event.log)}
    for each in fields(event):
        value = getattr(event, each.name)
        if each.name not in ("log", "topic", "objects", "segments"):
            said[each.name] = getattr(value, "value", value)
    return said


def _name(topic: str, log: LogId) -> str:
    return f"{topic}-{log.partition} ({log.topic_id})"
