"""`seawall events`: what kinds of evidence there are, and what is said now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from seawall.cli.lazy import LazyGroup


class _Events(LazyGroup):
    verbs: ClassVar[Mapping[str, str]] = {
        "list": "seawall.cli.events.list",
        "show": "seawall.cli.events.show",
        "tail": "seawall.cli.events.tail",
    }


events = typer.Typer(
    cls=_Events,
    help="Look at the evidence: its kinds, and the events as they come. Read-only: docs/EVENTS.md.",
    short_help="Look at the evidence: its kinds, and the events as they come.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@events.callback()
def _events() -> None:
    pass
