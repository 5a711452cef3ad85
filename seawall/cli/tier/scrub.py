"""`seawall tier scrub`: is what the metadata says of the bucket there, byte for byte?"""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rules.words import ScrubDepth, ScrubOutcome
from seawall.cli.console import stdout_console
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from seawall.cli.tier.quantities import amount, length
from seawall.cli.tier.scrub_view import as_json_report, bar, exit_code, print_report, teller
from seawall.settings import Settings
from tiering.scrub.damage import Checked
from tiering.scrub.plan import Subset
from tiering.scrub.ports import WORKERS, WORKERS_MAX, Ask, Ports
from tiering.scrub.run import Shared, alone
from tiering.scrub.run import scrub as scrub_once

if TYPE_CHECKING:
    from seawall.tier.scrub import Evidence, ScrubTable

BURST_BYTES = 2 * 1024 * 1024  # of the rate: a piece of the stream
OTHERS = "kafka"  # the word for workers elsewhere


def _workers(given: str) -> str:
    if given == OTHERS or (given.isdigit() and 1 <= int(given) <= WORKERS_MAX):
        return given
    raise typer.BadParameter(f"must be a number from 1 to {WORKERS_MAX}, or {OTHERS}")


def _subset(given: str) -> str:
    try:
        return str(Subset.parse(given))
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}") from refused


