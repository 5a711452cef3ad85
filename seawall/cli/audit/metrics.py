"""`seawall audit metrics`: what the tables say, for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.audit.options import TablesAt
from seawall.cli.audit.verdicts import stand
from seawall.cli.options import EndpointUrl, Region


def metrics(
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write here, whole or not at all: a .prom file in the folder that node_exporter's textfile "
            "collector reads. Default: standard output.",
        ),
    ] = None,
    tables: TablesAt = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Say what the last run came to, in Prometheus's text format: docs/METRICS.md, docs/MONITORING.md.

    Run it after each run of the audit. Exits with 0 whatever the verdict is: `seawall audit status` judges.
    """
    from prometheus_client import CollectorRegistry, generate_latest

    from seawall.files import replace_whole
    from seawall.metrics.audit import AuditTold, audit_metrics
    from seawall.metrics.collected import Collected

    told = stand(context, tables, endpoint_url, region)
    whole = AuditTold(
        run=told.runs[0] if told.runs else None,
        findings=told.open_findings,
        worries=told.worries,
        now_ms=told.now_ms,
    )
    registry = CollectorRegistry()
    registry.register(Collected(collected=lambda: audit_metrics(whole)))
    text = generate_latest(registry).decode()
    if out is None:
        typer.echo(text, nl=False)
    else:
        replace_whole(out, text)
