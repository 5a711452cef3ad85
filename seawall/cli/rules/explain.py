"""`seawall rules explain`: why a rule is there, an example, what to do."""

from __future__ import annotations

import json

import typer

from rules.catalogue.page import SORT_WORDS, explained, severity_words
from seawall.cli.options import Json
from seawall.cli.rules.named import RuleId, as_json_object, named


def explain(rule_id: RuleId, as_json: Json = False) -> None:
    """Explain a rule: what must hold and why, an example of a fault, and what to do about one."""
    each = named(rule_id)
    if as_json:
        told = {**as_json_object(each), "why": each.why, "example": each.example}
        typer.echo(json.dumps(told, indent=2))
        return
    typer.echo(f"{each.id} ({severity_words(each)})\n\n{each.invariant}\n\n{SORT_WORDS[each.sort]}")
    for heading, words in explained(each):
        typer.echo(f"\n{heading}: {words}")
