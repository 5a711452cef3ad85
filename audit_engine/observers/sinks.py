"""Where an observer's events go, many at once: a first sight is of thousands, and each sync is a disk's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rules.events import Event

TOGETHER = 1_000  # so many events go at once


class EventsSink(Protocol):
    """Takes events, all kept when it returns. Those of a call that raised are emitted again, as they were."""

    def emit_many(self, events: Sequence[Event]) -> None: ...
