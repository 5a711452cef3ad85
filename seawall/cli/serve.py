"""`seawall serve`: the Kafka endpoint in front of the store and the brokers, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Prefix, Region, load_settings


def serve(
    context: typer.Context,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where clients come to; port 0: any that is free."),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Show so many brokers, on so many consecutive ports."),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="What clients are told instead: a balancer's address."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="Keep what is fetched here; instances may share it."),
    ] = None,
    cache_size: Annotated[
        str | None, typer.Option("--cache-size", metavar="SIZE", help='The most it takes: "50GiB".')
    ] = None,
    skip_gaps: Annotated[
        bool,
        typer.Option("--skip-gaps", help="Read on behind offsets on record as lost, instead of an error."),
    ] = False,
    metrics_listen: Annotated[
        str | None, typer.Option("--metrics-listen", metavar="HOST:PORT", help="/metrics, /healthz, /readyz.")
    ] = None,
    address_file: Annotated[
        Path | None,
        typer.Option("--address-file", metavar="FILE", help="Write the addresses listened on here."),
    ] = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Serve tiered topics to any Kafka client, from first to live.

    Clients take it for a broker: point bootstrap.servers at it. What is in the bucket comes from the bucket,
    all else, group membership included, from the real brokers, whose addresses no client is told. It only
    reads: whoever produces is refused.

    Anybody on this machine may read. To be reached from others, it asks for client certificates
    (serve.tls_client_ca) or passes their SASL/PLAIN credentials on to the cluster (serve.sasl).

    Ends on SIGTERM, when each client has the answer that it waits for.

    Examples:

    seawall serve --listen 127.0.0.1:9192 --cache /var/cache/seawall

    kcat -b 127.0.0.1:9192 -C -t orders -o beginning
    """
    loaded = load_settings(
        context,
        bootstrap=bootstrap,
        bucket=bucket,
        prefix=prefix,
        endpoint_url=endpoint_url,
        region=region,
        more={
            "serve.listen": ("--listen", listen),
            "serve.nodes": ("--nodes", None if nodes is None else str(nodes)),
            "serve.advertise": ("--advertise", advertise),
            "serve.cache_dir": ("--cache", None if cache is None else str(cache)),
            "serve.cache_bytes": ("--cache-size", cache_size),
            "serve.skip_gaps": ("--skip-gaps", "true" if skip_gaps else None),
            "serve.metrics_listen": ("--metrics-listen", metrics_listen),
        },
    )
    from seawall.agent import logs
    from seawall.serve.run import World, run

    logs.set_up()

    def listening(clients: str, metrics: str) -> None:
        if address_file is not None:
            partial = address_file.with_name(address_file.name + ".partial")
            partial.write_text(f"{clients}\n{metrics}\n")
            partial.replace(address_file)

    run(loaded.settings, World(log=logs.logger(), on_listening=listening))
