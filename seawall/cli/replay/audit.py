"""`seawall replay audit`: findings and statements, from the evidence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from seawall.cli.audit.options import TablesAt, tables_at, tables_settings
from seawall.cli.exit_codes import FINDINGS
from seawall.cli.options import EndpointUrl, Json, Region
from seawall.cli.replay.said import IsCompared, as_json, exit_code, say

if TYPE_CHECKING:
    from seawall.replay.audit.spark import AuditProof


def audit(
    context: typer.Context,
    is_compared: IsCompared = False,
    tables: TablesAt = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    is_json: Json = False,
) -> None:
    """Judge all evidence from its first event on, twice, otherwise divided, and compare finding by finding.

    With --compare also against what the runs came to one after another, each going on from what it carried.
    It is as slow as the history is long, and writes nothing.

    Exits with 0 if all is equal, 1 at the first divergent event, 4 if no log was judged.
    """
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    from audit_engine.run.history.spark import History
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session
    from seawall.replay.audit.spark import prove

    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        live = Verdicts(spark, root).findings()
        found = prove(spark, History(spark, root), live)
    _say(found, is_compared=is_compared, is_json=is_json)
    is_otherwise = is_compared and not found.live.is_none
    raise typer.Exit(FINDINGS if is_otherwise else exit_code(found.again))


def _say(found: AuditProof, *, is_compared: bool, is_json: bool) -> None:
    counts = {
        "only_rebuilt": len(found.live.only_here),
        "only_live": len(found.live.only_there),
        "otherwise": len(found.live.otherwise),
    }
    if is_json:
        told = {"findings": found.findings, "logs": found.logs, "again": as_json(found.again)}
        first = {"finding": found.first, "event": found.event} if found.first is not None else None
        typer.echo(json.dumps({**told, "live": {**counts, "first": first}}, indent=2))
        return
    say(f"{found.findings} findings and {found.logs} logs, judged anew", found.again)
    if not is_compared:
        return
    if found.first is None:
        typer.echo("the runs, one after another: equal")
        return
    event = found.event or "is not in the evidence"
    typer.echo(f"the runs, one after another: FIRST DIVERGENT EVENT {event}")
    first = found.first
    typer.echo(f"  finding {first['finding_id']}, {first['rule_id']}, {first['subject']}")
    typer.echo("  " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()))
