"""`seawall top`: the fleet, live."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from math import inf
from typing import Annotated

import typer

from seawall.cli.console import print_table, stdout_console
from seawall.cli.exit_codes import FINDINGS, INDETERMINATE
from seawall.cli.options import Json, load_settings

TIMEOUT_S = 5.0


def top(
    context: typer.Context,
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLACE]...",
            help="host:port, a URL, or a file of `seawall audit metrics`. Default: this host's agent.",
        ),
    ] = None,
    every_s: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.5, help="How often to look.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="One look, as tables.")] = False,
    as_json: Json = False,
) -> None:
    """Watch the fleet in the terminal: who answers, what is behind.

    What the audit said stands above. Reads /metrics of agents and scalers, and asks no broker and no bucket.
    --once and --json take one look, and exit with 4 where somebody did not answer, 1 where a log wants
    somebody.

    Examples:

    seawall top broker-1:9317 broker-2:9317 broker-3:9317 /var/lib/node_exporter/textfile/seawall_audit.prom
    """
    from seawall.top.cells import LOGS, PLACES, headline, log_cells, place_cells
    from seawall.top.fleet import fleet
    from seawall.top.scrape import scrape_all

    asked = places or [load_settings(context).settings.agent.listen]
    look = partial(scrape_all, asked, timeout_s=TIMEOUT_S)
    if not (once or as_json):
        from seawall.top.errors import TopNotInstalled

        try:
            from seawall.top.screen import Top
        except ImportError as missing:
            raise TopNotInstalled(missing=missing.name or "textual") from missing
        Top(look, every_s=every_s).run()
        return
    seen = fleet(look())
    if as_json:
        told = asdict(seen)
        for row in told["logs"]:
            if row["retention_in_s"] == inf:  # never, which JSON cannot say
                row["retention_in_s"] = None
        if seen.audit is not None:
            told["audit"]["findings"] = [
                {"rule": rule, "severity": severity, "is": state, "count": count}
                for (rule, severity, state), count in seen.audit.findings.items()
            ]
        typer.echo(json.dumps(told, indent=2))
    else:
        stdout_console().print(headline(seen))
        print_table(PLACES, [place_cells(each) for each in seen.places])
        if seen.logs:
            print_table(LOGS, [log_cells(each) for each in seen.logs])
    if any(each.trouble for each in seen.places):
        raise typer.Exit(INDETERMINATE)
    if any(each.is_bad for each in seen.logs):
        raise typer.Exit(FINDINGS)
