"""Puts the verbs together and turns whatever ends a run into an exit code.

The edge of the program: the only place that catches a StatedError to print it, and the only one that catches
everything, because a defect of ours must not look like one of the codes that a script relies on.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from seawall.cli import doctor, log, settings
from seawall.cli.exit_codes import DEFECT, PIPE_CLOSED, SYSTEM
from seawall.cli.options import Invocation
from tiering.errors import StatedError


class _PipeClosed(Exception):
    """Whoever read our output stopped reading."""


class _Root(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Typer would exit with 1, which here means findings.
            if _stdout_is_open():
                raise
            raise _PipeClosed from None


app = typer.Typer(
    name="seawall",
    cls=_Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # `main` below says what went wrong
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Settings: flags, then SEAWALL_* variables, then seawall.toml. Exit codes: docs/EXIT_CODES.md.",
)
app.command()(doctor.doctor)
app.add_typer(log.app)
app.command()(settings.settings)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"seawall {version('seawall')}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    settings_file: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="Settings file, instead of ./seawall.toml."),
    ] = None,
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Tiered storage and a durability audit for Apache Kafka: what was lost, and can we get it back?"""
    context.obj = Invocation(settings_file=settings_file)


def main() -> None:
    """The console script."""
    sys.exit(_run())


def _run() -> int:
    try:
        status = _status()
        sys.stdout.flush()
    except (_PipeClosed, BrokenPipeError):
        # What is still buffered has nowhere to go; Python would complain about it while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return status


def _status() -> int:
    try:
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except StatedError as error:
        typer.echo(f"seawall: {error}", err=True)
        return error.exit_code
    except (_PipeClosed, BrokenPipeError):
        raise
    except OSError as refused:
        typer.echo(f"seawall: the operating system refused: {refused}", err=True)
        return SYSTEM
    except Exception as error:  # noqa: BLE001 the edge of the program: see the module's docstring
        traceback.print_exc()
        typer.echo(
            f"seawall: this is a defect of Seawall, not of what it looked at: {type(error).__name__}.\n"
            "Please report it with the lines above.",
            err=True,
        )
        return DEFECT
    return 0


def _stdout_is_open() -> bool:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    return True
