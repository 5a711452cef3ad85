"""`seawall replay segments`: the reference table, from the topic of metadata."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from seawall.cli.exit_codes import FINDINGS
from seawall.cli.options import Bootstrap, Json, load_settings
from seawall.cli.replay.said import IsCompared, as_json, exit_code, say

if TYPE_CHECKING:
    from seawall.replay.segments import SegmentsProof


def segments(
    context: typer.Context,
    is_compared: IsCompared = False,
    bootstrap: Bootstrap = None,
    is_json: Json = False,
) -> None:
    """Execute the topic of metadata twice, and compare record by record; then the logs with an agent's way.

    With --compare also against the table that the agent of this host keeps on its disk (agent.state_dir).
    A log of which the topic has had records since cannot be compared, and is counted.

    Exits with 0 if all is equal, 1 at the first divergent event, 3 if --compare found no table here, 4 if the
    topic is empty.
    """
    settings = load_settings(context, bootstrap=bootstrap).settings
    from seawall.connections import kafka_config
    from seawall.replay.segments import prove
    from tiering.segments.kafka import check_topic

    config = kafka_config(settings, client_id="seawall-replay")
    folder = settings.agent.state_dir if is_compared else None
    state_dir = None if folder is None else Path(folder)
    found = prove(config, check_topic(config), state_dir, say=lambda line: typer.echo(line, err=True))
    if is_json:
        typer.echo(json.dumps(_as_json(found), indent=2))
    else:
        _say(found, is_compared=is_compared)
    differs = any(each.differs for each in found.live.values())
    is_live_known = bool(found.live) and not found.unread if is_compared else None
    code = exit_code(found.again, found.in_bulk, is_live_known=is_live_known)
    raise typer.Exit(FINDINGS if differs else code)


def _say(found: SegmentsProof, *, is_compared: bool) -> None:
    say(f"{found.records} records, record by record", found.again)
    say(f"{found.logs} logs as they stand, an agent's way", found.in_bulk)
    for partition, live in sorted(found.live.items()):
        told = f"partition {partition}, the agent's table: {live.equal} logs equal"
        typer.echo(f"{told}, {live.gone_past} that the topic has gone past")
        for each in live.differs:
            typer.echo(
                f"FIRST DIVERGENT EVENT of {each.log.topic_id}:{each.log.partition}: {each.at}, {each.key}"
            )
            typer.echo(f"  rebuilt: {each.rebuilt}")
            typer.echo(f"  live:    {each.live}")
    for unread in found.unread:
        typer.echo(f"partition {unread.partition}, the agent's table cannot be compared: {unread.detail}")
    if is_compared and not found.live:
        typer.echo("no agent keeps a table in agent.state_dir on this host")


def _as_json(found: SegmentsProof) -> dict[str, Any]:
    return {
        "records": found.records,
        "logs": found.logs,
        "again": as_json(found.again),
        "in_bulk": as_json(found.in_bulk),
        "live": {str(partition): asdict(each) for partition, each in sorted(found.live.items())},
        "unread": [{"partition": each.partition, "why": each.why.value} for each in found.unread],
    }
