"""`seawall backup unkeep`: release a pin."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from seawall.cli.backup.options import StateDir, TopicId, checked_target, settings_of
from seawall.cli.exit_codes import CLEAN, FINDINGS
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Prefix, Region


def unkeep(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION", help="One log.")],
    pin: Annotated[str, typer.Argument(metavar="PIN", help="As `seawall backup show` has it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stands in the log's record.")],
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
) -> None:
    """Release a pin: retention and the bucket's lifecycle may go on where it was.

    The legal hold of a version is released unless another hold or pin has asked for it, too. A hold that a
    finding placed is not a pin: `seawall hold release`.

    Exits with 0; with 1 if of some version the legal hold could not be released.
    """
    checked_target(target, needs_partition=True)
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.backup.evidence import say
    from seawall.backup.opened import opened
    from seawall.backup.pinning import unpin

    with opened(settings) as world:
        [log] = world.logs(target, topic_id)
        done, events = unpin(world, log, pin, reason=reason, who=owner or getpass.getuser())
        say(
            settings,
            world.cluster_id,
            events,
            state_dir,
            lambda text: typer.echo(f"seawall: {text}", err=True),
        )
    typer.echo(f"{done.hold.hold_id}: released; {done.versions.held} versions are free")
    if done.versions.trouble is not None:
        typer.echo(f"not every version could be released: {done.versions.trouble}")
    raise typer.Exit(FINDINGS if done.versions.trouble is not None else CLEAN)
