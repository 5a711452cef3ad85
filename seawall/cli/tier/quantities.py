"""Options that are amounts of bytes or lengths of time, checked before any server is asked."""

from __future__ import annotations

from collections.abc import Callable

import typer

from rules.policy.quantities import read_bytes, read_time


def amount(given: str | None) -> str | None:
    """Bytes, as a number."""
    return None if given is None else str(_at_least_one(read_bytes, given))


def length(given: str | None) -> str | None:
    """Milliseconds, as a number."""
    return None if given is None else str(_at_least_one(read_time, given))


def _at_least_one(read: Callable[[object], int], given: str) -> int:
    try:
        value = read(int(given) if given.isdigit() else given)
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}") from refused
    if value < 1:
        raise typer.BadParameter("must be more than nothing")
    return value
