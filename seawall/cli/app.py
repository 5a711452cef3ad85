"""Puts the verbs together and turns whatever ends a run into an exit code.

The edge of the program: the only place that catches a StatedError to print it, and the only one that catches
everything, because a defect of ours must not look like one of the codes that a script relies on.
"""

from __future__ import annotations

import os
import select
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from seawall import collecting
from seawall.cli.console import StdoutClosed
from seawall.cli.exit_codes import DEFECT, PIPE_CLOSED, SYSTEM
from seawall.cli.invocation import Invocation
from seawall.cli.lazy import LazyGroup
from seawall.traces import tracing
from seawall.version import version
from tiering.errors import StatedError

VERBS: Mapping[str, str] = {
    "demo": "seawall.cli.demo",
    "init": "seawall.cli.init",
    "doctor": "seawall.cli.doctor",
    "settings": "seawall.cli.settings",
    "log": "seawall.cli.log",
    "policy": "seawall.cli.policy",
    "agent": "seawall.cli.agent",
    "read": "seawall.cli.read",
    "tier": "seawall.cli.tier",
    "backup": "seawall.cli.backup",
    "top": "seawall.cli.top",
    "serve": "seawall.cli.serve",
    "events": "seawall.cli.events",
    "rules": "seawall.cli.rules",
    "audit": "seawall.cli.audit",
    "spark": "seawall.cli.spark",
    "scaler": "seawall.cli.scaler",
    "alerts": "seawall.cli.alerts",
    "hold": "seawall.cli.hold",
    "authorise": "seawall.cli.authorise",
    "remediate": "seawall.cli.remediate",
    "replay": "seawall.cli.replay",
}


class _OtherPipeClosed(Exception):
    """Some other pipe or socket broke, which is a failure like any other of the system's."""


class _Root(LazyGroup):
    verbs = VERBS

    def make_context(self, *arguments: Any, **named: Any) -> Any:  # where --help is printed
        with _broken_pipes_told_apart():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        with _broken_pipes_told_apart():
            return super().invoke(ctx)


@contextmanager
def _broken_pipes_told_apart() -> Iterator[None]:
    """Keep a broken pipe from Typer, which would exit with 1: here that means findings."""
    try:
        yield
    except BrokenPipeError as broken:
        raise (_OtherPipeClosed if _stdout_is_open() else StdoutClosed) from broken


app = typer.Typer(
    name="seawall",
    cls=_Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # `main` below says what went wrong
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Settings: flags, then SEAWALL_* variables, then seawall.toml. Exit codes: docs/EXIT_CODES.md.",
)


def _print_version(is_asked: bool) -> None:
    if not is_asked:
        return
    typer.echo(f"seawall {version() or '(not installed: run from its source)'}")
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
    collecting.end_at_once()
    sys.exit(_run())


def _run() -> int:
    try:
        status = _status()
        sys.stdout.flush()
    except (StdoutClosed, BrokenPipeError):
        # What is still buffered has nowhere to go; Python would complain about it while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return status


def _status() -> int:
    try:
        with tracing(lambda line: typer.echo(f"seawall: {line}", err=True)):
            app(prog_name="seawall")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except StatedError as error:
        typer.echo(f"seawall: {error}", err=True)
        return error.exit_code
    except StdoutClosed:
        raise
    except (OSError, _OtherPipeClosed) as refused:
        typer.echo(f"seawall: the operating system refused: {refused.__cause__ or refused}", err=True)
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
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file, as in a test
        return True
    poll = select.poll()
    poll.register(descriptor, 0)  # no event is asked for: only errors and hang-ups are reported
    return not poll.poll(0)
