"""What the replay verbs share: the flag, how a comparison is said, and what it comes to as an exit code."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from workers.proof import Compared, Divergence, Step

IsCompared = Annotated[
    bool, typer.Option("--compare", help="Also against what lives by it here; without, twice by itself.")
]
SHOWN_CHARS = 400


def say(what: str, found: Compared) -> None:
    if isinstance(found, Divergence):
        typer.echo(f"{what}: FIRST DIVERGENT EVENT {found.at}")
        typer.echo(f"  one:   {_shown(found.first)}")
        typer.echo(f"  other: {_shown(found.second)}")
    else:
        typer.echo(f"{what}: equal, {found.steps} steps, {found.hash}")


def as_json(found: Compared) -> dict[str, Any]:
    if isinstance(found, Divergence):
        pair = {"first": found.first and found.first.says, "second": found.second and found.second.says}
        return {"equal": False, "at": found.at, "step": found.number, **pair}
    return {"equal": True, "steps": found.steps, "hash": found.hash}


def exit_code(*compared: Compared, is_live_known: bool | None = None) -> int:
    """`is_live_known`: None where nobody asked; False where there was nothing to compare with."""
    if any(isinstance(each, Divergence) for each in compared):
        return FINDINGS
    if not any(each.steps for each in compared if not isinstance(each, Divergence)):
        return INDETERMINATE
    return PARTIAL if is_live_known is False else CLEAN


def _shown(step: Step | None) -> str:
    if step is None:
        return "nothing: it had come to its end"
    return step.says if len(step.says) <= SHOWN_CHARS else f"{step.says[: SHOWN_CHARS - 1]}…"
