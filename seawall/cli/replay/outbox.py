"""`seawall replay outbox`: what people are told, from what runs left for them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from seawall.cli.alerts.options import StateDir
from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.exit_codes import INDETERMINATE
from seawall.cli.options import EndpointUrl, Json, Region, load_settings
from seawall.cli.replay.said import IsCompared, as_json, exit_code, say

if TYPE_CHECKING:
    from seawall.replay.outbox import OutboxProof


def outbox(
    context: typer.Context,
    is_compared: IsCompared = False,
    tables: TablesAt = None,
    state_dir: StateDir = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    is_json: Json = False,
) -> None:
    """Fold the news of all finished runs into messages twice, and compare run by run. Nothing is sent.

    With --compare also against the record of alerts on this host (alerts.state_dir), of the runs that it took
    in. A run that was judged again after it was told cannot be made again, and is named.

    Exits with 0 if all is equal, 1 at the first divergent run, 3 if --compare found no record here, 4 if
    there is no run, or only the record knows some as they were.
    """
    settings = load_settings(
        context,
        endpoint_url=endpoint_url,
        region=region,
        more={
            "audit.tables": ("--tables", tables),
            "alerts.state_dir": ("--state-dir", state_dir),
        },
    ).settings
    from audit_engine.alerts.outbox.spark import Finished
    from audit_engine.tables.place import root_of
    from seawall.alerts.delivery import state_dir as folder_of
    from seawall.audit.spark import session
    from seawall.replay.outbox import prove

    folder = folder_of(settings) if is_compared else None
    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        news = Finished(spark, root).since({})
    found = prove(news, folder)
    _say(found, is_compared=is_compared, is_json=is_json)
    if found.live is not None and found.live.judged_again:
        raise typer.Exit(INDETERMINATE)
    ends = (found.again,) if found.live is None else (found.again, found.live.first)
    raise typer.Exit(exit_code(*ends, is_live_known=found.live is not None if is_compared else None))


def _say(found: OutboxProof, *, is_compared: bool, is_json: bool) -> None:
    live = found.live
    if is_json:
        told = {"runs": found.runs, "again": as_json(found.again)}
        said = None if live is None else {**asdict(live), "first": as_json(live.first)}
        typer.echo(json.dumps({**told, "live": said}, indent=2))
        return
    say(f"{found.runs} runs, run by run", found.again)
    if live is not None:
        say(f"the record here, {live.runs} runs, {live.messages} messages", live.first)
        if live.forgotten:
            typer.echo(f"{live.forgotten} messages are forgotten there")
        for run in live.judged_again:
            typer.echo(f"run {run} was judged again after it was told: it cannot be made again as it was")
    elif is_compared:
        typer.echo("there is no record of alerts in alerts.state_dir")
