"""`seawall backup apply`: carry out a plan for the tier, from wherever it stands."""

from __future__ import annotations

import getpass
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from backup.plan import Plan
from backup.plan.render import days, lines_of, size
from backup.report import members_of, signed
from backup.tier.apply import Restoration
from backup.tier.apply import apply as carry_out
from backup.tier.check import check
from backup.tier.ports import WORKERS, Progress
from rules.moments import write_moment
from seawall.cli.backup.options import BACKUP, Report, SignWith, StateDir, rate_of, settings_of
from seawall.cli.backup.signed import SignedWith, plan_from
from seawall.cli.exit_codes import CLEAN
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region
from seawall.settings import Settings

if TYPE_CHECKING:
    from seawall.tier.scrub import Evidence

WORKERS_MAX = 128


def apply(
    context: typer.Context,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="What `seawall backup plan --out` wrote.")],
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it; else it is only checked.")] = False,
    report: Report = None,
    sign_with: SignWith = None,
    signed_with: SignedWith = None,
    principal: Annotated[
        str | None,
        typer.Option("--as", metavar="WHO", help="Who answers for it; by default whoever runs this."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="SIZE", callback=rate_of, help="Have the store copy at most so much a second."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=WORKERS_MAX, help="Objects copied at once.")] = WORKERS,
    state_dir: StateDir = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Carry out a plan for the tier.

    The recorded versions are copied onto their keys inside of the store, never over a live object; the topic
    of metadata gets a new generation of each copy, and the log's start moves back, kept from our retention as
    long as the plan says. Readers of the tier see the prefix again at once. No version is deleted.

    Refused, with nothing changed, if the bucket, the log or the policy moved since the plan was made, or if
    it would cover live data. Killed anywhere, the same command goes on; done already, it changes nothing.

    Exits with 0 if all that was planned can be read again.
    """
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    planned = plan_from(plan, signed_with)
    if not confirm:
        _only_checked(settings, planned)
        raise typer.Exit(CLEAN)
    who = principal or getpass.getuser()
    done, key = _carried_out(settings, planned, who, rate, workers, state_dir, sign_with)
    told = signed(members_of(done, who), key)
    if report is not None:
        report.write_text(told, encoding="ascii")
    typer.echo(told if as_json else "\n".join(_lines(done, report)))
    raise typer.Exit(CLEAN)


def _only_checked(settings: Settings, planned: Plan) -> None:
    from seawall.backup.opened import opened
    from seawall.tier.scrub import NoEvents

    with opened(settings) as world:
        state = check(planned, world.ports(NoEvents(), "nobody", None))
    typer.echo("\n".join(lines_of(planned)))
    left = sum(len(each.to_copy) for each in state.pieces)
    if state.is_over:
        typer.echo("it was carried out already", err=True)
    else:
        typer.echo(
            f"seawall: it fits; {left} objects to copy; nothing was changed: do it with --confirm", err=True
        )


def _carried_out(
    settings: Settings,
    planned: Plan,
    who: str,
    rate: str | None,
    workers: int,
    state_dir: Path | None,
    sign_with: Path | None,
) -> tuple[Restoration, bytes]:
    from seawall.backup.keys import report_key
    from seawall.backup.opened import opened
    from seawall.tier.scrub import evidence, state_folder

    with opened(settings) as world:
        folder = state_folder(state_dir, world.cluster_id, os.environ, BACKUP)
        key = report_key(sign_with, folder)
        with evidence(settings, folder, world.cluster_id, BACKUP) as kept, _bar() as on_progress:
            paced = None if rate is None else int(rate)
            ports = world.ports(kept, who, paced, workers=workers, on_progress=on_progress)
            done = carry_out(planned, ports)
            _close(kept)
    return done, key


def _close(kept: Evidence) -> None:
    from seawall.backup.opened import now_ms

    waiting = kept.close(lambda spool: spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=now_ms()))
    if waiting:
        typer.echo(f"seawall: Kafka does not have {waiting} events yet; apply again to send them", err=True)
    if kept.lost:
        typer.echo(f"seawall: {kept.lost} events found no room on this disk: apply again", err=True)


def _lines(done: Restoration, report: Path | None) -> Iterator[str]:
    body = done.plan.body
    log = f"{body.topic}-{body.log.partition}"
    said = " ".join(f"[{each.start}, {each.end})" for each in done.ranges)
    if done.was_over:
        yield f"{log}: {said} was restored by this plan already; nothing was changed"
    else:
        took = days(done.ended_at_ms - done.started_at_ms)
        yield f"{log}: {said} can be read again"
        yield f"{done.objects_put_back} objects put back, {size(done.size_bytes)}, in {took}"
    if body.lost_offsets:
        yield f"{body.lost_offsets} offsets are lost"
    yield f"the log begins at {done.log_start}; kept until {write_moment(done.keep_until_ms)}"
    if report is not None:
        yield f"report: {report}"


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    """A bar over the bytes on standard error, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("checking", total=None)

        def on_progress(now: Progress) -> None:
            what = f"{now.objects} of {now.objects_total} objects"
            bar.update(task, description=what, completed=now.size_bytes, total=now.size_bytes_total)

        yield on_progress
