"""`seawall tier scrub-worker`: look at segments for the scrubs that hand them out."""

from __future__ import annotations

import signal
from threading import Event
from typing import Annotated

import typer

from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Region, load_settings
from seawall.cli.tier.quantities import amount
from tiering.scrub.ports import WORKERS, WORKERS_MAX
from tiering.scrub.shared.topics import GROUP


def scrub_worker(
    context: typer.Context,
    threads: Annotated[
        int, typer.Option(min=1, max=WORKERS_MAX, help="Segments that are read at once.")
    ] = WORKERS,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", callback=amount, help="This host's own limit, whatever a scrub asks for."
        ),
    ] = None,
    group: Annotated[
        str, typer.Option(metavar="NAME", help="The consumer group: one, for all workers of a cluster.")
    ] = GROUP,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Look at segments for the scrubs that hand them out.

    Run as many as there are hosts to read with, each with the settings of the same cluster and bucket, and
    then `seawall tier scrub --workers kafka` on one of them. Each takes segments from the topic
    __seawall_scrub_tasks, looks at them just as the scrub itself would, and answers in
    __seawall_scrub_answers. It reads the bucket, and writes nothing there; what it finds it judges not.

    A worker may be killed at any time: what it was looking at another one gets, and an answer that came twice
    counts once. It stays until SIGTERM; a scrub may come and go meanwhile.

    Example: seawall tier scrub-worker --threads 8 --rate 500MiB
    """
    settings = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, endpoint_url=endpoint_url, region=region
    ).settings
    from seawall.agent import logs
    from seawall.tier.shared_scrub import work

    logs.set_up()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    paced = None if rate is None else int(rate)
    work(settings, group=group, threads=threads, rate=paced, stop=stop, log=logs.logger())
