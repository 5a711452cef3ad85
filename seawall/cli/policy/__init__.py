"""`seawall policy`: what was declared for which topics, beside what brokers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from seawall.cli.lazy import LazyGroup


class _Policy(LazyGroup):
    verbs: ClassVar[Mapping[str, str]] = {
        "check": "seawall.cli.policy.check",
        "show": "seawall.cli.policy.show",
        "apply": "seawall.cli.policy.apply",
    }


policy = typer.Typer(
    cls=_Policy,
    help="Declare how long data is kept, and what may destroy it: docs/POLICY.md.",
    short_help="Declare how long data is kept, and what may destroy it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@policy.callback()
def _policy() -> None:
    pass
