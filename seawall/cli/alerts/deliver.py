"""`seawall alerts deliver`: take in what runs left for people, and tell them."""

from __future__ import annotations

from typing import Annotated

import typer

from seawall.cli.alerts.options import ForSeconds, StateDir
from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.exit_codes import PARTIAL
from seawall.cli.options import EndpointUrl, Region, load_settings


def deliver(
    context: typer.Context,
    is_known_only: Annotated[
        bool,
        typer.Option(
            "--known-only", help="Only what was taken in before: no tables are read, no Spark started."
        ),
    ] = False,
    for_s: ForSeconds = None,
    tables: TablesAt = None,
    state_dir: StateDir = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Tell every endpoint what waits for it.

    `seawall audit run` does so at its end. This is for what it left: run it every few minutes with
    --known-only, so that what a receiver did not take is tried again, over three days, and an Alertmanager
    that was restarted hears of what stands. What was delivered is not sent again.

    Exits with 0 if everything arrived, 3 if something waits, was refused, or an endpoint is disabled.
    """
    settings = load_settings(
        context,
        endpoint_url=endpoint_url,
        region=region,
        more={
            "audit.tables": ("--tables", tables),
            "alerts.state_dir": ("--state-dir", state_dir),
            "alerts.deliver_s": ("--for", None if for_s is None else str(for_s)),
        },
    ).settings
    from seawall.alerts.delivery import now_ms, opened, said

    with opened(settings) as alerts:
        if not is_known_only:
            from audit_engine.alerts.outbox.spark import Finished
            from audit_engine.tables.place import root_of
            from seawall.audit.spark import session

            root = root_of(tables_at(settings))
            with session(settings, root) as (spark, _):
                alerts.deliverer.take_in(Finished(spark, root))
        until_ms = now_ms() + settings.alerts.deliver_s * 1000
        is_whole = said(alerts.deliverer.deliver(until_ms=until_ms), typer.echo)
        if not alerts.endpoints:
            typer.echo("no endpoint is set: docs/ALERTS.md")
    if not is_whole:
        raise typer.Exit(PARTIAL)
