"""`seawall backup plan`: what would be put back, of what, as a file to read, approve and apply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backup.plan import AskedBy, Plan
from backup.plan.codec import members_of
from backup.plan.file import write_plan
from backup.plan.make import Wish, make_plan
from backup.plan.render import lines_of
from rules.events import RestoreTarget
from rules.policy.quantities import read_time
from seawall.backup.keys import key_in
from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.backup.options import TopicId, checked_target, moment, offsets, settings_of
from seawall.cli.exit_codes import CLEAN, FINDINGS
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region
from seawall.settings import Settings

if TYPE_CHECKING:
    from seawall.backup.finding import Found


def plan(
    context: typer.Context,
    target: Annotated[
        str | None, typer.Argument(metavar="[TOPIC:PARTITION]", help="The log; a finding names its own.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the plan; else it is shown only."),
    ] = None,
    sign_with: Annotated[
        Path | None,
        typer.Option(
            "--sign-with", metavar="FILE", help="Sign the plan's file with this whsec_... secret; see apply."
        ),
    ] = None,
    finding: Annotated[
        str | None,
        typer.Option("--finding", metavar="ID", help="What a finding says is lost: needs --tables."),
    ] = None,
    wanted: Annotated[
        str | None, typer.Option("--offsets", metavar="A:B", help="These offsets; B is not in it.")
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option(
            "--to-time", metavar="TIME", help="All that was live at this time, as 2026-11-18T09:30Z."
        ),
    ] = None,
    pass_gaps: Annotated[
        bool,
        typer.Option(
            "--pass-gaps", help="Put what is lost in the middle on record, so that readers pass it."
        ),
    ] = False,
    keep_for: Annotated[
        str | None,
        typer.Option("--keep-for", metavar="TIME", help="How long no retention of ours takes it again: 14d."),
    ] = None,
    restore_to: Annotated[
        RestoreTarget, typer.Option("--target", help="Where it is to be put back.")
    ] = RestoreTarget.TIER,
    topic_id: TopicId = None,
    tables: TablesAt = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Plan a restore; changes nothing but the plan's file.

    Without --finding, --offsets or --to-time it is for all that can be had back below the log's start, and
    for live objects that somebody deleted. A range that ends below the start is led on to it, as readers
    could not come there otherwise. The plan says which versions of which objects, how many bytes and
    requests, what is lost and why. `seawall backup apply FILE --confirm` carries out one for the tier;
    the others have `restore-logdir` and `restore-topic`.

    Exits with 0 if all that was asked for can be had, 1 if some of it is lost, 68 if there is nothing.
    """
    if sum(each is not None for each in (finding, wanted, to_time)) > 1:
        raise typer.BadParameter("one of --finding, --offsets and --to-time")
    if (target is None) == (finding is None):
        raise typer.BadParameter("name the log as TOPIC:PARTITION, or a finding, and not both")
    checked_target(target, needs_partition=True)
    if sign_with is not None and out is None:
        raise typer.BadParameter("it is only shown, not signed: name --out", param_hint="--sign-with")
    key = None if sign_with is None else key_in(sign_with)
    settings = settings_of(
        context,
        bootstrap=bootstrap,
        bucket=bucket,
        prefix=prefix,
        endpoint_url=endpoint_url,
        region=region,
        more={"audit.tables": ("--tables", tables)},
    )
    wish = _wish(wanted, to_time, restore_to, pass_gaps=pass_gaps, keep_for=keep_for)
    found = None if finding is None else _finding(settings, finding)
    if found is not None:
        wish = Wish(
            by=AskedBy.FINDING,
            text=found.text,
            range=found.range,
            target=restore_to,
            passes_gaps=pass_gaps,
            keep_for_ms=wish.keep_for_ms,
            details=found.details,
        )
    made = _made(settings, target, topic_id, found, wish)
    if out is not None:
        write_plan(out, made, key)
    if as_json:
        typer.echo(json.dumps({"seawall_plan": made.hash, "body": members_of(made.body)}, indent=2))
    else:
        typer.echo("\n".join(lines_of(made)))
        typer.echo(f"plan {made.hash}" + (f" is in {out}; nothing was changed" if out is not None else ""))
    raise typer.Exit(FINDINGS if made.body.lost else CLEAN)


def _wish(
    wanted: str | None, to_time: str | None, target: RestoreTarget, *, pass_gaps: bool, keep_for: str | None
) -> Wish:
    keep_for_ms = None
    if keep_for is not None:
        try:
            keep_for_ms = read_time(keep_for)
        except ValueError as refused:
            raise typer.BadParameter(f"must be {refused}", param_hint="--keep-for") from refused
    said: dict[str, Any] = {"passes_gaps": pass_gaps, "keep_for_ms": keep_for_ms, "target": target}
    if wanted is not None:
        return Wish(by=AskedBy.OFFSETS, text=wanted, range=offsets(wanted), **said)
    if to_time is not None:
        return Wish(by=AskedBy.TIME, text=to_time, at_ms=moment(to_time), **said)
    return Wish(by=AskedBy.ALL, text="whatever can be had", **said)


def _finding(settings: Settings, finding_id: str) -> Found:
    from seawall.backup.finding import read_finding

    return read_finding(settings, tables_at(settings), finding_id)


def _made(
    settings: Settings, target: str | None, topic_id: str | None, found: Found | None, wish: Wish
) -> Plan:
    from seawall.backup.opened import now_ms, opened
    from seawall.backup.wishes import fitted

    with opened(settings) as world:
        log = found.log if found is not None else world.logs(target, topic_id)[0]
        catalogue = world.catalogue(log)
        policy = world.policy(catalogue.topic)
        wish = fitted(settings, catalogue, wish)
        return make_plan(catalogue, wish, policy, now_ms=now_ms(), bucket=world.store.bucket)
