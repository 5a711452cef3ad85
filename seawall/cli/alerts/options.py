"""The options that the verbs of alerts share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.errors import NoSuchEndpoint
from seawall.alerts.delivery import Alerts
from seawall.cli.options import load_settings
from seawall.settings import Settings

StateDir: TypeAlias = Annotated[
    str | None,
    typer.Option("--state-dir", metavar="FOLDER", help="The record of alerts, for alerts.state_dir."),
]
ForSeconds: TypeAlias = Annotated[
    int | None,
    typer.Option("--for", min=0, metavar="SECONDS", help="Try again for so long, for alerts.deliver_s."),
]


def alert_settings(context: typer.Context, state_dir: str | None, for_s: int | None = None) -> Settings:
    more = {
        "alerts.state_dir": ("--state-dir", state_dir),
        "alerts.deliver_s": ("--for", None if for_s is None else str(for_s)),
    }
    return load_settings(context, more=more).settings


def endpoint_named(alerts: Alerts, name: str) -> Endpoint:
    """Raises NoSuchEndpoint."""
    found = next((each for each in alerts.endpoints if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in alerts.endpoints) or "none"
        raise NoSuchEndpoint(name=name, known=known)
    return found
