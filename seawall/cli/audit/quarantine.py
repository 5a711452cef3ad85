"""`seawall audit quarantine list`: what could not be taken for an event, and what was lost. Read-only."""

from __future__ import annotations

import base64
import json
from typing import Annotated, Any

import typer
from rich.text import Text

from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS
from seawall.cli.options import EndpointUrl, Json, Region, load_settings

LIMIT = 100
HEADER = ("day", "topic", "partition", "offsets", "reason", "bytes", "detail")

quarantine = typer.Typer(
    help="Look at what could not be taken for an event.", no_args_is_help=True, rich_markup_mode=None
)


@quarantine.callback()
def _quarantine() -> None:
    pass


@quarantine.command("list")
def list_quarantine(
    context: typer.Context,
    tables: TablesAt = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many, the newest.")] = LIMIT,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Show records that are no events, with position and reason, and offsets that retention took.

    With --json, keys and values are there in full, as base64.

    Exits with 0 if there are none, 1 if there are.
    """
    settings = load_settings(
        context, endpoint_url=endpoint_url, region=region, more={"audit.tables": ("--tables", tables)}
    ).settings
    from audit_engine.tables.place import root_of
    from audit_engine.tables.spark import quarantine_rows
    from seawall.audit.spark import session

    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        rows = quarantine_rows(spark, root, limit=limit)
    if as_json:
        typer.echo(json.dumps([_as_json(row) for row in rows], indent=2))
    elif rows:
        print_table(HEADER, [_cells(row) for row in rows])
    else:
        typer.echo("nothing is in quarantine")
    raise typer.Exit(FINDINGS if rows else CLEAN)


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    shown = dict(row) | {"ingest_day": row["ingest_day"].isoformat()}
    for name in ("key", "value"):
        shown[name] = None if row[name] is None else base64.b64encode(row[name]).decode("ascii")
    return shown


def _cells(row: dict[str, Any]) -> tuple[Text, ...]:
    size = "" if row["value"] is None else str(len(row["value"]))
    return (
        Text(row["ingest_day"].isoformat()),
        Text(row["kafka_topic"]),
        Text(str(row["kafka_partition"])),
        Text(f"[{row['kafka_offset']}, {row['kafka_end_offset']})"),
        Text(row["reason"]),
        Text(size),
        Text(row["detail"]),
    )
