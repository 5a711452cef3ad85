"""`seawall backup expire`: what leaves the window when, and which pins are over."""

from __future__ import annotations

import getpass
import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from backup.pins import Leaves, Leaving, leaving
from backup.plan.make import DAY_MS, KEEP_DAYS
from backup.plan.render import size
from rules.events import Event
from rules.moments import write_moment
from seawall.cli.backup.options import StateDir, Target, TopicId, checked_target, settings_of
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, INDETERMINATE
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region

REASON = "its end has passed"
STYLES = {Leaves.ANY_DAY: "yellow", Leaves.GONE: "dim", Leaves.HELD: "green"}


def expire(
    context: typer.Context,
    target: Target = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Release the pins that are over; else it is only told.")
    ] = False,
    topic_id: TopicId = None,
    state_dir: StateDir = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Tell what leaves the backup window when; release pins that are over.

    A removed version leaves by the bucket's lifecycle, once the window has passed since its removal: no role
    of Seawall's deletes one. Pins and holds stand above that. With --confirm pins whose end has passed are
    released, and nothing else is changed.

    Exits with 0; with 4 if there is nothing to look at.
    """
    checked_target(target)
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.backup.evidence import say
    from seawall.backup.opened import now_ms, opened
    from seawall.backup.pinning import ended, unpin

    found: list[tuple[str, Leaving]] = []
    with opened(settings) as world:
        logs = world.logs(target, topic_id)
        for log in logs:
            catalogue = world.catalogue(log)
            declared = world.policy(catalogue.topic)
            days = KEEP_DAYS if declared is None else declared.backup_window_days
            name = f"{catalogue.topic}-{log.partition}"
            found += [(name, each) for each in leaving(catalogue, window_ms=days * DAY_MS, now_ms=now_ms())]
        pins = list(ended(world, logs))
        events: list[Event] = []
        for log, hold in pins if confirm else ():
            events += unpin(world, log, hold.hold_id, reason=REASON, who=getpass.getuser())[1]
        say(
            settings,
            world.cluster_id,
            events,
            state_dir,
            lambda text: typer.echo(f"seawall: {text}", err=True),
        )
    names = [hold.hold_id for _, hold in pins]
    if as_json:
        told = {"leaving": [_as_json(*each) for each in found], "pins_over": names, "released": confirm}
        typer.echo(json.dumps(told, indent=2))
    else:
        _print(found, names, confirm)
    raise typer.Exit(CLEAN if logs else INDETERMINATE)


def _print(found: Sequence[tuple[str, Leaving]], pins: Sequence[str], confirm: bool) -> None:
    header = ("log", "offsets", "leaves", "not before", "size", "why")
    if found:
        print_table(header, [_row(*each) for each in found])
    counts = {kind: sum(each.leaves is kind for _, each in found) for kind in Leaves}
    said = ", ".join(f"{count} {kind.value}" for kind, count in counts.items() if count)
    typer.echo(f"{len(found)} removed copies: {said}" if found else "nothing was removed")
    for name in pins:
        typer.echo(f"{name}: {'released' if confirm else 'is over; release it with --confirm'}")


def _row(name: str, each: Leaving) -> tuple[Text, ...]:
    return (
        Text(name),
        Text(f"[{each.start}, {each.end})"),
        Text(each.leaves.value, style=STYLES.get(each.leaves, "")),
        Text("-" if each.at_ms is None else write_moment(each.at_ms)),
        Text(size(each.size_bytes)),
        Text(each.detail),
    )


def _as_json(name: str, each: Leaving) -> dict[str, Any]:
    return {
        "log": name,
        "range": [each.start, each.end],
        "leaves": each.leaves.value,
        "not_before_ms": each.at_ms,
        "size_bytes": each.size_bytes,
        "detail": each.detail,
    }
