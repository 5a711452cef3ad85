"""`seawall tier scrub`: is what the metadata says of the bucket there, byte for byte?"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from rules.events import ScrubDepth, ScrubOutcome
from rules.identity import LogId
from rules.policy.quantities import read_bytes, read_time
from seawall.cli.console import stdout_console
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from seawall.cli.tier.options import size
from seawall.settings import Settings
from tiering.scrub.damage import Checked
from tiering.scrub.plan import Subset
from tiering.scrub.ports import WORKERS, WORKERS_MAX, Ask, Ports, Progress
from tiering.scrub.report import Report
from tiering.scrub.run import scrub as scrub_once

if TYPE_CHECKING:
    from seawall.tier.scrub import Evidence, ScrubTable

BURST_BYTES = 2 * 1024 * 1024  # of the rate: a piece of the stream
MARKS = {
    ScrubOutcome.VERIFIED: ("ok", "green"),
    ScrubOutcome.FAILED: ("FAILED", "bold red"),
    ScrubOutcome.SKIPPED: ("skipped", "dim"),
    ScrubOutcome.INCONCLUSIVE: ("unclear", "yellow"),
}


def _amount(given: str | None) -> str | None:
    return None if given is None else str(_at_least_one(read_bytes, given))


def _length(given: str | None) -> str | None:
    return None if given is None else str(_at_least_one(read_time, given))


def _at_least_one(read: Callable[[object], int], given: str) -> int:
    try:
        value = read(int(given) if given.isdigit() else given)
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}") from refused
    if value < 1:
        raise typer.BadParameter("must be more than nothing")
    return value


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
        typer.Option(metavar="SIZE", callback=_amount, help="Read at most so much, such as 200GiB."),
    ] = None,
    max_duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", callback=_length, help="End after so long, such as 6h."),
    ] = None,
    subset: Annotated[
        str,
        typer.Option(
            metavar="N/T", callback=_subset, help="The Nth of T shares: several hosts, or days of a week."
        ),
    ] = "1/1",
    rate: Annotated[
        str | None,
        typer.Option(metavar="SIZE", callback=_amount, help="Read at most so much a second, such as 50MiB."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=WORKERS_MAX, help="Segments that are read at once.")
    ] = WORKERS,
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

    Exits with 0 if all that was looked at is right, 1 if something is wrong, 3 if a segment is larger than
    --max-bytes, 4 if something could not be told or nothing was looked at.

    Example, nightly: seawall tier scrub --max-bytes 500GiB --max-duration 5h --rate 50MiB
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
        workers=workers,
        is_whole=not named,
    )
    right: list[Checked] = []  # for JSON, with --all; people are told at once
    began_s = time.monotonic()
    with ExitStack() as stack:
        paced = None if rate is None else int(rate)
        table, ports, kept = _opened(stack, settings, named, state_dir, rate=paced, with_events=not no_events)
        tell = _teller(stdout_console())

        def on_checked(checked: Checked) -> None:
            is_right = checked.ended is ScrubOutcome.VERIFIED
            if as_json and show_all and is_right:
                right.append(checked)
            elif not as_json and (show_all or not is_right):
                tell(checked)

        with _bar() as on_progress:
            report = scrub_once(ports, ask, on_checked=on_checked, on_progress=on_progress)
        if kept is not None:
            _close(kept)
    took_s = time.monotonic() - began_s
    if as_json:
        typer.echo(json.dumps(_as_json(report, ask, [*report.told, *right], table, took_s), indent=2))
    else:
        _print(report, ask, table, named, took_s)
    raise typer.Exit(_exit_code(report))


def _opened(
    stack: ExitStack,
    settings: Settings,
    topics: frozenset[str],
    state_dir: Path | None,
    *,
    rate: int | None,
    with_events: bool,
) -> tuple[ScrubTable, Ports, Evidence | None]:
    from seawall.connections import key_layout, segment_store
    from seawall.tier.following import followed
    from seawall.tier.scrub import NoEvents, ScrubTable, evidence, now_ms, state_folder
    from tiering.scrub.memory import Memory
    from tiering.store.retry import RetryPolicy
    from tiering.store.throttle import Throttle

    # A segment that cannot be told now has its turn in the next run: less patience than an upload needs.
    store = segment_store(settings, policy=RetryPolicy(attempts_max=5, attempt_s=30.0, overall_s=60.0))
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


def _exit_code(report: Report) -> int:
    if report.has_findings:
        return FINDINGS
    if report.is_untold:
        return INDETERMINATE
    return PARTIAL if report.segments_too_large else CLEAN


def _teller(console: Console) -> Callable[[Checked], None]:
    def tell(checked: Checked) -> None:
        mark, style = MARKS[checked.ended]
        record = checked.record
        name = f"{record.topic}-{record.log.partition} at {record.base_offset} .{checked.kind.value}"
        console.print(Text.assemble((f"{mark:9}", style), name, ("  " + checked.key, "dim")))
        if checked.ended is not ScrubOutcome.VERIFIED:
            console.print(f"         {checked.detail}")

    return tell


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    """A bar over the bytes on standard error, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("listing", total=None)

        def on_progress(now: Progress) -> None:
            what = f"listing, {now.listing} logs to go"
            if now.total_segments:
                what = f"scrubbing, {now.segments} of {now.total_segments} segments"
            total = max(now.total_bytes, now.done_bytes) or None
            bar.update(task, description=what, completed=now.done_bytes, total=total)

        yield on_progress


