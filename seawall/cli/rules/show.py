"""`seawall rules show`: one rule's data."""

from __future__ import annotations

import json

import typer
from rich.text import Text

from rules.catalogue.page import DEPLOYMENT_WORDS, GRACE_WORDS, SORT_WORDS, severity_words
from seawall.cli.console import print_table
from seawall.cli.options import Json
from seawall.cli.rules.named import RuleId, as_json_object, named


def show(rule_id: RuleId, as_json: Json = False) -> None:
    """Show a rule as data: severity, grace, evidence, where it applies, how its findings end."""
    each = named(rule_id)
    if as_json:
        typer.echo(json.dumps(as_json_object(each), indent=2))
        return
    typer.echo(f"{each.id}: {each.invariant}\n")
    print_table(
        ("", ""),
        [
            (Text("severity"), Text(severity_words(each))),
            (Text("grace"), Text(GRACE_WORDS[each.grace])),
            (Text("applies to"), Text("; ".join(DEPLOYMENT_WORDS[one] for one in each.applies))),
            (Text("evidence"), Text(", ".join(each.evidence))),
            (Text("judged by"), Text(each.judged_by)),
            (Text("closes"), Text(SORT_WORDS[each.sort])),
            (Text("remedy"), Text(each.remedy)),
            (Text("page"), Text(each.page)),
        ],
    )
