"""What `seawall tier scrub` shows: each object that is not right, a bar, the totals, the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from rules.identity import LogId
from rules.words import ScrubDepth, ScrubOutcome
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from seawall.cli.tier.options import size
from tiering.scrub.damage import Checked
from tiering.scrub.ports import Ask, Progress
from tiering.scrub.report import Report

if TYPE_CHECKING:
    from seawall.tier.scrub import ScrubTable

MARKS = {
    ScrubOutcome.VERIFIED: ("ok", "green"),
    ScrubOutcome.FAILED: ("FAILED", "bold red"),
    ScrubOutcome.SKIPPED: ("skipped", "dim"),
    ScrubOutcome.INCONCLUSIVE: ("unclear", "yellow"),
}


def exit_code(report: Report) -> int:
    if report.has_findings:
        return FINDINGS
    if report.is_untold:
        return INDETERMINATE
    return PARTIAL if report.segments_too_large else CLEAN


def teller(console: Console) -> Callable[[Checked], None]:
    def tell(checked: Checked) -> None:
        mark, style = MARKS[checked.ended]
        record = checked.record
        name = f"{record.topic}-{record.log.partition} at {record.base_offset} .{checked.kind.value}"
        console.print(Text.assemble((f"{mark:9}", style), name, ("  " + checked.key, "dim")))
        if checked.ended is not ScrubOutcome.VERIFIED:
            console.print(f"         {checked.detail}")

    return tell


@contextmanager
def bar() -> Iterator[Callable[[Progress], None]]:
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
    with Bar(*columns, console=console, transient=True) as shown:
        task = shown.add_task("listing", total=None)

        def on_progress(now: Progress) -> None:
            what = f"listing, {now.listing} logs to go"
            if now.total_segments:
                what = f"scrubbing, {now.segments} of {now.total_segments} segments"
            total = max(now.total_bytes, now.done_bytes) or None
            shown.update(task, description=what, completed=now.done_bytes, total=total)

        yield on_progress


def print_report(report: Report, ask: Ask, table: ScrubTable, topics: frozenset[str], took_s: float) -> None:
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
    if report.by_worker:
        shares = (f"{name} {count}" for name, count in sorted(report.by_worker.items()))
        typer.echo(f"segments read by {', '.join(shares)}")
    for line in left(report):
        typer.echo(line)


def left(report: Report) -> Iterator[str]:
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


def as_json_report(
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
        "workers": dict(sorted(report.by_worker.items())),
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
