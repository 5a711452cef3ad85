"""The agent's log is one form, whoever speaks."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from seawall.agent import logs


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """What a set-up log says; afterwards logging is as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    logs.set_up(as_json=True, stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def _lines(said: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in said.getvalue().splitlines()]


def test_ours_and_a_librarys_lines_are_of_one_form(said: io.StringIO) -> None:
    """Each is one object with event, level and time; ours keeps its fields, an error its traceback."""
    logs.logger().info("copy_finished", log="orders-0", base_offset=7)
    logging.getLogger("some.library").warning("reading %s begins anew", "__seawall_audit")
    try:
        raise KeyError("orders")
    except KeyError as error:
        logs.logger().warning("log_failed", exc_info=error)

    ours, library, failed = _lines(said)
    assert (ours["event"], ours["level"], ours["base_offset"]) == ("copy_finished", "info", 7)
    assert (library["event"], library["level"]) == ("reading __seawall_audit begins anew", "warning")
    assert "KeyError: 'orders'" in str(failed["exception"])
    assert all(str(line["timestamp"]).endswith("Z") for line in (ours, library, failed))


def test_what_is_for_a_debugger_is_not_said(said: io.StringIO) -> None:
    """Neither ours nor botocore's request by request."""
    logs.logger().debug("looked")
    logging.getLogger("botocore.endpoint").info("a request")

    assert _lines(said) == []