def scrub(
    context: typer.Context,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Without any, all that are tiered.")
    ] = None,
    more_topics: Annotated[
        list[str] | None, typer.Option("--topic", metavar="NAME", help="The same as TOPIC.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--listed", help="Ask the store for sizes and checksums, and read no bytes.")
    ] = False,
    max_bytes: Annotated[
        str | None,
        typer.Option(metavar="SIZE", callback=amount, help="Read at most so much, such as 200GiB."),
    ] = None,
    max_duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", callback=length, help="End after so long, such as 6h."),
    ] = None,
    subset: Annotated[
        str,
        typer.Option(
            metavar="N/T", callback=_subset, help="The Nth of T shares: several hosts, or days of a week."
        ),
    ] = "1/1",
    rate: Annotated[
        str | None,
        typer.Option(metavar="SIZE", callback=amount, help="Read at most so much a second, such as 50MiB."),
    ] = None,
    workers: Annotated[
        str,
        typer.Option(
            metavar=f"N|{OTHERS}",
            callback=_workers,
            help="Segments that this process reads at once; or kafka: those that run as scrub-worker read.",
        ),
    ] = str(WORKERS),
    wait: Annotated[
        str,
        typer.Option(metavar="TIME", callback=length, help="With kafka: wait so long for a first worker."),
    ] = "30s",
    answer_within: Annotated[
        str,
        typer.Option(
            "--answer-within",
            metavar="TIME",
            callback=length,
            help="With kafka: a segment that no worker answers for in time is unclear. With --rate, longer.",
        ),
    ] = "1h",
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir",
            metavar="DIR",
            help="Where it remembers what it looked at when. One scrub at a time; one DIR for each share.",
        ),
    ] = None,
    no_events: Annotated[
        bool, typer.Option("--no-events", help="Leave no evidence in __seawall_audit.")
    ] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Tell of what is right, too.")] = False,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Verify that every copy in the bucket is what the metadata says.

    First lists each log with versions: an object that is missing, under a delete marker or another version,
    of another size, or known to no record. Then reads segments, those looked at longest ago first: every
    batch's CRC and offset, each object's checksum, the indexes and snapshots, and the record beside them.
    Read-only; memory stays bounded whatever the size of a segment.

    Each object ends verified, FAILED, skipped (removed meanwhile) or unclear. Nothing is FAILED before it was
    looked at twice, and the metadata read again after that; an error of the store is never "missing". A run
    that is cut off anywhere, or out of budget, is gone on with by the next one.

    With --workers kafka any number of hosts that run `seawall tier scrub-worker` read the segments; this
    process lists, hands out, judges and tells. What one of them finds wrong it looks at itself, too, before
    it says so.

    Exits with 0 if all that was looked at is right, 1 if something is wrong, 3 if a segment is larger than
    --max-bytes, 4 if something could not be told or nothing was looked at, 80 if there is no worker.

    Examples, nightly, by itself and by many:

    seawall tier scrub --max-bytes 500GiB --max-duration 5h --rate 50MiB

    seawall tier scrub --workers kafka --max-duration 5h --rate 2GiB
    """
    settings = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    ).settings
    named = frozenset([*(topics or ()), *(more_topics or ())])
    ask = Ask(
        depth=ScrubDepth.LISTED if listed else ScrubDepth.DEEP,
        subset=Subset.parse(subset),
        max_bytes=None if max_bytes is None else int(max_bytes),
        max_s=None if max_duration is None else int(max_duration) / 1000,
        workers=WORKERS if workers == OTHERS else int(workers),
        is_whole=not named,
    )
    right: list[Checked] = []  # for JSON, with --all; people are told at once
    began_s = time.monotonic()
    with ExitStack() as stack:
        paced = None if rate is None else int(rate)
        shared = _shared(
            stack, settings, ask, workers=workers, rate=paced, answer_ms=answer_within, wait_ms=wait
        )
        table, ports, kept = _opened(stack, settings, named, state_dir, rate=paced, with_events=not no_events)
        tell = teller(stdout_console())

        def on_checked(checked: Checked) -> None:
            is_right = checked.ended is ScrubOutcome.VERIFIED
            if as_json and show_all and is_right:
                right.append(checked)
            elif not as_json and (show_all or not is_right):
                tell(checked)

        with bar() as on_progress:
            report = scrub_once(ports, ask, on_checked=on_checked, on_progress=on_progress, shared=shared)
        if kept is not None:
            _close(kept)
    took_s = time.monotonic() - began_s
    if as_json:
        typer.echo(json.dumps(as_json_report(report, ask, [*report.told, *right], table, took_s), indent=2))
    else:
        print_report(report, ask, table, named, took_s)
    raise typer.Exit(exit_code(report))


def _shared(
    stack: ExitStack,
    settings: Settings,
    ask: Ask,
    *,
    workers: str,
    rate: int | None,
    answer_ms: str,
    wait_ms: str,
) -> Shared:
    """Who looks: this process, or those who are there."""
    if workers != OTHERS:
        return alone
    from seawall.tier.shared_scrub import shared_by

    opened = shared_by(
        settings,
        depth=ask.depth,
        rate=rate,
        answer_s=int(answer_ms) / 1000,
        wait_s=int(wait_ms) / 1000,
        say=lambda said: typer.echo(f"seawall: {said}", err=True),
    )
    return stack.enter_context(opened)


def _opened(
    stack: ExitStack,
    settings: Settings,
    topics: frozenset[str],
    state_dir: Path | None,
    *,
    rate: int | None,
    with_events: bool,
) -> tuple[ScrubTable, Ports, Evidence | None]:
    from seawall.connections import key_layout
    from seawall.tier.following import followed
    from seawall.tier.scrub import (
        NoEvents,
        ScrubTable,
        evidence,
        now_ms,
        scrubbed_store,
        state_folder,
    )
    from tiering.scrub.memory import Memory
    from tiering.store.throttle import Throttle

    store = scrubbed_store(settings)
    table = ScrubTable(followed=stack.enter_context(followed(settings)), topics=topics)
    cluster_id = table.followed.topic.cluster_id
    folder = state_folder(state_dir, cluster_id, os.environ)
    kept = stack.enter_context(evidence(settings, folder, cluster_id)) if with_events else None
    memory = Memory(folder, now_ms=now_ms())
    stack.callback(memory.close)
    for aside in (memory.set_aside, kept.set_aside.path if kept is not None and kept.set_aside else None):
        if aside is not None:
            typer.echo(f"seawall: a file could not be read, and was set aside: {aside}", err=True)
    throttle = Throttle(bytes_per_s=rate, burst_bytes=BURST_BYTES, clock=time.monotonic, sleep=time.sleep)
    ports = Ports(
        table=table,
        objects=store,
        memory=memory,
        sink=NoEvents() if kept is None else kept,
        layout=key_layout(settings),
        pace=throttle.take,
        clock=time.monotonic,
        now_ms=now_ms,
        new_id=lambda: str(uuid.uuid4()),
    )
    return table, ports, kept


def _close(kept: Evidence) -> None:
    """The run's last event, and what people must know of the others."""
    from seawall.tier.scrub import now_ms

    waiting = kept.close(lambda spool: spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=now_ms()))
    if waiting:
        typer.echo(f"seawall: Kafka does not have {waiting} events yet; the next run sends them", err=True)
    if kept.lost:
        typer.echo(f"seawall: {kept.lost} events found no room on this disk, and are lost", err=True)
