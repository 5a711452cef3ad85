"""`seawall audit check-statement`: statements in a file against their signature."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.exit_codes import CLEAN


def check_statement(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `seawall audit statement --sign-with` printed.")
    ],
    signed_with: Annotated[
        Path,
        typer.Option("--signed-with", metavar="FILE", help="The whsec_... secret that it was signed with."),
    ],
) -> None:
    """Check that statements are as they were signed, and by somebody who has the secret.

    It asks nobody: neither tables nor a cluster are needed.

    Exits with 0 if so, and with 78 if not.
    """
    from seawall.audit.signed import checked
    from seawall.backup.keys import key_in

    for each in checked(file.read_bytes(), key_in(signed_with), str(file)):
        name = f"{each.get('topic')}-{each.get('partition')}"
        typer.echo(
            f"{name}: {each.get('verdict')}, by run {each.get('run')}; hash {each.get('statement_hash')}"
        )
    raise typer.Exit(CLEAN)