def _print(report: Report, ask: Ask, table: ScrubTable, topics: frozenset[str], took_s: float) -> None:
    for unknown in report.unknown:
        where = _name(table, unknown.log)
        typer.echo(f"unknown  {where}  {unknown.found.key}\n         {unknown.found.problem.detail}")
    for unlisted in report.unlisted:
        typer.echo(f"unclear  {_name(table, unlisted.log)}  its listing\n         {unlisted.why}")
    looked = "asked for" if ask.depth is ScrubDepth.LISTED else f"read, {size(report.read_bytes)}"
    said = [f"{report.counts[each]} {each.value}" for each in ScrubOutcome]
    if not report.logs_listed and not report.segments:
        typer.echo(f"nothing of {', '.join(sorted(topics))} is tiered" if topics else "nothing was looked at")
    typer.echo(
        f"{report.logs_listed} logs listed, {report.objects_listed} objects; {report.segments} segments "
        f"{looked}, in {took_s:.1f} s"
    )
    typer.echo(f"{', '.join(said)}; {report.unknown_count} unknown")
    for line in _left(report):
        typer.echo(line)


def _left(report: Report) -> Iterator[str]:
    """What was not looked at, and why."""
    if report.segments_left or report.logs_left:
        more = f" and {report.logs_left} logs to list" if report.logs_left else ""
        yield f"left for the next run: {report.segments_left} segments{more}"
    if report.segments_too_large:
        yield f"{report.segments_too_large} segments are larger than --max-bytes: no such run reaches them"
    if report.settled_by_second_look:
        yield f"{report.settled_by_second_look} looked wrong once, and right when looked at again"
    if report.stopped is not None:
        yield f"stopped early: {report.stopped}"
    if report.is_all_missing:
        yield "nothing that the metadata names is in this bucket: is it the right one? (s3.bucket, s3.prefix)"


def _name(table: ScrubTable, log: LogId) -> str:
    return f"{table.label(log) or log.topic_id}-{log.partition}"


def _as_json(
    report: Report, ask: Ask, found: Sequence[Checked], table: ScrubTable, took_s: float
) -> dict[str, Any]:
    return {
        "depth": ask.depth.value,
        "subset": str(ask.subset),
        "objects": [_object(each) for each in found],
        "unknown": [
            {**_log(table, log), "key": each.key, "detail": each.problem.detail}
            for log, each in report.unknown
        ],
        "unlisted": [{**_log(table, log), "reason": why} for log, why in report.unlisted],
        "totals": {
            **{each.value: report.counts[each] for each in ScrubOutcome},
            "unknown": report.unknown_count,
            "logs_listed": report.logs_listed,
            "logs_unlisted": report.unlisted_count,
            "logs_left": report.logs_left,
            "objects_listed": report.objects_listed,
            "segments": report.segments,
            "segments_left": report.segments_left,
            "segments_too_large": report.segments_too_large,
            "settled_by_second_look": report.settled_by_second_look,
            "read_bytes": report.read_bytes,
            "seconds": round(took_s, 3),
        },
        "stopped": report.stopped,
    }


def _log(table: ScrubTable, log: LogId) -> dict[str, Any]:
    return {"topic": table.label(log), "topic_id": log.topic_id, "partition": log.partition}


def _object(checked: Checked) -> dict[str, Any]:
    record, ref = checked.record, checked.ref
    return {
        "topic": record.topic,
        "topic_id": record.log.topic_id,
        "partition": record.log.partition,
        "segment_id": record.segment_id,
        "base_offset": record.base_offset,
        "end_offset": record.end_offset,
        "key": checked.key,
        "version_id": None if ref is None else ref.version_id,
        "size_bytes": None if ref is None else ref.size_bytes,
        "depth": checked.depth.value,
        "outcome": checked.ended.value,
        "problem": checked.problem,
        "detail": checked.detail,
    }
