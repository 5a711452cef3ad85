"""`seawall demo`: the whole of it on this machine, each claim proved, in under a minute and a half."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from seawall.cli.console import StdoutClosed, stdout_console
from seawall.cli.exit_codes import FINDINGS
from seawall.cli.options import Json
from seawall.demo import Demo, ProofFailed, Told

NAME_WIDTH = 9


def demo(as_json: Json = False) -> None:
    """Show the whole of it work, on servers of its own.

    Starts a real Kafka broker and an S3 server on 127.0.0.1, produces until segments close, verifies them,
    has the agent copy them to S3, deletes them from the broker, and reads every record back from the bucket
    alone. Touches no cluster and no account of yours, and removes what it made.

    Exits with 0 if every proof held and 1 if one did not; then the servers' files are kept and named.
    """
    began = time.monotonic()
    console, waiting = stdout_console(), Console(stderr=True)
    try:
        with _folder() as folder, Demo(folder) as story:
            for chapter in story.chapters():
                chapter_began = time.monotonic()
                with waiting.status(chapter.doing):  # a spinner, on a terminal only
                    told = chapter.act()
                _print(console, chapter.name, told, since=chapter_began, as_json=as_json)
    except ProofFailed as failed:
        typer.echo(f"seawall: {failed}", err=True)
        raise typer.Exit(FINDINGS) from failed
    ending = Told(
        says="every step above; the servers are stopped, their files removed", facts={"proved": True}
    )
    _print(console, "proved", ending, since=began, as_json=as_json)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that is gone afterwards, unless something failed: then its logs may say why."""
    folder = Path(tempfile.mkdtemp(prefix="seawall-demo-"))
    try:
        yield folder
    except StdoutClosed:
        shutil.rmtree(folder)
        raise
    except Exception:
        typer.echo(f"seawall: the servers' files and logs are kept in {folder}", err=True)
        raise
    except BaseException:  # interrupted: whoever did that does not want to look at logs
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


def _print(console: Console, name: str, told: Told, *, since: float, as_json: bool) -> None:
    took_s = time.monotonic() - since
    if as_json:
        typer.echo(json.dumps({"step": name, "took_ms": round(took_s * 1000), **told.facts}))
        return
    line = Text()
    line.append("✔ ", style="bold green")
    line.append(f"{name:<{NAME_WIDTH}}", style="bold")
    line.append(f"{took_s:5.1f} s  ", style="cyan")
    line.append(told.says)
    console.print(line)
