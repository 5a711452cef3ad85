"""A bar on standard error, on a terminal only, told how much more is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def stepping_bar(what: str, total: int, *, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    counted = DownloadColumn(binary_units=True) if in_bytes else MofNCompleteColumn()
    with Progress(
        TextColumn(what), BarColumn(), counted, Remaining(), console=console, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)
