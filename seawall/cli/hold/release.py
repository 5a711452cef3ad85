"""`seawall hold release`: what was held may go again, and with --confirm it may."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from rules.policy.values import is_name
from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from tiering.holds.errors import NoSuchHold

if TYPE_CHECKING:
    from seawall.holds.service import Bound


def release(
    context: typer.Context,
    hold_id: Annotated[str, typer.Argument(metavar="HOLD", help="Its id, as `seawall hold list` shows it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it is over; it stays on record.")],
    owner: Annotated[
        str | None, typer.Option(metavar="WHO", help="Who says so; by default whoever runs this.")
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Do it. Without, only shows what would be let go.")
    ] = False,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Release a hold: Kafka's retention is put back, object versions are let go, then our agents are.

    What retention asks for goes within minutes of it. What another hold stands on stays. If the finding that
    placed it is open still, the next run does not place it again.

    Exits with 0 if nothing of it is in force any more, or nothing was to be done, 3 if something is.
    """
    for name, text in (("--reason", reason), ("--owner", owner or "x")):
        if not is_name(text):
            raise typer.BadParameter("a line of printable characters", param_hint=name)
    settings = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    ).settings
    from seawall.cli.hold.view import as_json as json_of
    from seawall.cli.hold.view import print_holds, warn, whys
    from seawall.holds.opened import opened

    with opened(settings, warn) as found:
        standing = [each for each in found.holds.standing() if each.hold.hold_id == hold_id]
        if not standing:
            raise NoSuchHold(hold_id=hold_id)
        if confirm:
            who = owner or getpass.getuser()
            standing = [found.holds.release(each, owner=who, reason=reason) for each in standing]
    if as_json:
        typer.echo(json.dumps({"released": confirm, "holds": [json_of(each) for each in standing]}, indent=2))
    elif not confirm:
        print_holds(standing)
        typer.echo("seawall: nothing was released; do it with --confirm", err=True)
    else:
        for line in whys(standing):
            typer.echo(line)
        typer.echo(f"{hold_id} is released" if not _left(standing) else f"{hold_id} is NOT released")
    raise typer.Exit(PARTIAL if confirm and _left(standing) else CLEAN)


def _left(standing: Iterable[Bound]) -> bool:
    return any(each.agents or (each.kafka.why and each.kafka.is_held) for each in standing)
