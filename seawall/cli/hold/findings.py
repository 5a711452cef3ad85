"""`seawall hold findings`: the holds that the last run's critical findings ask for."""

from __future__ import annotations

import typer

from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Prefix, Region, load_settings


def findings(
    context: typer.Context,
    tables: TablesAt = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Place a hold on each log of an incident that has a critical finding open.

    `seawall audit run` does so at its end where kafka.bootstrap is set. This is for where it is not, or where
    it did not come to its end: what stands is left, and what somebody released is not placed again.

    Exits with 0 if every log is held that a finding asks for, 3 if one is not.
    """
    settings = load_settings(
        context,
        bootstrap=bootstrap,
        bucket=bucket,
        prefix=prefix,
        endpoint_url=endpoint_url,
        region=region,
        more={"audit.tables": ("--tables", tables)},
    ).settings
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session
    from seawall.holds.of_run import place_for

    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        found = Verdicts(spark, root).findings()
    is_whole = place_for(settings, found, typer.echo)
    raise typer.Exit(CLEAN if is_whole else PARTIAL)
