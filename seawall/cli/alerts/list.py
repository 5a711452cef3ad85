"""`seawall alerts list`: what was told to whom, and what waits. Read-only."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Annotated, Any

import typer
from rich.text import Text

from rules.severities import SEVERITY_WORDS
from seawall.cli.alerts.options import StateDir, alert_settings
from seawall.cli.console import print_table
from seawall.cli.exit_codes import PARTIAL
from seawall.cli.options import Json


def list_alerts(
    context: typer.Context,
    is_open: Annotated[bool, typer.Option("--open", help="Only what waits, or was not taken.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 50,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List messages, the newest first, one line for each endpoint that they are for.

    Exits with 3 if something waits or was not taken, or an endpoint is disabled.
    """
    settings = alert_settings(context, state_dir)
    from audit_engine.alerts.record import Record
    from seawall.alerts.delivery import now_ms
    from seawall.alerts.delivery import state_dir as folder_of

    record = Record(folder_of(settings))
    try:
        listed = record.deliveries(is_open=is_open, limit=limit)
        states = {each.name: record.state(each.name, now_ms()) for each in settings.alerts.endpoints}
        is_whole = not record.deliveries(is_open=True, limit=1)
    finally:
        record.close()
    disabled = {name: state.disabled for name, state in states.items() if state.disabled is not None}
    if as_json:
        typer.echo(
            json.dumps({"messages": [_as_json(each) for each in listed], "disabled": disabled}, indent=2)
        )
    else:
        header = ("endpoint", "state", "attempts", "next", "severity", "message", "what", "last")
        print_table(header, [tuple(Text(cell) for cell in _cells(each)) for each in listed])
        for name, why in disabled.items():
            typer.echo(f"{name} is DISABLED ({why}): `seawall alerts test {name}` turns it on again")
    if disabled or not is_whole:
        raise typer.Exit(PARTIAL)


def _as_json(each: dict[str, Any]) -> dict[str, Any]:
    message = each["message"]
    return {
        **{name: each[name] for name in ("endpoint", "id", "state", "attempts", "taken_at_ms", "why")},
        "next_at_ms": each["not_before_ms"] or None,
        "incident": message.thread,
        "run": message.run,
        "said": message.state.value,
        "severity": message.severity,
        "summary": message.summary,
    }


def _cells(each: dict[str, Any]) -> tuple[str, ...]:
    message, next_ms = each["message"], each["not_before_ms"]
    at = datetime.fromtimestamp(next_ms / 1000, tz=timezone.utc).isoformat(timespec="seconds")
    return (
        each["endpoint"],
        each["state"],
        str(each["attempts"]),
        at.replace("+00:00", "Z") if next_ms else "",
        SEVERITY_WORDS[message.severity],
        each["id"],
        f"{message.state.value}: {message.summary}",
        each["why"] or "",
    )


list = list_alerts  # noqa: A001 the verb's name, by which LazyGroup finds it
