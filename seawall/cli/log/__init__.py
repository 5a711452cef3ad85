"""`seawall log`: look at the files that a broker keeps, without a broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from seawall.cli.lazy import LazyGroup


class _Log(LazyGroup):
    verbs: ClassVar[Mapping[str, str]] = {
        "verify": "seawall.cli.log.verify",
        "dump": "seawall.cli.log.dump",
    }


log = typer.Typer(
    cls=_Log,
    help="Print or verify Kafka's files on disk: segments, indexes, snapshots, checkpoints. Read-only.",
    short_help="Print or verify Kafka's files on disk.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@log.callback()
def _log() -> None:
    pass
