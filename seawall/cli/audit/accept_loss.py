"""`seawall audit accept-loss`: what is lost is taken as lost."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rules.events import LossAccepted
from rules.identity import LogId
from rules.policy.values import NAME_MAX, is_name
from seawall.cli.audit.decide import FindingId
from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.cli.options import Bootstrap, EndpointUrl, Json, Region, load_settings


def accept_loss(
    context: typer.Context,
    finding: FindingId,
    principal: Annotated[str, typer.Option(metavar="NAME", help="Who takes it as lost.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, in a line.")],
    is_incident: Annotated[
        bool, typer.Option("--incident", help="Also the other losses of the same incident that are open.")
    ] = False,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Say it. Without, it is only shown what would be said.")
    ] = False,
    tables: TablesAt = None,
    bootstrap: Bootstrap = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir", metavar="DIR", help="Where what is said is kept until Kafka has it; one for all."
        ),
    ] = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Take as lost what a finding says is lost: nobody will put it back.

    It is said into the topic of events, as loss_accepted; the next run that has ingested it closes that
    finding as accepted, and no other. What is lost beyond its range, by then or later, stays open. It makes
    nothing less lost: a copy that is still to be had can be put back all the same.

    Exits with 0 if it is said, or with what would be said; 3 if Kafka does not have it yet; 76 if the
    finding is no loss.
    """
    for flag, text in (("--principal", principal), ("--reason", reason)):
        if not is_name(text):
            raise typer.BadParameter(f"a line of 1 to {NAME_MAX} characters", param_hint=flag)
    settings = load_settings(
        context,
        bootstrap=bootstrap,
        endpoint_url=endpoint_url,
        region=region,
        more={"audit.tables": ("--tables", tables)},
    ).settings
    place = tables_at(settings)
    from audit_engine.tables.place import root_of
    from seawall.audit.loss import OtherCluster, cluster_of, events_of, incident_of
    from seawall.audit.saying import say
    from seawall.audit.spark import session
    from seawall.policy.kafka import open_cluster

    cluster_id = open_cluster(settings).cluster_id
    root = root_of(place)
    with session(settings, root) as (spark, _):
        found, findings, logs = _read(spark, root, finding)
    if cluster_of(found) != cluster_id:
        raise OtherCluster(found=cluster_of(found), cluster_id=cluster_id)
    taken = incident_of(found, findings) if is_incident else [found]
    now_ms = time.time_ns() // 1_000_000
    events = [
        event
        for each in taken
        for event in events_of(each, logs, principal=principal, reason=reason, now_ms=now_ms)
    ]
    left = say(settings, cluster_id, events, state_dir) if confirm else 0
    _show(taken, events, is_said=confirm, left=left, as_json=as_json)
    raise typer.Exit(PARTIAL if left else CLEAN)


def _read(
    spark: Any, root: str, wanted: str
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[LogId, str]]:
    """The finding, all that there are, and the logs of its topic. Raises NoSuchFinding, FindingClosed."""
    from audit_engine.run.errors import FindingClosed
    from audit_engine.run.reading.spark import Verdicts

    verdicts = Verdicts(spark, root)
    found = verdicts.finding(wanted)
    if found["status"] != "open":
        raise FindingClosed(finding_id=found["finding_id"], status=found["status"])
    return found, verdicts.findings(), verdicts.logs(found["subject"])


def _show(
    taken: Sequence[Mapping[str, Any]],
    events: Sequence[LossAccepted],
    *,
    is_said: bool,
    left: int,
    as_json: bool,
) -> None:
    if as_json:
        told = [
            {
                "finding_id": each.finding_id,
                "topic": each.topic,
                "partition": each.log.partition,
                "start_offset": each.start_offset,
                "end_offset": each.end_offset,
                "event_id": each.event_id if is_said else None,
            }
            for each in events
        ]
        typer.echo(json.dumps({"accepted": told, "waiting_events": left}, indent=2))
    else:
        for each in taken:
            offsets = " ".join(f"[{start}, {end})" for start, end in each["ranges"])
            what = f"{each['rule_id']} {each['subject']} {offsets}".rstrip()
            typer.echo(f"{what} ({each['finding_id']}): taken as lost; a run that has heard it closes it")
    if not is_said:
        typer.echo("seawall: nothing was accepted; do it with --confirm", err=True)
    elif left:
        typer.echo(
            f"seawall: it is on this disk, and Kafka does not have it yet ({left} events wait);"
            " say it again, or run another verb with the same --state-dir, to send it",
            err=True,
        )
