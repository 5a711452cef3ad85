"""`seawall doctor`: what Seawall stands on, one line each, with the remedy for what is not in order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

import typer
from rich.text import Text

from seawall.cli.console import stdout_console
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Region, load_settings
from seawall.doctor.finding import Finding, Status

STYLES = {
    Status.OK: "green",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
    Status.UNKNOWN: "magenta",
    Status.SKIPPED: "dim",
}
STATUS_WIDTH = max(len(status.value) for status in Status) + 2
SUBJECT_WIDTH = 22


def doctor(
    context: typer.Context,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Check what Seawall needs to run.

    Looks at Python, Java, jars, disk, brokers, bucket and credentials, and says what to do about each.

    Exits with 0 if nothing failed, 1 if something did, 4 if something could not be looked at. What is not
    configured is said and skipped.
    """
    from seawall.doctor.rounds import examine  # the clients it imports would slow every other verb's start

    loaded = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, endpoint_url=endpoint_url, region=region
    )
    console = stdout_console()
    seen = []
    for finding in examine(loaded.settings):
        seen.append(finding)
        if not as_json:
            console.print(_line(finding))  # as soon as it is known: a broker that is down takes seconds
    if as_json:
        typer.echo(
            json.dumps([asdict(finding) | {"status": finding.status.value} for finding in seen], indent=2)
        )
    raise typer.Exit(exit_code(finding.status for finding in seen))


def exit_code(statuses: Iterable[Status]) -> int:
    found = set(statuses)
    if Status.FAIL in found:
        return FINDINGS
    return INDETERMINATE if Status.UNKNOWN in found or not found else CLEAN


def _line(finding: Finding) -> Text:
    line = Text()
    line.append(f"{finding.status.value:<{STATUS_WIDTH}}", style=STYLES[finding.status])
    line.append(f"{finding.subject:<{SUBJECT_WIDTH}}")
    line.append(finding.detail)
    if finding.remedy:
        line.append(f"\n{'':<{STATUS_WIDTH + SUBJECT_WIDTH}}{finding.remedy}", style="bold")
    return line
