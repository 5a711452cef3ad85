"""`seawall hold list`: what is held, and by which of the three. Changes nothing."""

from __future__ import annotations

import json

import typer

from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.cli.options import Bootstrap, Json, load_settings
from seawall.cli.tier.options import TopicName


def list(  # noqa: A001  the verb's name
    context: typer.Context,
    topic: TopicName = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show every hold that stands: on what, by whom, since when, and what it binds.

    A hold binds Seawall's agents, object versions by the bucket's legal hold, and Kafka's own retention where
    the policy says hold_kafka: each has a column. Below stands why one of them is not in force.

    Exits with 0 if no hold stands, or all that was asked for is in force; with 3 if something is not.
    """
    settings = load_settings(context, bootstrap=bootstrap).settings
    from seawall.cli.hold.view import CANNOT, print_holds, warn, whys
    from seawall.cli.hold.view import as_json as json_of
    from seawall.holds.opened import opened

    with opened(settings, warn) as found:
        standing = [each for each in found.holds.standing() if topic in (None, each.place.topic)]
    if as_json:
        typer.echo(json.dumps({"holds": [json_of(each) for each in standing]}, indent=2))
    elif not standing:
        typer.echo("no hold stands")
    else:
        print_holds(standing)
        typer.echo()
        for line in whys(standing):
            typer.echo(line)
        typer.echo(CANNOT)
    is_partial = any(
        not each.is_in_force or (each.versions is not None and each.versions.trouble is not None)
        for each in standing
    )
    raise typer.Exit(PARTIAL if is_partial else CLEAN)
