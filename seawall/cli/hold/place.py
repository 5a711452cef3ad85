"""`seawall hold place`: keep a log from being trimmed or deleted. It destroys nothing: no --confirm."""

from __future__ import annotations

import getpass
import json
import secrets
from typing import Annotated

import typer

from rules.policy.values import is_name
from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from tiering.holds.errors import NothingToHold

REASON_CHARS = 200


def place(
    context: typer.Context,
    log: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION", help="The log.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; everybody who is kept from it sees it.")],
    owner: Annotated[
        str | None, typer.Option(metavar="WHO", help="Who answers for it; by default whoever runs this.")
    ] = None,
    start: Annotated[int, typer.Option("--from", min=0, metavar="OFFSET", help="The first offset.")] = 0,
    end: Annotated[
        int | None, typer.Option("--to", min=1, metavar="OFFSET", help="The end; default: whatever comes.")
    ] = None,
    has_versions: Annotated[
        bool,
        typer.Option("--versions/--no-versions", help="Also a legal hold on the range's object versions."),
    ] = True,
    hold_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its name; one that stands is gone on with.")
    ] = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Place a hold on a log.

    Our agents are bound within seconds: they neither trim the log nor delete anything of the range in the
    tier. Object versions get the bucket's legal hold, which no lifecycle passes. Where the policy says
    hold_kafka, Kafka's own retention of the topic becomes unlimited, as a declared change; what it was is
    kept and put back at release. A hold stands until somebody releases it.

    Exits with 0 if all of that is in force, 3 if some of it is not.
    """
    topic, partition = _log(log)
    for name, text in (("--reason", reason), ("--owner", owner or "x"), ("--id", hold_id or "x")):
        if not is_name(text) or len(text) > REASON_CHARS:
            raise typer.BadParameter(f"a line of at most {REASON_CHARS} characters", param_hint=name)
    if end is not None and end <= start:
        raise typer.BadParameter("the range is empty", param_hint="--to")
    settings = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    ).settings
    from seawall.cli.hold.view import CANNOT, print_holds, warn, whys
    from seawall.cli.hold.view import as_json as json_of
    from seawall.holds.opened import opened
    from seawall.holds.service import Asked

    asked = Asked(
        hold_id=hold_id or f"hold-{secrets.token_hex(4)}",
        start_offset=start,
        end_offset=end,
        reason=reason,
        owner=owner or getpass.getuser(),
        finding_id=None,
        versions=(start, end) if has_versions and settings.s3.bucket is not None else None,
    )
    with opened(settings, warn) as found:
        place = found.log_of(topic, partition)
        if place is None:
            raise NothingToHold(what=log, why="the cluster has no such topic and partition")
        bound = found.holds.place(place, asked)
    if not bound.is_in_force:
        raise NothingToHold(what=log, why="; ".join(whys([bound])))
    if as_json:
        typer.echo(json.dumps(json_of(bound), indent=2))
    else:
        print_holds([bound])
        typer.echo()
        for line in whys([bound]):
            typer.echo(line)
        typer.echo(CANNOT)
    is_whole = bound.agents and (bound.versions is None or bound.versions.trouble is None)
    raise typer.Exit(CLEAN if is_whole else PARTIAL)


def _log(text: str) -> tuple[str, int]:
    topic, colon, partition = text.rpartition(":")
    if not colon or not topic or not partition.isdecimal():
        raise typer.BadParameter("a log, as TOPIC:PARTITION", param_hint="TOPIC:PARTITION")
    return topic, int(partition)
