"""`seawall audit maintain`: what the tables of evidence need from time to time."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from seawall.cli.audit.options import DryRun, IsOnlyDriver, Master, TablesAt, tables_at, tables_settings
from seawall.cli.exit_codes import CLEAN
from seawall.cli.options import EndpointUrl, Json, Region

if TYPE_CHECKING:
    from audit_engine.tables.maintenance import Upkeep


def maintain(
    context: typer.Context,
    is_dry_run: DryRun = False,
    tables: TablesAt = None,
    is_only_driver: IsOnlyDriver = False,
    master: Master = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Add new columns, make a closed day's many files few, remove what the declared windows let go.

    Once a day, and first after an upgrade. It may run beside an ingest, and be killed. No row of evidence is
    changed, and no window becomes shorter: files go 30 days after no version needs them, versions after 400
    days. Of what runs carry, the states go that no later run can go on from.

    Exits with 0 if the tables have what they need; with --dry-run, if it could be told.
    """
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    from audit_engine.run.spent.spark import remove_spent_states
    from audit_engine.tables.place import root_of
    from audit_engine.tables.results import STATE
    from seawall.audit.spark import session
    from seawall.audit.upkeep.spark import upkeep

    root = root_of(tables_at(settings))
    writes_alone = None if is_dry_run else is_only_driver
    with session(settings, root, is_only_driver=writes_alone, master=master) as (spark, _):
        done = upkeep(spark, root, is_dry_run=is_dry_run, say=lambda text: typer.echo(text, err=True))
        spent = remove_spent_states(spark, root, is_dry_run=is_dry_run)
    if as_json:
        told = [_as_json(before, after, is_dry_run) for before, after in done]
        if spent is not None:
            told.append({"table": STATE, "spent_states": spent, "is_dry_run": is_dry_run})
        typer.echo(json.dumps(told, indent=2))
    else:
        for before, after in done:
            _say(before, after, is_dry_run=is_dry_run)
        if spent is not None:
            would = "would remove" if is_dry_run else "removed"
            typer.echo(f"{STATE}: {would} {spent} states that no later run goes on from")
    raise typer.Exit(CLEAN)


def _as_json(before: Upkeep, after: Upkeep, is_dry_run: bool) -> dict[str, Any]:
    days = [
        {"day": was.day, "files": was.files, "size_bytes": was.size_bytes}
        | ({} if is_dry_run else {"files_now": now.files, "size_bytes_now": now.size_bytes})
        for was, now in zip(before.days, after.days, strict=True)
    ]
    return asdict(before) | {"days": days, "is_dry_run": is_dry_run}


def _say(before: Upkeep, after: Upkeep, *, is_dry_run: bool) -> None:
    would = "would " if is_dry_run else ""
    lines = []
    if before.columns:
        lines.append(f"{would}add {len(before.columns)} columns: {', '.join(before.columns)}")
    if before.properties:
        lines.append(
            f"{would}set {', '.join(f'{name} = {value}' for name, value in before.properties.items())}"
        )
    for was, now in zip(before.days, after.days, strict=True):
        into = f"make fewer: {was.files_wanted} wanted" if is_dry_run else f"now {now.files}"
        lines.append(f"{was.day}: {was.files} files of {was.size_bytes} bytes, {would}{into}")
    if before.unneeded_files:
        lines.append(f"{would}remove {before.unneeded_files} files or folders that no kept version needs")
    typer.echo(f"{before.table}: {'; '.join(lines) if lines else 'nothing to do'}")
