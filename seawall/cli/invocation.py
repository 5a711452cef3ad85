"""What is said before the verb, apart from what verbs need to act on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """`typer.Context.obj` of every verb."""

    settings_file: Path | None
