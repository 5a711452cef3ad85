"""`seawall backup report`: whether a report of a restore is as it was written, and by whom."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from backup.report import checked
from seawall.cli.backup.options import BACKUP, StateDir
from seawall.cli.exit_codes import CLEAN
from seawall.cli.options import Json


def report(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="What apply, restore-logdir or restore-topic wrote with --report."
        ),
    ],
    sign_with: Annotated[
        Path | None, typer.Option("--sign-with", metavar="FILE", help="The secret that it was signed with.")
    ] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Check a report of a restore against its signature.

    Exits with 0 if it is unaltered and signed with this key, 64 if not.
    """
    from seawall.backup.keys import report_key
    from seawall.tier.scrub import state_folder

    content = file.read_bytes()
    members = checked(content, None, str(file))
    folder = state_folder(state_dir, members["cluster_id"], os.environ, BACKUP)
    checked(content, report_key(sign_with, folder), str(file))
    if as_json:
        typer.echo(json.dumps(members, indent=1))
    else:
        ranges = " ".join(f"[{start}, {end})" for start, end in members["ranges"])
        log = f"{members['topic']}-{members['partition']}"
        typer.echo(f"{log}: {ranges} restored by {members['principal']}, plan {members['plan']}")
        typer.echo("the signature is good")
    raise typer.Exit(CLEAN)
