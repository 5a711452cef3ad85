"""What the verbs of `seawall tier` share: an argument, and how numbers are said."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

TopicName: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[TOPIC]", help="One topic; without it, all that are tiered.")
]

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
NOTHING = "-"


def size(size_bytes: int | None) -> str:
    """Bytes for people."""
    if size_bytes is None:
        return NOTHING
    shown, unit = float(size_bytes), 0
    while shown >= 1024 and unit < len(UNITS) - 1:
        shown, unit = shown / 1024, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{shown:.1f} {UNITS[unit]}"


def number(value: int | None) -> str:
    return NOTHING if value is None else str(value)
