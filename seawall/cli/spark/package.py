"""`seawall spark package`: one folder with all that spark-submit takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.exit_codes import CLEAN
from seawall.cli.options import Json


def package(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where it goes; one made before is replaced.")
    ],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="URL", help="Where you will put it, such as s3://bucket/seawall."),
    ] = None,
    is_from_here: Annotated[
        bool,
        typer.Option(
            "--from-here",
            help="Copy the packages from this Python, which needs no network; else pip does it.",
        ),
    ] = False,
    requirements: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The pinned packages; by default requirements/user.txt beside us."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make what spark-submit and EMR Serverless take, and print the commands that submit it.

    In DIR: entry.py, environment.tar.gz with every package as pinned, jars/, SHA256SUMS. The cluster brings
    Spark 4.1 and, on each host, the Python version that this was called with.

    Exits with 0 if it was made.
    """
    from seawall.spark_package import archive, site, submit

    pins = requirements or site.PINS

    def fill(into: Path) -> None:
        if is_from_here:
            site.copy_installed(pins, into)
        else:
            site.install(pins, into)
        site.copy_seawall(into)

    archive.make(folder, fill)
    place = (at or str(folder.absolute())).rstrip("/")
    jars = sorted(each.name for each in (folder / archive.JARS).iterdir())
    if as_json:
        told = {
            "folder": str(folder),
            "files": {
                str(each.relative_to(folder)): each.stat().st_size for each in archive.files_of(folder)
            },
            "standalone": submit.standalone(place, jars),
            "yarn": submit.yarn(place, jars),
            "emr_serverless": submit.emr_serverless(place, jars),
            "submit_parameters": submit.emr_parameters(place, jars),
        }
        typer.echo(json.dumps(told, indent=2))
    else:
        size_mib = sum(each.stat().st_size for each in archive.files_of(folder)) / 1024 / 1024
        typer.echo(
            f"{folder}: {archive.ENTRY}, {archive.ENVIRONMENT} and {len(jars)} jars, {size_mib:.0f} MiB"
        )
        typer.echo(submit.text(place, jars))
    raise typer.Exit(CLEAN)
