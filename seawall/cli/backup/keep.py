"""`seawall backup keep`: pin a range, so that nothing takes it before somebody says so."""

from __future__ import annotations

import getpass
import json
from typing import Annotated

import typer

from seawall.cli.backup.options import StateDir, TopicId, checked_target, moment, offsets, settings_of
from seawall.cli.exit_codes import CLEAN, FINDINGS
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region


def keep(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION", help="One log.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stands in the log's record.")],
    wanted: Annotated[
        str | None, typer.Option("--offsets", metavar="A:B", help="These; else all that can be had.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="When `expire --confirm` may release it; else never."),
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--as", metavar="WHO", help="Who answers for it; by default who runs this.")
    ] = None,
    topic_id: TopicId = None,
    state_dir: StateDir = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Pin a range: no agent of ours removes it, and no lifecycle takes its versions.

    On record in the log's own record, and by S3's legal hold on every version that the range can be had back
    from, live or removed. It does not bind Kafka. Segments that the range touches are kept whole.

    Exits with 0; with 1 if not every version could be held: the pin binds our agents all the same.
    """
    checked_target(target, needs_partition=True)
    until_ms = None if until is None else moment(until)
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.backup.evidence import say
    from seawall.backup.opened import opened
    from seawall.backup.pinning import pin

    with opened(settings) as world:
        [log] = world.logs(target, topic_id)
        whole = None if wanted is None else offsets(wanted)
        who = owner or getpass.getuser()
        done, events = pin(world, log, whole, until_ms=until_ms, reason=reason, who=who)
        say(
            settings,
            world.cluster_id,
            events,
            state_dir,
            lambda text: typer.echo(f"seawall: {text}", err=True),
        )
    hold, versions = done.hold, done.versions
    if as_json:
        told = {
            "pin": hold.hold_id,
            "range": [hold.start_offset, hold.end_offset],
            "versions_held": versions.held,
            "versions_missing": versions.missing,
            "trouble": versions.trouble,
        }
        typer.echo(json.dumps(told, indent=2))
    else:
        typer.echo(f"{hold.hold_id}: [{hold.start_offset}, {hold.end_offset}) is kept")
        typer.echo(f"{versions.held} versions held, {versions.missing} were not there")
        if versions.trouble is not None:
            typer.echo(f"not every version could be held: {versions.trouble}")
    raise typer.Exit(FINDINGS if versions.trouble is not None else CLEAN)
