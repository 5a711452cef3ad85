"""`seawall audit ingest`: the topic of events into the tables of evidence."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from audit_engine.tables.errors import AuditTableError
from seawall.cli.audit.options import IsOnlyDriver, Master, TablesAt, tables_at, today
from seawall.cli.exit_codes import CLEAN, FINDINGS
from seawall.cli.options import Bootstrap, EndpointUrl, Json, Region, load_settings

if TYPE_CHECKING:
    from audit_engine.ingest.spark import Ingest, Ingested


def ingest(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once/--continuous", help="All that is there now, or on until SIGTERM.")
    ] = True,
    tables: TablesAt = None,
    is_only_driver: IsOnlyDriver = False,
    master: Master = None,
    bootstrap: Bootstrap = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Append the events in Kafka to Delta tables, each exactly once.

    Where to go on is read from the tables themselves; there is no other state, and a run that is killed at
    any point is taken up by the next. One ingest of the same tables at a time.

    With --continuous, what `seawall audit maintain` does is done between two batches once a day. SIGTERM ends
    it behind the batch that is being written.

    Exits with 0 if all is in audit_events, 1 if something had to go to audit_quarantine or the topic's
    retention took events that were never ingested. Of each such thing one run says so, the one that went past
    it: 1 is an alarm, and not to be tried again.
    """
    loaded = load_settings(
        context,
        bootstrap=bootstrap,
        endpoint_url=endpoint_url,
        region=region,
        more={"audit.tables": ("--tables", tables)},
    )
    settings = loaded.settings
    from audit_engine.ingest.client import java_properties, self_contained
    from audit_engine.tables.place import root_of
    from seawall.connections import kafka_config

    root = root_of(tables_at(settings))
    config = kafka_config(settings, client_id="seawall-ingest")
    client = self_contained(java_properties(config))
    stop = Event()
    if not once:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
    from audit_engine.ingest.kafka import KafkaReach
    from audit_engine.ingest.spark import Ingest, IngestSource
    from audit_engine.tables.spark import open_tables
    from seawall.audit.spark import session
    from seawall.audit.upkeep.spark import upkeep

    source = IngestSource(topic=settings.audit.topic, client=client, reach=KafkaReach(config))
    with session(settings, root, is_only_driver=is_only_driver, master=master) as (spark, folder):
        run = Ingest(
            spark,
            open_tables(spark, root),
            source,
            day=today,
            batch_records_max=settings.audit.batch_records_max,
            scratch=folder,
        )
        if once:
            done = run.once()
        else:
            between = _Between(lambda: upkeep(spark, root), run)
            done = run.continuously(stop, every_s=settings.audit.commit_every_s, between=between)
    _say(done, as_json=as_json)
    raise typer.Exit(FINDINGS if done.lost or done.quarantined else CLEAN)


class _Between:
    """After each batch of a service: a line for its log, and once a day the tables' upkeep."""

    def __init__(self, upkeep: Callable[[], object], run: Ingest) -> None:
        self._upkeep = upkeep
        self._run = run
        self._done_on = today()

    def __call__(self) -> None:
        done = self._run.so_far
        typer.echo(_counted(done), err=True)
        if self._done_on == today():
            return
        self._done_on = today()
        try:
            self._upkeep()
        except AuditTableError as failed:  # evidence goes before tidiness; tomorrow is another day
            typer.echo(f"upkeep was given up: {failed}", err=True)


def _counted(done: Ingested) -> str:
    return f"{done.offsets} offsets in {done.batches} commits, {done.quarantined} records in quarantine"


def _say(done: Ingested, *, as_json: bool) -> None:
    if as_json:
        shown = {
            "batches": done.batches,
            "offsets": done.offsets,
            "quarantined": done.quarantined,
            "lost": [each._asdict() for each in done.lost],
            "expired_before_first_ingest": [each._asdict() for each in done.never_there],
        }
        typer.echo(json.dumps(shown, indent=2))
        return
    typer.echo(_counted(done))
    for each in done.never_there:
        typer.echo(
            f"partition {each.partition}: [{each.start}, {each.end}) had expired before the first ingest"
        )
    for each in done.lost:
        typer.echo(
            f"LOST partition {each.partition}: [{each.start}, {each.end}) expired before it was ingested"
        )
