"""The verb: resolves what is asked for, reads it, and says what of it is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from seawall.cli.exit_codes import CLEAN, INDETERMINATE, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Region, load_settings
from seawall.cli.read import source
from seawall.cli.read.bounds import AtOffset, AtTime, Bound, parse_bound, spoken
from seawall.cli.read.outputs import JsonLines, Output, ParquetFile, RawFile, TextLines, whole_file
from seawall.cli.read.target import Target, find_target, parse_target
from tiering.reader.disk_cache import DiskCache
from tiering.reader.errors import GapInRange
from tiering.reader.interface import MIB, Gap, Isolation, TieredLog, tiered_log
from tiering.reader.reader import TieredReader

STEP_OFFSETS = 1000  # between two looks of the bar


class Gaps(str, Enum):
    """The choices of --gaps."""

    TELL = "tell"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked of each log."""

    topic: str
    start: Bound | None
    end: Bound | None
    isolation: Isolation
    gaps: Gaps
    max_records: int | None


@dataclass(slots=True)
class Missing:
    """What of the range was not there; each is told as it is met."""

    count: int = 0

    def tell(self, what: str) -> None:
        self.count += 1
        typer.echo(f"seawall: {what}", err=True)


def read(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="TOPIC[:PARTITION]", help="A topic by name, or one partition of it.")
    ],
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="OFFSET|TIME", help="The first record. Default: where the tier starts."
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="OFFSET|TIME", help="The record to stop before. Default: the tier's end."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines; what is not UTF-8 as base64.")
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option("--parquet", metavar="FILE", help="Write a Parquet file with typed columns."),
    ] = None,
    raw: Annotated[
        Path | None,
        typer.Option(
            "--raw",
            metavar="FILE",
            help="Write the batches of one partition byte for byte, aborted and control ones included. Named "
            "as a segment (20 digits and .log), `seawall log dump` reads it.",
        ),
    ] = None,
    isolation: Annotated[
        Isolation, typer.Option(help="Whether records of aborted transactions are shown.")
    ] = Isolation.READ_COMMITTED,
    max_records: Annotated[
        int | None, typer.Option("--max-records", min=1, metavar="N", help="Stop after N records.")
    ] = None,
    gaps: Annotated[
        Gaps, typer.Option(help="A range on record as lost: tell and go on, or fail.")
    ] = Gaps.TELL,
    topic_id: Annotated[
        str | None,
        typer.Option("--topic-id", metavar="ID", help="Which topic of that name, where it was made again."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache", metavar="DIR", help="Keep what is fetched here; several readers may share it."
        ),
    ] = None,
    cache_mib: Annotated[
        int, typer.Option("--cache-mib", min=8, metavar="N", help="The most that --cache may take.")
    ] = 1024,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Read the records of a topic back from the bucket.

    Each offset comes once, and every byte is held against its checksum.

    OFFSET is a number. TIME is ISO 8601 (2026-11-18T09:30:00Z; UTC if it says no zone) or milliseconds since
    1970 behind an @ (@1763458200000). --from TIME begins at the first record of that time or later, --to TIME
    ends before the next one that is. The broker is asked only for the metadata topic: what is not in the tier
    yet is not read.

    Without --json, --parquet or --raw, prints one line a record, tabs between: partition, offset, time, key,
    value, headers. A null is \\N; control characters and bytes that are not UTF-8 are escaped.

    Exit code 0: all that was asked for. 3: some of the range is not in the tier, or lost; standard error says
    which. 4: nothing is in the tier yet. 34: an object is damaged. 35: lost, with --gaps fail.
    36: an object is missing. 46: no such topic or partition in the tier.

    Example: seawall read orders:0 --from 2026-11-18T09:00Z --to 2026-11-18T10:00Z --json
    """
    if sum((as_json, parquet is not None, raw is not None)) > 1:
        raise typer.BadParameter("--json, --parquet and --raw exclude each other")
    try:
        topic, partition = parse_target(target)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong), param_hint="TOPIC[:PARTITION]") from wrong
    ask = Ask(
        topic=topic,
        start=_bound(start, "--from"),
        end=_bound(end, "--to"),
        isolation=isolation,
        gaps=gaps,
        max_records=max_records,
    )
    if (
        isinstance(ask.start, AtOffset)
        and isinstance(ask.end, AtOffset)
        and ask.start.offset > ask.end.offset
    ):
        raise typer.BadParameter("--from is behind --to")
    if raw is not None and (partition is None or max_records is not None):
        raise typer.BadParameter("--raw takes one partition (TOPIC:PARTITION) and no --max-records")
    settings = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, endpoint_url=endpoint_url, region=region
    ).settings
    missing = Missing()
    in_file = parquet is not None or raw is not None
    with ExitStack() as stack:
        with _bar("reading the metadata topic", shown=True) as progress:
            tier = source.open_tier(settings, progress)
        found = find_target(tier.table, topic, partition, topic_id)
        for other in found.passed_over:
            typer.echo(f"seawall: {topic} is {found.topic_id} now; not read: {other}", err=True)
        chunks = None if cache is None else DiskCache(cache, limit_bytes=cache_mib * MIB)
        reader = stack.enter_context(TieredReader(tier.objects, cache=chunks))
        logs = list(_opened(tier, found, missing))
        if not logs:
            raise typer.Exit(INDETERMINATE)
        ranges = [(log, *_range(reader, log, ask, missing)) for log in logs]
        total = sum(last - first for _, first, last in ranges)
        progress = stack.enter_context(_bar("reading", shown=in_file or not Console().is_terminal))
        work = _Work(reader=reader, ask=ask, missing=missing, progress=progress, total=total)
        if raw is not None:
            file = stack.enter_context(whole_file(raw))
            for log, first, last in ranges:
                work.copy_batches(log, first, last, RawFile(file))
        else:
            work.copy_records(ranges, _output(stack, topic, parquet, as_json=as_json))
    raise typer.Exit(PARTIAL if missing.count else CLEAN)


@dataclass(slots=True, kw_only=True)
class _Work:
    """The reading itself."""

    reader: TieredReader
    ask: Ask
    missing: Missing
    progress: Callable[[int, int], None]
    total: int
    done: int = 0

    def copy_records(self, ranges: list[tuple[TieredLog, int, int]], output: Output) -> None:
        left = self.ask.max_records
        for log, first, last in ranges:
            partition, told = log.log.partition, first
            items = self.reader.records_and_gaps(log, first, last, isolation=self.ask.isolation)
            for item in items:
                if isinstance(item, Gap):
                    self._tell_gap(log, item)
                    continue
                output.write(partition, item)
                if item.offset - told >= STEP_OFFSETS:
                    self._advance(item.offset - told)
                    told = item.offset
                if left is not None:
                    left -= 1
                    if left == 0:
                        return
            self._advance(last - told)

    def copy_batches(self, log: TieredLog, first: int, last: int, output: RawFile) -> None:
        for item in self.reader.batches_and_gaps(log, first, last):
            if isinstance(item, Gap):
                self._tell_gap(log, item)
            else:
                output.write(item)
                self._advance(item.end - item.start)

    def _advance(self, offsets: int) -> None:
        self.done += offsets
        self.progress(self.done, self.total)

    def _tell_gap(self, log: TieredLog, gap: Gap) -> None:
        if self.ask.gaps is Gaps.FAIL:
            raise GapInRange(log=log.log, start=gap.start, end=gap.end)
        self.missing.tell(
            f"{self.ask.topic}-{log.log.partition}: [{gap.start}, {gap.end}) is lost: on record as a gap, "
            "its bytes nowhere"
        )


def _opened(tier: source.Tier, target: Target, missing: Missing) -> Iterator[TieredLog]:
    """The logs of which there is anything; the others are told."""
    for log in target.logs:
        found = tiered_log(tier.table, log)
        assert isinstance(found, TieredLog), "a target's logs have a record, which says where they start"
        if found.start < found.end:
            yield found
        else:
            missing.tell(f"{target.topic}-{log.partition}: nothing of it is in the tier yet")


def _range(reader: TieredReader, log: TieredLog, ask: Ask, missing: Missing) -> tuple[int, int]:
    """What of the tier is meant; what is asked for beyond it is told."""
    name = f"{ask.topic}-{log.log.partition}"
    first = _offset(reader, log, ask.start, log.start, log.start)
    # Of times out of order the one that ends a range is looked for behind its beginning.
    last = _offset(reader, log, ask.end, log.end, log.end if first is None else first)
    for bound, offset in ((ask.start, first), (ask.end, last)):
        if offset is None and isinstance(bound, AtTime):
            missing.tell(
                f"{name}: no record of {spoken(bound.timestamp_ms)} or later is in the tier, which ends at "
                f"offset {log.end}: the broker may have more"
            )
    if first is not None and first == last and isinstance(ask.start, AtTime) and isinstance(ask.end, AtTime):
        typer.echo(
            f"seawall: {name}: nothing lies between: the first record of {spoken(ask.start.timestamp_ms)} or "
            f"later, at offset {first}, is of {spoken(ask.end.timestamp_ms)} or later, too",
            err=True,
        )
    first = log.end if first is None else first
    last = log.end if last is None else last
    below, beyond = min(last, log.start), max(first, log.end)
    if first < below:
        missing.tell(f"{name}: [{first}, {below}) is not in the tier, which begins at {log.start}")
    if beyond < last:
        missing.tell(f"{name}: [{beyond}, {last}) is not in the tier, which ends at {log.end}")
    first = min(max(first, log.start), log.end)
    return first, max(first, min(last, log.end))


def _offset(
    reader: TieredReader, log: TieredLog, bound: Bound | None, default: int, search_from: int
) -> int | None:
    if bound is None:
        return default
    if isinstance(bound, AtOffset):
        return bound.offset
    return reader.offset_at(log, bound.timestamp_ms, start=search_from, with_control=False)


def _bound(text: str | None, option: str) -> Bound | None:
    if text is None:
        return None
    try:
        return parse_bound(text)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong), param_hint=option) from wrong


def _output(stack: ExitStack, topic: str, parquet: Path | None, *, as_json: bool) -> Output:
    if parquet is None:
        return JsonLines(topic) if as_json else TextLines()
    file = stack.enter_context(whole_file(parquet))
    return stack.enter_context(closing(ParquetFile(file, topic)))


@contextmanager
def _bar(what: str, *, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, on a terminal only."""
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda _done, _total: None
        return
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("offsets"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
