"""`seawall demo`: the whole of it on this machine, each claim proved, in under two minutes."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from seawall.cli.console import StdoutClosed, stdout_console
from seawall.cli.exit_codes import FINDINGS
from seawall.cli.options import Json
from seawall.demo import Demo, ProofFailed, Told

NAME_WIDTH = 8
INDENT = " " * (NAME_WIDTH + 12)
REPORT = "seawall-demo.html"
TO_TRY = (
    "seawall tier status",
    "seawall read orders:0 --max-records 3",
    "seawall backup show orders:0",
    "seawall audit findings --all",
    "seawall events tail --topic orders --from 10m",
    "seawall hold list",
)


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave all of it running to play with, until Ctrl-C or SIGTERM.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the HTML report goes. Default: in the temporary folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the whole of it work, on servers of its own.

    Starts a real Kafka broker and an S3 server on 127.0.0.1, has the agent copy four topics to S3, and then
    loses data in four ways: a corrupted checkpoint trims a prefix, a replica's table diverges, somebody
    shrinks retention, a race moves a log's start too far. The audit finds each, exactly; a signed webhook
    arrives; a hold keeps what is left; the prefix is restored and read back byte for byte; the next audit
    passes. Touches no cluster and no account of yours, and removes what it made but for the report.

    Exits with 0 if every proof held and 1 if one did not; then the servers' files are kept and named.
    """
    began = time.monotonic()
    console, waiting = stdout_console(), Console(stderr=True)
    file = (report or Path(tempfile.gettempdir()) / REPORT).absolute()
    try:
        with _folder() as folder, Demo(folder, file) as story:
            for chapter in story.chapters():
                chapter_began = time.monotonic()
                with waiting.status(chapter.doing):  # a spinner, on a terminal only
                    told = chapter.act()
                _print(console, chapter.name, told, since=chapter_began, as_json=as_json)
            if keep:
                _keep(console, story, as_json=as_json)
    except ProofFailed as failed:
        typer.echo(f"seawall: {failed}", err=True)
        raise typer.Exit(FINDINGS) from failed
    ending = Told(
        says="every step above; the servers are stopped, their files removed", facts={"proved": True}
    )
    _print(console, "proved", ending, since=began, as_json=as_json)


def _keep(console: Console, story: Demo, *, as_json: bool) -> None:
    """Until it is told to stop; the first Ctrl-C ends it in order."""
    stop = Event()
    ends = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in ends}
    try:
        addresses = story.addresses()
        if as_json:
            typer.echo(json.dumps({"step": "keep", "settings": str(story.settings_file), **addresses}))
        else:
            lines = [
                f"broker     {addresses['bootstrap']}",
                f"consumers  {addresses['serve']}   (tier and broker as one log)",
                f"bucket     {addresses['bucket']}",
                f"settings   {story.settings_file}",
                "",
                "In another shell:",
                f"export SEAWALL_SETTINGS={story.settings_file}",
                f"export AWS_ACCESS_KEY_ID={addresses['access_key_id']} "
                f"AWS_SECRET_ACCESS_KEY={addresses['secret_access_key']}",
                *TO_TRY,
                "",
                "Ctrl-C here ends all of it and removes its files.",
            ]
            console.print(Text("\n".join(lines)))
        story.keep(stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    for note in told.notes:
        console.print(Text(f"{INDENT}{note}", style="dim"))
