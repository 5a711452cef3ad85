"""One structured line per thing worth knowing: JSON on the logger `workers.consumer`, or a port of yours."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

# The name of what happened, and its facts.
Tell = Callable[..., None]

_LOGGER = logging.getLogger("workers.consumer")
_WARNINGS = frozenset(
    {
        "stalled",
        "restarting",
        "commit_failed",
        "handlers_still_running",
        "dead_letter_failed",
        "revoked_unfinished",
    }
)


def as_json(event: str, **facts: object) -> None:
    """The default: warnings for what somebody should look at, else info."""
    level = logging.WARNING if event in _WARNINGS else logging.INFO
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, json.dumps({"event": event, **facts}, default=str))
