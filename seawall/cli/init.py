"""`seawall init`: looks at a cluster that is there already, and writes the files to begin with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from seawall.cli.exit_codes import CLEAN, FINDINGS, PARTIAL
from seawall.cli.options import Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from seawall.init.assumed import PRICES, WORK, Prices

OBSERVE_S = 10.0
OBSERVE_S_MAX = 3600.0

Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "--bootstrap",
        metavar="HOST:PORT,...",
        help="Brokers to ask first, instead of kafka.bootstrap.",
    ),
]


def init(
    context: typer.Context,
    bootstrap: Servers = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", file_okay=False, help="Where the files go; made if need be."),
    ] = Path(),
    observe: Annotated[
        float,
        typer.Option(
            "--observe",
            metavar="SECONDS",
            min=0,
            max=OBSERVE_S_MAX,
            help="How long to watch what comes in. Longer says more of logs younger than a day.",
        ),
    ] = OBSERVE_S,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write over files that are there, but never over the settings in use."),
    ] = False,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="NAME=AMOUNT",
            help=f"Your price, in USD: {', '.join(Prices.names())}. Repeat it.",
        ),
    ] = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Look at a cluster, and write the files to begin with.

    For a cluster with years of data and no Seawall. It reads, and changes nothing: no topic, no setting, no
    object is made or altered. It needs Describe and DescribeConfigs, on the cluster and on topics; what it is
    not allowed to see is said, and the rest is done.

    Says what is there, what is a danger to data already, and what S3 and Spark would cost. Writes, each whole
    or not at all:

    seawall.toml   how the cluster is reached, and an agent that only observes. No secrets.

    policy.toml    declares what brokers keep today, and opts nothing in: no tiering, no trim, no deletion.

    permissions/   for each role the least that it needs: kafka-acls commands, and IAM policies.

    Exits with 0, or 1 if there is a danger to look at, or 3 if something could not be seen: the files are
    written in each case. 60: there are files already, and nothing was looked at. 24: no broker answers.

    Example: seawall init --bootstrap-servers kafka-1:9092 --bucket my-archive --out seawall-prod
    """
    prices = _prices(price or [])
    loaded = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.cli.init_view import as_tree, show  # what these import would slow every other verb's start
    from seawall.doctor import s3
    from seawall.init.files import refuse_if_there, write
    from seawall.init.kafka import KafkaEyes
    from seawall.init.look import Time, look
    from seawall.init.report import file_names, report

    refuse_if_there(out, file_names(), overwrite=force, settings_file=loaded.file)
    clocks = Time(now_ms=lambda: time.time_ns() // 1_000_000, monotonic_s=time.monotonic, sleep=time.sleep)
    with _progress() as progress:
        seen = look(KafkaEyes(loaded.settings), observe_s=observe, time=clocks, progress=progress)
    found = report(seen, loaded.settings, prices=prices, work=WORK)
    looked_at = tuple(s3.examine(loaded.settings.s3)) if loaded.settings.s3.bucket is not None else ()
    write(out, found.files, overwrite=force)
    if as_json:
        typer.echo(json.dumps(as_tree(found, looked_at, folder=out, prices=prices, work=WORK), indent=2))
    else:
        show(found, looked_at, folder=out, prices=prices, work=WORK)
    raise typer.Exit(FINDINGS if found.dangers else PARTIAL if found.gaps else CLEAN)


def _prices(told: list[str]) -> Prices:
    prices = PRICES
    for each in told:
        name, _, amount = each.partition("=")
        try:
            value = float(amount)
        except ValueError:
            value = -1.0
        if name not in Prices.names() or not 0 <= value < 1e6:
            allowed = f"{each!r} is not one of {', '.join(Prices.names())}, with =AMOUNT in USD behind it"
            raise typer.BadParameter(allowed, param_hint="--price")
        prices = prices.with_price(name, value)
    return prices


@contextmanager
def _progress() -> Iterator[Callable[..., None]]:
    """What is being done, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda *_, **__: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("looking", total=None)

        def tell(what: str, *, done: float, total: float) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield tell
