"""Standard output for people: coloured on a terminal, plain text elsewhere, never wrapped and never cut.

What was found in a bucket or on a disk is shown, and never obeyed: a key or a file's name may hold what moves
a terminal's cursor, and is printed with the numbers of such characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

GAP = 2  # columns between columns


class StdoutClosed(Exception):
    """Whoever read our output stopped reading. `app` makes it an exit code."""


# All that no line of ours has: escapes, and what turns the direction of a line.
CONTROLS = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (
        *range(9),
        *range(11, 32),
        *range(127, 160),
        0x200E,
        0x200F,
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}


class _Stdout(Console):
    def print(self, *objects: Any, **named: Any) -> None:
        super().print(*map(_harmless, objects), **named)

    def on_broken_pipe(self) -> None:
        # Rich would exit with 1, which means findings here.
        raise StdoutClosed


def _harmless(shown: Any) -> Any:
    plain = shown.plain if isinstance(shown, Text) else shown
    if not isinstance(plain, str) or (told := plain.translate(CONTROLS)) == plain:
        return shown
    return Text(told, style=shown.style) if isinstance(shown, Text) else told


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
