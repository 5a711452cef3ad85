"""`seawall backup check`: is the bucket such that what is removed can be had back?"""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.text import Text

from backup.plan.make import KEEP_DAYS
from seawall.cli.backup.options import settings_of
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region
from seawall.doctor.finding import Finding, Status

STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def check(
    context: typer.Context,
    window_days: Annotated[
        int | None,
        typer.Option(min=1, help="Instead of the longest backup window that the policy in force declares."),
    ] = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Check that the bucket keeps what the backup window promises.

    Versioning, object lock, the lifecycle against the declared window, public access, and whether these
    credentials may list and read versions and write. Each gap comes with its remedy. Nothing is changed.

    Exits with 0; with 1 if something is wrong; with 4 if something could not be told.
    """
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.backup.bucket.s3 import look
    from seawall.backup.opened import opened

    with opened(settings) as world:
        windows = [KEEP_DAYS]
        for topic in sorted({name for log in world.table.logs() if (name := world.table.label(log))}):
            declared = world.policy(topic)
            windows += [] if declared is None else [declared.backup_window_days]
        under = world.layout.cluster_prefix(world.cluster_id)
    days = window_days or max(windows)
    found = list(look(settings.s3, under, days))
    if as_json:
        typer.echo(
            json.dumps({"window_days": days, "findings": [_as_json(each) for each in found]}, indent=2)
        )
    else:
        _print(found)
    raise typer.Exit(_exit_code(found))


def _exit_code(found: list[Finding]) -> int:
    if any(each.status in (Status.FAIL, Status.WARN) for each in found):
        return FINDINGS
    return INDETERMINATE if any(each.status is Status.UNKNOWN for each in found) else CLEAN


def _print(found: list[Finding]) -> None:
    rows = [
        (Text(each.status.value, style=STYLES.get(each.status, "dim")), Text(each.subject), Text(each.detail))
        for each in found
    ]
    print_table(("", "what", "found"), rows)
    for each in found:
        if each.remedy is not None and each.status is not Status.OK:
            typer.echo(f"{each.subject}: {each.remedy}")


def _as_json(each: Finding) -> dict[str, str | None]:
    return {
        "subject": each.subject,
        "status": each.status.value,
        "detail": each.detail,
        "remedy": each.remedy,
    }
