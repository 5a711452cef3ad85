"""Where the agent's events go: to its log, to its counters, and to whatever keeps them.

Invariant: `emit` and `emit_many` return when the keeper has the events; a keeper that fails is heard, never
passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from rules.events import Event, LogEvent
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
        "broker_started",
        "truncated",
        "directory_offline",
        "evidence_gap",
    }
)
# One for each record of the metadata topic, or for each replica at every start or election: for programs.
_QUIET = frozenset(
    {
        "tier_state",
        "tier_set",
        "log_baseline",
        "high_watermark",
        "replica_started",
        "leader_changed",
        "isr_changed",
    }
)
_LONG = frozenset({"objects", "segments"})


class Keeper(Protocol):
    """Keeps events about anything: the spool."""

    def emit_many(self, events: Sequence[Event]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSink:
    """Keeps events, then tells them."""

    keeper: Keeper
    tally: Tally
    log: Any  # a structlog logger

    def emit(self, event: Event) -> None:
        self.emit_many([event])

    def emit_many(self, events: Sequence[Event]) -> None:
        """All of them, kept at once: thousands cost no more than one."""
        self.keeper.emit_many(events)
        for event in events:
            self.tally.event(event.kind)
            if not _is_quiet(event):
                tell = self.log.warning if event.kind in _LOUD else self.log.info
                tell(event.kind, **_said(event))


def _is_quiet(event: Event) -> bool:
    """What is no news: how things stand when they are first looked at, of thousands of topics."""
    is_first = getattr(event, "is_coalesced", False) or getattr(event, "is_first_sight", False)
    return event.kind in _QUIET or is_first


def _said(event: Event) -> dict[str, Any]:
    said: dict[str, Any] = {}
    left_out = _LONG
    if isinstance(event, LogEvent):
        said["log"] = _name(event.topic, event.log)
        left_out = _LONG | {"log", "topic"}
    for each in fields(event):
        value = getattr(event, each.name)
        if each.name not in left_out:
            said[each.name] = getattr(value, "value", value)
    return said


def _name(topic: str, log: LogId) -> str:
    return f"{topic}-{log.partition} ({log.topic_id})"
