"""Groups of verbs that import a verb when it is called, or when help lists it.

A verb brings what it works with: boto3, pydantic, numpy. Together they take longer to import than most
verbs take to run, and a script calls one verb at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from seawall import collecting, traces
from tiering.errors import StatedError


class LazyGroup(TyperGroup):
    """`verbs` gives each verb's module, in the order of the help. Subclasses set it."""

    verbs: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.verbs:
            return None
        with collecting.imports():
            found = getattr(import_module(self.verbs[cmd_name]), cmd_name.replace("-", "_"))
        if isinstance(found, typer.Typer):
            return get_command(found)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(found)
        command = get_command(alone)
        return _traced(command, f"{ctx.command_path} {cmd_name}") if traces.is_on() else command


def _traced(command: Any, name: str) -> Any:
    """The same verb, as a span with its exit code."""
    invoke = command.invoke

    def traced(ctx: Any) -> Any:
        ended: typer.Exit | None = None
        with traces.span(name) as verb:
            try:
                found = invoke(ctx)
            except typer.Exit as exit_asked:  # how verbs end with a code, and no error of theirs
                found, ended = None, exit_asked
            except StatedError as error:
                verb.say("seawall.exit_code", error.exit_code)
                raise
            verb.say("seawall.exit_code", 0 if ended is None else ended.exit_code)
        if ended is not None:
            raise ended
        return found

    command.invoke = traced
    return command


def verb_group(modules: Mapping[str, str], *, help: str, short_help: str) -> typer.Typer:  # noqa: A002 typer's own name
    """A verb that has verbs of its own; `modules` gives each one's module, in the order of the help."""

    class Group(LazyGroup):
        verbs = modules

    made = typer.Typer(
        cls=Group, help=help, short_help=short_help, no_args_is_help=True, rich_markup_mode=None
    )
    made.callback()(_nothing)
    return made


def _nothing() -> None:
    """A group does nothing before its verb."""
