"""Standard output for people: coloured on a terminal, plain text elsewhere, never wrapped and never cut."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

GAP = 2  # columns between columns


class StdoutClosed(Exception):
    """Whoever read our output stopped reading. `app` makes it an exit code."""


class _Stdout(Console):
    def on_broken_pipe(self) -> None:
        # Rich would exit with 1, which means findings here.
        raise StdoutClosed


def stdout_console() -> Console:
    return _Stdout(soft_wrap=True, highlight=False, markup=False)


def print_table(header: tuple[str, ...], rows: Iterable[tuple[Text, ...]]) -> None:
    """Columns as wide as their widest cell: rich's own table would cut cells to fit the terminal."""
    table = [tuple(Text(title, style="bold") for title in header), *rows]
    widths = [max(row[column].cell_len for row in table) for column in range(len(header))]
    console = stdout_console()
    for row in table:
        line = Text()
        for cell, width in zip(row, widths, strict=True):
            line.append_text(cell).append(" " * (width - cell.cell_len + GAP))
        line.rstrip()
        console.print(line)
