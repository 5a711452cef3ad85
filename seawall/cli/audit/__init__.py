"""`seawall audit`: one module a verb. Evidence into its tables; nothing here judges it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from seawall.cli.lazy import LazyGroup


class _Audit(LazyGroup):
    verbs: ClassVar[Mapping[str, str]] = {
        "ingest": "seawall.cli.audit.ingest",
        "quarantine": "seawall.cli.audit.quarantine",
    }


audit = typer.Typer(
    cls=_Audit,
    help="Keep the evidence of what happened to each log, in Delta tables: docs/INGEST.md.",
    short_help="Keep the evidence of what happened to each log.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@audit.callback()
def _audit() -> None:
    pass
