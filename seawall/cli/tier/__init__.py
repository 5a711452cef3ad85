"""`seawall tier`: what is in the tier, what lies about in it, and whether the bucket alone tells the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from seawall.cli.lazy import LazyGroup


class _Tier(LazyGroup):
    verbs: ClassVar[Mapping[str, str]] = {
        "status": "seawall.cli.tier.status",
        "orphans": "seawall.cli.tier.orphans",
        "rebuild": "seawall.cli.tier.rebuild",
    }


tier = typer.Typer(
    cls=_Tier,
    help="Look at what is tiered, and clean up what uploads left behind: docs/TIERING.md.",
    short_help="Look at what is tiered, and clean up what uploads left behind.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@tier.callback()
def _tier() -> None:
    pass
