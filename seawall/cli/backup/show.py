"""`seawall backup show`: one log, range by range: live, to be had back and from what, or lost and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from backup.catalogue.summary import Summary, is_back, summary, with_leader
from backup.plan.render import size
from backup.plan.values import Lost, Origin, Piece, Range
from rules.moments import write_moment
from seawall.cli.backup.options import AS_OF_MEANS, AsOf, TopicId, checked_target, settings_of
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region


def show(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION", help="One log.")],
    as_of: AsOf = None,
    topic_id: TopicId = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Show of one log where every offset is: live, in versions, on the broker alone, or lost and why.

    Exits with 0, with 1 if something is lost.
    """
    checked_target(target, needs_partition=True)
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.backup.opened import opened
    from seawall.backup.replica import Replica, leaders_of

    with opened(settings) as world:
        at_ms = None if as_of is None else int(as_of)
        [log] = world.logs(target, topic_id)
        found = summary(world.catalogue(log), at_ms)
        [leader] = ["not asked"] if at_ms is not None else leaders_of(settings, [found.catalogue])
    told = leader if isinstance(leader, Replica) else None
    if told is not None:
        found = with_leader(found, told.start, told.end)
    if as_json:
        typer.echo(json.dumps(_as_json(found, told, at_ms), indent=2))
    else:
        _print(found, told if told is not None else str(leader), at_ms)
    raise typer.Exit(FINDINGS if found.lost_offsets else CLEAN)


def _print(found: Summary, leader: Any, at_ms: int | None) -> None:
    catalogue = found.catalogue
    print_table(("offsets", "what", "size", "from", "why"), list(_rows(found)))
    typer.echo()
    typer.echo(f"live in the tier: [{catalogue.start}, {catalogue.frontier})")
    typer.echo(f"on the broker: {leader}")
    if at_ms is not None:
        typer.echo(f"as of {write_moment(at_ms)}: {AS_OF_MEANS}")
    record = catalogue.record
    if record is not None and record.keep_until_ms is not None:
        typer.echo(f"kept until {write_moment(record.keep_until_ms)}")
    for hold in record.holds if record is not None else ():
        end = "" if hold.end_offset is None else hold.end_offset
        typer.echo(f"held: [{hold.start_offset}, {end}) by {hold.placed_by}: {hold.reason}")
    for doubt in catalogue.doubts:
        typer.echo(f"in doubt: {doubt}")
    back, lost = found.recoverable_offsets, found.lost_offsets
    alone = f", {found.held_offsets} are on brokers alone" if found.held else ""
    typer.echo(f"{back} offsets can be had back ({size(found.size_bytes)}){alone}, {lost} are lost")


def _parts(found: Summary) -> list[Piece | Lost | Range]:
    return sorted([*found.pieces, *found.lost, *found.held], key=lambda each: each.start)


def _rows(found: Summary) -> Iterator[tuple[Text, ...]]:
    for each in _parts(found):
        offsets = Text(f"[{each.start}, {each.end})")
        if isinstance(each, Lost):
            yield offsets, Text("lost", style="bold red"), Text("-"), Text("-"), Text(_why(each))
            continue
        if isinstance(each, Range):
            what = Text("on the broker alone", style="yellow")
            yield offsets, what, Text("-"), Text(Origin.REPLICA.value), Text("by its leader's word")
            continue
        back = is_back(each, found.catalogue)
        what = Text("to be had back", style="green") if back else Text("live")
        version = f"{each.record.key_stem.rpartition('/')[2]}.log, version {each.log_object.version_id}"
        yield offsets, what, Text(size(each.size_bytes)), Text(each.origin.value), Text(version)


def _why(lost: Lost) -> str:
    return f"{lost.because.value}: {lost.detail}"


def _as_json(found: Summary, leader: Any, at_ms: int | None) -> dict[str, Any]:
    catalogue = found.catalogue
    return {
        "topic": catalogue.topic,
        "topic_id": catalogue.log.topic_id,
        "partition": catalogue.log.partition,
        "as_of_ms": at_ms,
        "as_of_means": None if at_ms is None else AS_OF_MEANS,
        "start": catalogue.start,
        "frontier": catalogue.frontier,
        "broker": None if leader is None else {"start": leader.start, "high_watermark": leader.end},
        "recoverable_offsets": found.recoverable_offsets,
        "held_offsets": found.held_offsets,
        "lost_offsets": found.lost_offsets,
        "ranges": [_range(each, found) for each in _parts(found)],
        "doubts": [*catalogue.doubts],
    }


def _range(each: Piece | Lost | Range, found: Summary) -> dict[str, Any]:
    if isinstance(each, Range):
        return {"range": [each.start, each.end], "what": "held", "origin": Origin.REPLICA.value}
    if isinstance(each, Lost):
        return {
            "range": [each.start, each.end],
            "what": "lost",
            "because": each.because.value,
            "detail": each.detail,
        }
    return {
        "range": [each.start, each.end],
        "what": "recoverable" if is_back(each, found.catalogue) else "live",
        "origin": each.origin.value,
        "segment_id": each.record.segment_id,
        "size_bytes": each.size_bytes,
        "objects": [
            {"key": ref.key, "version_id": ref.version_id} for _, ref in each.record.objects.present()
        ],
    }
