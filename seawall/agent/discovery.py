"""When to look at the log dirs again: at a file event, and at the latest when the rescan is due.

Owns the agent's watch on its log dirs, and the word on what is not watched: there only rescans find a closed
segment. Refuses to take an event for more than a hint, or its absence for anything.

Invariant: without any event a look is due every `rescan_s`, whatever the kernel refused or lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tiering.cluster.file_events import FileEvents, Look, Lookout
from tiering.cluster.host import HostSurvey


class Discovery:
    """Ended by the stack. `wait` is for one thread; who surveys is for the caller to keep in turn."""

    def __init__(
        self, *, rescan_s: float, wait_s: Callable[[float], object], log: Any, stack: ExitStack
    ) -> None:
        self._log = log
        self._told: frozenset[Path] = frozenset()
        self._events: FileEvents | None = None
        try:
            self._events = FileEvents()
            stack.callback(self._events.close)
        except OSError as refused:
            log.warning("no_file_events", why=str(refused), then="rescans only")
        self._lookout = Lookout(
            self._events, monotonic_s=time.monotonic, wait_s=wait_s, rescan_s=float(rescan_s)
        )

    def wait(self, timeout_s: float) -> Look:
        """Wait for a reason to look, for so long at most."""
        return self._lookout.wait(timeout_s)

    def surveyed(self, found: HostSurvey) -> None:
        """Follow the directories that a survey saw; say which cannot be, when there are others."""
        if self._events is None:
            return
        refused = self._events.follow(
            [each.path for each in found.log_dirs], [each.path for each in found.live.values()]
        )
        paths = frozenset(each.path for each in refused)
        if paths - self._told:
            first = refused[0]
            self._log.warning(
                "not_watched", directories=len(paths), first=str(first.path), why=first.reason, then="rescans"
            )
        self._told = paths
