"""`seawall audit report`: a run as one HTML file that people can read. Read-only but for that file."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.audit.options import TablesAt, tables_at, tables_settings
from seawall.cli.audit.run import exit_code
from seawall.cli.exit_codes import INDETERMINATE
from seawall.cli.options import EndpointUrl, Region
from seawall.files import replace_whole

REPAIRS = "remediate"  # the verb that repairs a finding, in a Seawall that has it


def report(
    context: typer.Context,
    run: Annotated[
        int | None, typer.Option("--run", min=1, metavar="RUN", help="That run, instead of the last.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write here; - is standard output. Default: seawall-run-RUN.html."),
    ] = None,
    is_opened: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    tables: TablesAt = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Write a run as a page: one HTML file, which needs no network and nothing beside it.

    The verdict, what cannot be told, what changed, each incident with its evidence as a picture and with
    what to do, coverage, past runs, and every log. The file is replaced whole, or left as it was.

    Exits with the run's code: 0 if every log passes, 1 if one violates a rule, 4 if one cannot be told; and
    with 4 if no run was ever finished: then nothing is written.
    """
    if is_opened and _is_stdout(out):
        raise typer.BadParameter("standard output cannot be opened in a browser", param_hint="--open")
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    from audit_engine.report.page import page
    from audit_engine.report.spark import gather
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session

    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        gathered = gather(spark, root, run)
    if gathered is None:
        typer.echo("no run was ever finished: there is nothing to report", err=True)
        raise typer.Exit(INDETERMINATE)
    text = page(gathered, repair_verb=_repair_verb())
    number, verdict = gathered.run["run"], gathered.run["verdict"]
    file = Path(f"seawall-run-{number}.html") if out is None else out
    if _is_stdout(out):
        sys.stdout.write(text)
    else:
        replace_whole(file, text)
        typer.echo(f"{file}: run {number}, {verdict}")
    if is_opened:
        webbrowser.open(file.absolute().as_uri())
    raise typer.Exit(exit_code(verdict))


def _is_stdout(out: Path | None) -> bool:
    return out is not None and str(out) == "-"


def _repair_verb() -> tuple[str, ...] | None:
    """The page names no command that this Seawall does not have."""
    from seawall.cli.app import VERBS

    return ("seawall", REPAIRS) if REPAIRS in VERBS else None
