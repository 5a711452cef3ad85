"""The options that the verbs of the audit share."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, TypeAlias

import typer

from seawall.cli.options import load_settings
from seawall.connections import NotSet
from seawall.settings import Settings

TablesAt: TypeAlias = Annotated[
    str | None,
    typer.Option("--tables", metavar="PLACE", help="A folder or s3a://bucket/prefix, for audit.tables."),
]

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Say what there is to do, and write nothing.")
]
IsOnlyDriver: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--single-driver-i-accept",
        help="Nobody else writes these tables: for a store on which a second writer could cover a commit.",
    ),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Work on this Spark cluster, such as spark://host:7077, whose workers have Seawall at the same"
        " path; others take `seawall spark package`.",
    ),
]


def today() -> str:
    """The day of a commit made now."""
    return datetime.now(timezone.utc).date().isoformat()


def tables_settings(
    context: typer.Context, *, tables: str | None, endpoint_url: str | None, region: str | None
) -> Settings:
    """The settings of a verb that works on the tables, with its flags on top."""
    loaded = load_settings(
        context, endpoint_url=endpoint_url, region=region, more={"audit.tables": ("--tables", tables)}
    )
    return loaded.settings


def tables_at(settings: Settings) -> str:
    if settings.audit.tables is None:
        raise NotSet(
            setting="audit.tables",
            what="place for the evidence",
            variable="SEAWALL_AUDIT__TABLES",
            flag="--tables PLACE",
        )
    return settings.audit.tables
