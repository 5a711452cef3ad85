"""`seawall events show`: one kind's meaning, its fields, an example."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from seawall.cli.console import print_table
from seawall.cli.options import Json
from seawall.events.described import described, fields_of, named
from seawall.events.examples import example_bytes
from seawall.events.page import about, form, words


def show(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="As `seawall events list` names it.")],
    as_json: Json = False,
) -> None:
    """Show what a kind of event means, its fields, and an example as it lies in the topic."""
    found = named(kind)
    if found is None:
        raise typer.BadParameter(f"{kind!r} is no kind; see: seawall events list", param_hint="KIND")
    shown, every = described(found), fields_of(found)
    example: dict[str, Any] = json.loads(example_bytes(found))
    if as_json:
        rows = [
            {
                "name": each.name,
                "type": each.type_name,
                "may_be_null": each.is_optional,
                "values": [value for value, _ in each.values],
            }
            for each in every
        ]
        told = {"kind": kind, "about": about(shown.shape), "said_when": shown.said_when, "words": shown.words}
        typer.echo(json.dumps({**told, "fields": rows, "example": example}, indent=2))
        return
    typer.echo(f"{kind}: {shown.said_when}.\nAbout {about(shown.shape)}.\n\n{shown.words}\n")
    print_table(
        ("field", "type", ""), [(Text(each.name), Text(form(each)), Text(words(each))) for each in every]
    )
    typer.echo(f"\nAn example, as it lies in the topic:\n\n{json.dumps(example, indent=2)}")
