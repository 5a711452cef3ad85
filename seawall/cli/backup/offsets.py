"""`seawall backup offsets`: translate a group's positions to a topic that a range was replayed into."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from backup.topic.errors import GroupIsActive
from backup.topic.groups import Groups, Mapped, Move, Place, moves, read_saved, write_saved
from seawall.cli.backup.options import elsewhere, settings_of
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, INDETERMINATE, PARTIAL
from seawall.cli.options import Bootstrap

_FREE = frozenset({"EMPTY", "DEAD", "UNKNOWN"})


def offsets(
    context: typer.Context,
    group: Annotated[str, typer.Option("--group", metavar="GROUP", help="The consumer group.")],
    maps: Annotated[
        list[Path] | None,
        typer.Option("--map", metavar="FILE", help="An offset map of `restore-topic`; one a partition."),
    ] = None,
    to_settings: Annotated[
        Path | None,
        typer.Option(
            "--to-settings", metavar="FILE", help="A settings file whose [kafka] is the target's cluster."
        ),
    ] = None,
    to_group: Annotated[
        str | None, typer.Option("--to-group", metavar="GROUP", help="Another name for it in the target.")
    ] = None,
    saved: Annotated[
        Path | None,
        typer.Option("--saved", metavar="FILE", help="Where the positions that stood before are kept."),
    ] = None,
    put_back: Annotated[
        Path | None, typer.Option("--put-back", metavar="FILE", help="Put saved positions back instead.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it; else it is only shown.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Translate a consumer group's positions to a topic that was replayed.

    A position becomes that of the same record; one between two records, the next one's. One beyond what was
    replayed has no answer, and is told. The group must have no members while it is moved. What stood in the
    target before is saved first: --put-back restores it.

    Exits with 0 if every position has been translated, 3 if some have no answer, 4 if the group has none.
    """
    settings = settings_of(context, bootstrap=bootstrap)
    target = elsewhere(settings, to_settings)
    from backup.topic.groups.kafka import KafkaGroups
    from seawall.connections import kafka_config

    there = KafkaGroups(kafka_config(target, client_id="seawall-backup"))
    if put_back is not None:
        _put_back(there, put_back, confirm=confirm)
        raise typer.Exit(CLEAN)
    if not maps:
        raise typer.BadParameter("name an offset map, once for each partition", param_hint="--map")
    here = KafkaGroups(kafka_config(settings, client_id="seawall-backup"))
    found = moves(here.positions(group), _read(maps))
    if not found:
        typer.echo(f"seawall: group {group} has no position in what these maps are of", err=True)
        raise typer.Exit(INDETERMINATE)
    _show(found)
    name = to_group or group
    wanted = {each.target: each.position for each in found if each.position is not None}
    if not confirm:
        typer.echo("seawall: nothing was changed: do it with --confirm", err=True)
    elif wanted:
        _must_be_free(there, name)
        before = there.positions(name)
        kept = saved or Path(f"{name}.offsets-{int(time.time())}.json")
        write_saved(kept, name, {place: before.get(place) for place in wanted}, int(time.time() * 1000))
        there.commit(name, wanted)
        typer.echo(f"group {name} goes on there; what stood before is in {kept}")
    raise typer.Exit(PARTIAL if len(wanted) < len(found) else CLEAN)


def _read(paths: list[Path]) -> list[Mapped]:
    from backup.topic.parquet import read_map

    found: list[Mapped] = []
    for path in paths:
        try:
            offset_map, source, target = read_map(path)
        except ValueError as refused:
            raise typer.BadParameter(str(refused), param_hint="--map") from refused
        found.append(Mapped(source=Place(*source), target=Place(*target), map=offset_map))
    return found


def _must_be_free(groups: Groups, group: str) -> None:
    state = groups.state(group)
    if state not in _FREE:
        raise GroupIsActive(group=group, state=state)


def _put_back(groups: Groups, path: Path, *, confirm: bool) -> None:
    try:
        group, positions = read_saved(path)
    except ValueError as refused:
        raise typer.BadParameter(str(refused), param_hint="--put-back") from refused
    known = {place: at for place, at in positions.items() if at is not None}
    for place, at in positions.items():
        said = f"back to {at}" if at is not None else "left: there was none before"
        typer.echo(f"{place.topic}-{place.partition}: {said}")
    if not confirm:
        typer.echo("seawall: nothing was changed: do it with --confirm", err=True)
        return
    _must_be_free(groups, group)
    if known:
        groups.commit(group, known)


def _show(found: list[Move]) -> None:
    rows = [
        (
            Text(f"{each.source.topic}-{each.source.partition}"),
            Text(str(each.committed)),
            Text(f"{each.target.topic}-{each.target.partition}"),
            Text("-" if each.position is None else str(each.position)),
            Text(each.why),
        )
        for each in found
    ]
    print_table(("from", "position", "to", "position there", ""), rows)
