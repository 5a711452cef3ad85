"""What the verbs of `seawall policy` share: an argument, and how a declared change is named."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from rules.policy.timeline import Applied

PolicyFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The policy, such as policy.toml."),
]


def named(applied: Applied) -> str:
    change = applied.change
    at = datetime.fromtimestamp(change.occurred_at_ms / 1000, tz=timezone.utc)
    return f"{change.change_id} of {change.principal}, {at:%Y-%m-%d %H:%M:%S} UTC, offset {applied.offset}"


def as_json(applied: Applied | None) -> dict[str, Any] | None:
    if applied is None:
        return None
    change = applied.change
    return {
        "offset": applied.offset,
        "event_id": change.event_id,
        "change_id": change.change_id,
        "principal": change.principal,
        "occurred_at_ms": change.occurred_at_ms,
        "policy_hash": applied.policy.content_hash,
    }
