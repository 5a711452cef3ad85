"""`seawall replay ingest`: the rows of evidence, from the topic of events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.options import Bootstrap, EndpointUrl, Json, Region, load_settings
from seawall.cli.replay.said import IsCompared, as_json, exit_code, say

if TYPE_CHECKING:
    from seawall.replay.ingest.spark import IngestProof


def ingest(
    context: typer.Context,
    is_compared: IsCompared = False,
    tables: TablesAt = None,
    bootstrap: Bootstrap = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    is_json: Json = False,
) -> None:
    """Make the rows of the topic of events twice, otherwise divided, and compare offset by offset.

    With --compare also against audit_events and audit_quarantine, as far as they have come. What an older
    version could not read, and this one can, is counted; what the topic's retention took since is, too.

    Exits with 0 if all is equal, 1 at the first divergent offset, 3 if --compare found no tables, 4 if the
    topic is empty.
    """
    settings = load_settings(
        context,
        bootstrap=bootstrap,
        endpoint_url=endpoint_url,
        region=region,
        more={"audit.tables": ("--tables", tables)},
    ).settings
    from audit_engine.ingest.client import java_properties, self_contained
    from audit_engine.ingest.kafka import KafkaReach
    from audit_engine.ingest.spark import IngestSource
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session
    from seawall.connections import kafka_config
    from seawall.replay.ingest.spark import prove

    config = kafka_config(settings, client_id="seawall-replay")
    root = root_of(tables_at(settings))
    source = IngestSource(
        topic=settings.audit.topic,
        client=self_contained(java_properties(config)),
        reach=KafkaReach(config),
    )
    with session(settings, root) as (spark, _):
        found = prove(spark, root, source, is_compared=is_compared)
    _say(found, is_compared=is_compared, is_json=is_json)
    ends = (found.again,) if found.live is None else (found.again, found.live.first)
    raise typer.Exit(exit_code(*ends, is_live_known=found.live is not None if is_compared else None))


def _say(found: IngestProof, *, is_compared: bool, is_json: bool) -> None:
    live = found.live
    if is_json:
        said = None
        if live is not None:
            counts = {"not_yet": found.not_yet, "gone": found.gone, "read_since": live.read_since}
            said = {"rows": live.rows, **counts, "first": as_json(live.first)}
        typer.echo(json.dumps({"again": as_json(found.again), "live": said}, indent=2))
        return
    say("the topic's rows, offset by offset", found.again)
    if live is not None:
        say(f"the tables, {live.rows} rows", live.first)
        for count, what in (
            (live.read_since, "rows of an older version can be read better by now"),
            (found.not_yet, "offsets are not ingested yet"),
            (found.gone, "rows are of records that the topic has not any more"),
        ):
            if count:
                typer.echo(f"{count} {what}")
    elif is_compared:
        typer.echo("there are no tables of evidence in audit.tables")
