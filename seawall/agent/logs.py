"""The agent's log: one line an event, JSON for machines, text on a terminal, to standard error.

Owns the set-up of structlog. Every line names what it is about: log, range, segment, and how it stands.
Secrets are no part of it: settings are never logged.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

import structlog


def set_up(*, as_json: bool | None = None, stream: TextIO | None = None) -> None:
    """`as_json`: None is JSON unless a person watches."""
    stream = stream or sys.stderr
    is_json = not stream.isatty() if as_json is None else as_json
    last: Any = structlog.processors.JSONRenderer() if is_json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([structlog.processors.format_exc_info] if is_json else []),
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )


def logger() -> Any:
    """A logger, bound when it is first used."""
    return structlog.get_logger()
