"""`seawall audit quarantine list|replay`: what could not be taken for an event, and what was lost."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

from seawall.cli.audit.options import DryRun, IsOnlyDriver, TablesAt, tables_at, tables_settings, today
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS
from seawall.cli.options import EndpointUrl, Json, Region

LIMIT = 100
HEADER = ("day", "topic", "partition", "offsets", "reason", "bytes", "replayed", "detail")

quarantine = typer.Typer(
    help="Look at what could not be taken for an event, and take up what can be by now.",
    no_args_is_help=True,
    rich_markup_mode=None,
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

    Exits with 0 if there are none but such as were replayed since, 1 if there are.
    """
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
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
    raise typer.Exit(CLEAN if all(row["is_replayed"] for row in rows) else FINDINGS)


@quarantine.command("replay")
def replay_quarantine(
    context: typer.Context,
    is_dry_run: DryRun = False,
    tables: TablesAt = None,
    is_only_driver: IsOnlyDriver = False,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Append to audit_events what can be read by now: after an upgrade, or after a limit was raised.

    Each record once, however often this is run or killed; the quarantine keeps its rows. What retention took
    cannot be replayed.

    Exits with 0 if all records in quarantine can be read by now, 1 if some still cannot.
    """
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    from audit_engine.ingest.replay.spark import replay
    from audit_engine.tables.place import root_of
    from audit_engine.tables.spark import open_tables
    from seawall.audit.spark import session

    root = root_of(tables_at(settings))
    writes_alone = None if is_dry_run else is_only_driver
    with session(settings, root, is_only_driver=writes_alone) as (spark, _):
        done = replay(spark, open_tables(spark, root), day=today(), is_dry_run=is_dry_run)
    if as_json:
        typer.echo(json.dumps(asdict(done) | {"is_dry_run": is_dry_run}, indent=2))
    else:
        would = "would be " if is_dry_run else ""
        typer.echo(
            f"{done.looked_at} records in quarantine: {done.replayed} {would}replayed,"
            f" {done.replayed_before} replayed before, {done.unreadable} cannot be read"
        )
    raise typer.Exit(FINDINGS if done.unreadable else CLEAN)


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
        Text("yes" if row["is_replayed"] else ""),
        Text(row["detail"]),
    )
