"""`seawall events list`: every kind, what it is about, when it is said."""

from __future__ import annotations

import json

import typer
from rich.text import Text

from rules.events import KINDS
from seawall.cli.console import print_table
from seawall.cli.options import Json
from seawall.events.described import described
from seawall.events.page import about


def list_kinds(as_json: Json = False) -> None:
    """List the kinds of events, with what each is about and when it is said."""
    shown = [described(kind) for kind in KINDS]
    if as_json:
        rows = [
            {"kind": each.name, "about": about(each.shape), "said_when": each.said_when} for each in shown
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    print_table(
        ("kind", "about", "said when"),
        [(Text(each.name), Text(about(each.shape)), Text(each.said_when)) for each in shown],
    )


list = list_kinds  # noqa: A001 the verb's name, by which LazyGroup finds it
