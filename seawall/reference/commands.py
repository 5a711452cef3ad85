"""docs/COMMANDS.md: every verb with its arguments and options, as --help says them.

python -m seawall.reference.commands > docs/COMMANDS.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import typer.main

from seawall.cli.app import app

_HEAD = """\
# Commands

Made from the code by `python -m seawall.reference.commands > docs/COMMANDS.md`; a test compares them.
`--help` after any verb says the same. Exit codes: [EXIT_CODES.md](EXIT_CODES.md). What flags leave unsaid,
settings say: [SETTINGS.md](SETTINGS.md).
"""


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    root = typer.main.get_command(app)
    with click.Context(root, info_name="seawall") as context:  # type: ignore[arg-type]  # typer's own click
        yield from _verbs(root, context, 2)


def _verbs(group: Any, context: Any, level: int) -> Iterator[str]:
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        with type(context)(verb, info_name=name, parent=context) as below:
            yield f"{'#' * level} {below.command_path}\n"
            yield f"```\n{' '.join([below.command_path, *verb.collect_usage_pieces(below)])}\n```\n"
            yield _words(verb.help or "")
            yield from _parameters(verb, below)
            if hasattr(verb, "list_commands"):
                yield from _verbs(verb, below, min(level + 1, 4))


def _words(text: str) -> str:
    """Examples are whole lines that begin with the program's name."""
    paragraphs = [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n")]
    return "\n\n".join(f"`{each}`" if each.startswith("seawall ") else each for each in paragraphs) + "\n"


def _parameters(verb: Any, context: Any) -> Iterator[str]:
    records = [found for each in verb.get_params(context) if (found := each.get_help_record(context))]
    shown = [(names, words) for names, words in records if "--help" not in names]
    if shown:
        yield from ("| | |", "|---|---|")
        for names, words in shown:
            yield f"| `{names.strip()}` | {' '.join(words.split())} |".replace("|  |", "| |")
        yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
