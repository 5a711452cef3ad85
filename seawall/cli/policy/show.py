"""`seawall policy show`: what is in force, and for a topic which table each value comes from. Read-only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rules.policy import EMPTY, KEYS, Policy, TopicPolicy
from rules.policy.timeline import Applied
from seawall.cli.console import print_table
from seawall.cli.options import Bootstrap, Json, load_settings
from seawall.cli.policy import options
from seawall.policy.file import read_file
from seawall.policy.toml_text import as_toml

NONE_APPLIED = "no policy was ever applied to this cluster: only defaults hold"


def show(
    context: typer.Context,
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="A topic's name; it need not exist.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Show this file, not what is in force.",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show the policy in force, or what it comes to for a topic.

    Without a topic, prints the policy as a file that could be applied again; with one, each value and the
    tables that it comes from.
    """
    settings = load_settings(context, bootstrap=bootstrap).settings
    applied: Applied | None = None
    if file is not None:
        policy = read_file(file)
    else:
        from seawall.policy.change_log import in_force
        from seawall.policy.kafka import open_cluster

        timeline = open_cluster(settings).changes.read()
        applied = in_force(timeline)
        for passed in timeline.passed_over:
            why = f"{passed.reason.value}: {passed.detail}"
            typer.echo(f"seawall: the record at offset {passed.offset} does not count ({why})", err=True)
        policy = applied.policy if applied is not None else EMPTY
        if applied is None:
            typer.echo(f"seawall: {NONE_APPLIED}", err=True)
    if topic is None:
        _print_policy(policy, applied, as_json=as_json)
    else:
        _print_topic(policy.effective(topic), applied, as_json=as_json)


def _print_policy(policy: Policy, applied: Applied | None, *, as_json: bool) -> None:
    if as_json:
        shown = {"in_force": options.as_json(applied), "policy_hash": policy.content_hash, **policy.tree()}
        typer.echo(json.dumps(shown, indent=2))
        return
    if applied is not None:
        typer.echo(f"# {options.named(applied)}")
    if policy.tables:
        typer.echo(as_toml(policy), nl=False)


def _print_topic(policy: TopicPolicy, applied: Applied | None, *, as_json: bool) -> None:
    if as_json:
        shown = {"topic": policy.topic, "in_force": options.as_json(applied), "values": _values(policy)}
        typer.echo(json.dumps(shown, indent=2))
        return
    print_table(("key", "value", "from"), [_row(policy, key) for key in KEYS])


def _values(policy: TopicPolicy) -> dict[str, Any]:
    return {key: {"value": policy.plain(key), "from": policy.origins[key].patterns} for key in KEYS}


def _row(policy: TopicPolicy, key: str) -> tuple[Text, ...]:
    value, origin = getattr(policy, key), policy.origins[key]
    return (
        Text(key),
        Text(policy.spoken(key), style="dim" if value is None else ""),
        Text(str(origin), style="" if origin.patterns else "dim"),
    )
