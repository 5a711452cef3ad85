"""`seawall rules list`: every rule, how bad it is, how a finding of it ends, what must hold."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.text import Text

from rules.catalogue import RULES, Deployment, rule_set_hash
from seawall.cli.console import print_table
from seawall.cli.options import Json
from seawall.cli.rules.named import as_json_object


def list_rules(
    tiered_by: Annotated[
        Deployment | None,
        typer.Option("--tiered-by", help="Only those that apply to logs of this deployment."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the rules, with their severity, how their findings end, and what must hold."""
    shown = [each for each in RULES if tiered_by is None or tiered_by in each.applies]
    if as_json:
        told = {"rule_set": rule_set_hash(), "rules": [as_json_object(each) for each in shown]}
        typer.echo(json.dumps(told, indent=2))
        return
    print_table(
        ("rule", "severity", "closes", "the invariant"),
        [
            (
                Text(each.id),
                Text(each.severity.value + (" (C)" if each.rises_when else "")),
                Text(each.sort.value),
                Text(each.invariant),
            )
            for each in shown
        ],
    )
    typer.echo(f"\nRule set {rule_set_hash()}")


list = list_rules  # noqa: A001 the verb's name, by which LazyGroup finds it
