"""The agent's log: one line an event, JSON for machines, text on a terminal, to standard error.

Owns the set-up of structlog, and that what libraries say through `logging` comes out in the same form. Every
line of ours names what it is about: log, range, segment, and how it stands. Secrets are no part of it:
settings are never logged.
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
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if is_json
        else [structlog.dev.ConsoleRenderer()]
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logger() -> Any:
    """A logger, bound when it is first used."""
    return structlog.get_logger("seawall.agent")
