"""`seawall agent`: the observers and the uploader beside one broker, until it is told to stop."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Prefix, Region, load_settings


def agent(
    context: typer.Context,
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="A log dir of the broker; repeat it for several."),
    ] = None,
    server_properties: Annotated[
        Path | None,
        typer.Option("--server-properties", metavar="FILE", help="The broker's own file, for its log dirs."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="PATTERN", help="Only these topics; repeat it for several."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PATTERN", help="Not these topics; repeat it for several."),
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option("--state-dir", metavar="DIR", help="The agent's own state, one a broker.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="/healthz, /readyz, /metrics. Port 0: any that is free."),
    ] = None,
    observe_only: Annotated[
        bool,
        typer.Option(
            "--observe-only",
            help="Gather evidence alone: no bucket needed, nothing copied, nothing removed, ever.",
        ),
    ] = False,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="SIZE", help='Upload at most so much a second: "50MiB".')
    ] = None,
    address_file: Annotated[
        Path | None,
        typer.Option("--address-file", metavar="FILE", help="Write the address that is listened on here."),
    ] = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Copy a broker's closed segments to S3, and tell of its logs.

    Run one on each broker's host, as a user who may read the log dirs; it never writes there. It says as
    events what can shorten a log, of every topic: they are on this disk first, then in __seawall_audit.
    Which topics are copied is declared by the policy (`seawall policy apply`); on a cluster without a
    policy, name them with --topic. Ends on SIGTERM when the steps under way are done.

    With --observe-only it is for a cluster that tiers by itself (KIP-405) or not at all: it needs no bucket,
    copies, claims, trims and expires nothing, and --topic, --exclude and --rate mean nothing to it.

    Examples:

    seawall agent --server-properties /etc/kafka/server.properties --topic 'orders*'

    seawall agent --server-properties /etc/kafka/server.properties --observe-only
    """
    loaded = load_settings(
        context,
        bootstrap=bootstrap,
        bucket=bucket,
        prefix=prefix,
        endpoint_url=endpoint_url,
        region=region,
        more={
            "agent.log_dirs": ("--log-dir", _joined(log_dir)),
            "agent.server_properties": ("--server-properties", _text(server_properties)),
            "agent.topics": ("--topic", _joined(topic)),
            "agent.exclude_topics": ("--exclude", _joined(exclude)),
            "agent.state_dir": ("--state-dir", _text(state_dir)),
            "agent.listen": ("--listen", listen),
            "agent.observe_only": ("--observe-only", "true" if observe_only else None),
            "agent.upload_bytes_per_s": ("--rate", rate),
        },
    )
    from seawall.agent import logs
    from seawall.agent.agent import run
    from seawall.agent.world import World

    logs.set_up()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def listening(address: str) -> None:
        if address_file is not None:
            partial = address_file.with_name(address_file.name + ".partial")
            partial.write_text(address + "\n")
            partial.replace(address_file)

    run(loaded.settings, World(environ=os.environ, log=logs.logger(), stop=stop, on_listening=listening))


def _joined(values: list[Path] | list[str] | None) -> str | None:
    return ",".join(map(str, values)) if values else None


def _text(value: Path | None) -> str | None:
    return None if value is None else str(value)
