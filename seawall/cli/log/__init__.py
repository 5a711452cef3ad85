"""`seawall log`: look at the files that a broker keeps, without a broker."""

from __future__ import annotations

import typer

from seawall.cli.log.dump import dump
from seawall.cli.log.verify import verify

app = typer.Typer(
    name="log",
    help="Print or verify Kafka's files on disk: segments, indexes, snapshots, checkpoints. Read-only.",
    no_args_is_help=True,
)
app.command()(verify)
app.command()(dump)
