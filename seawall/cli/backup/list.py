"""`seawall backup list`: of each log what is live, what could be had back, and what is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer
from rich.text import Text

from backup.catalogue.summary import Summary, summary, with_leader
from backup.plan.render import size
from rules.moments import write_moment
from seawall.cli.backup.options import AS_OF_MEANS, AsOf, Target, TopicId, checked_target, settings_of
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region
from seawall.settings import Settings


def list(  # noqa: A001 the verb's own name
    context: typer.Context,
    target: Target = None,
    as_of: AsOf = None,
    topic_id: TopicId = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """List what can be had back, a line for each log.

    From the topic of metadata, a listing of the bucket with versions, and the leaders' word of what is on
    their disks; read-only, and no object is read but the .json of copies that the topic has forgotten. With
    --as-of only what was live at that time counts, as far as its versions are still there; starts, gaps and
    holds are as they are now, and brokers are not asked.

    Exits with 0; with 1 if of any log something is lost; with 4 if there is nothing to list.
    """
    checked_target(target)
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.backup.opened import opened

    with opened(settings) as world:
        at_ms = None if as_of is None else int(as_of)
        found: Sequence[Summary] = [
            summary(world.catalogue(log), at_ms) for log in world.logs(target, topic_id)
        ]
    if at_ms is None:
        found = _with_leaders(settings, found)
    if as_json:
        means = None if at_ms is None else AS_OF_MEANS
        logs = [_as_json(each) for each in found]
        typer.echo(json.dumps({"as_of_ms": at_ms, "as_of_means": means, "logs": logs}, indent=2))
    elif found:
        _print(found)
        if at_ms is not None:
            typer.echo(f"as of {write_moment(at_ms)}: {AS_OF_MEANS}")
    else:
        typer.echo("nothing is in the tier")
    if not found:
        raise typer.Exit(INDETERMINATE)
    raise typer.Exit(FINDINGS if any(each.lost_offsets for each in found) else CLEAN)


def _with_leaders(settings: Settings, found: Sequence[Summary]) -> Sequence[Summary]:
    from seawall.backup.replica import Replica, leaders_of

    said = leaders_of(settings, [each.catalogue for each in found])
    return [
        with_leader(each, leader.start, leader.end) if isinstance(leader, Replica) else each
        for each, leader in zip(found, said, strict=True)
    ]


def _print(found: Sequence[Summary]) -> None:
    header = ("log", "live", "to be had back", "from", "size", "broker alone", "lost", "kept until", "holds")
    print_table(header, [_row(each) for each in found])
    for each in found:
        for doubt in each.catalogue.doubts:
            typer.echo(f"{each.name}: {doubt}")


def _row(each: Summary) -> tuple[Text, ...]:
    catalogue = each.catalogue
    record = catalogue.record
    kept = record.keep_until_ms if record is not None else None
    back = f"{each.recoverable_offsets} offsets" if each.recoverable_offsets else "-"
    return (
        Text(each.name),
        Text(f"[{catalogue.start}, {catalogue.frontier})"),
        Text(back, style="green" if each.recoverable_offsets else ""),
        Text("-" if each.first is None else str(each.first)),
        Text(size(each.size_bytes) if each.recoverable_offsets else "-"),
        Text(str(each.held_offsets) if each.held else "-"),
        Text(
            str(each.lost_offsets) if each.lost_offsets else "-",
            style="bold red" if each.lost_offsets else "",
        ),
        Text("-" if kept is None else write_moment(kept)),
        Text(str(len(record.holds)) if record is not None and record.holds else "-"),
    )


def _as_json(each: Summary) -> dict[str, Any]:
    catalogue = each.catalogue
    record = catalogue.record
    return {
        "topic": catalogue.topic,
        "topic_id": catalogue.log.topic_id,
        "partition": catalogue.log.partition,
        "start": catalogue.start,
        "frontier": catalogue.frontier,
        "recoverable_from": each.first,
        "recoverable_offsets": each.recoverable_offsets,
        "recoverable_bytes": each.size_bytes,
        "held_offsets": each.held_offsets,
        "lost_offsets": each.lost_offsets,
        "keep_until_ms": record.keep_until_ms if record is not None else None,
        "holds": [hold.hold_id for hold in record.holds] if record is not None else [],
        "doubts": [*catalogue.doubts],
    }
