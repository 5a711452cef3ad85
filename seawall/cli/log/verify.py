"""`seawall log verify`: are these bytes what Kafka wrote, all of them, without a hole?"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from seawall.cli.console import stdout_console
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.log.errors import NoSuchPath, NotKafkas, PathUnreadable
from tiering.log.directory import (
    FileKind,
    classify,
    is_log_dir_file,
    is_log_directory,
    partition_name,
)
from tiering.log.segment import Compaction, Depth
from tiering.log.split import scan_segment_in_parts
from tiering.log.verify import (
    Checked,
    Request,
    verify_file,
    verify_log_directory,
    verify_partition,
)
from tiering.outcome import Failed, Inconclusive, Skipped

Report = Callable[[Checked], None]
REDRAWN_EACH_S = 0.1


class Compacted(str, Enum):
    """The choices of --compacted."""

    AUTO = "auto"
    NEVER = "never"
    POSSIBLE = "possible"


@dataclass(slots=True)
class Totals:
    """What the run came to."""

    files: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    records: int = 0
    missing_offsets: int = 0

    def add(self, checked: Checked) -> None:
        self.files[_word(checked)] += 1
        if checked.scan is not None:
            self.bytes_read += checked.scan.valid_bytes
            self.records += checked.scan.record_count
            self.missing_offsets += checked.scan.missing_offsets

    def exit_code(self) -> int:
        if self.files["failed"]:
            return FINDINGS
        if self.files["inconclusive"] or not self.files["verified"]:
            return INDETERMINATE  # nothing looked at is nothing verified
        return CLEAN


def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="A file, a partition directory or a whole log dir."),
    ],
    records: Annotated[
        bool,
        typer.Option(
            "--records",
            help="Also decompress and parse every record, and follow every index entry. Five to ten times "
            "slower.",
        ),
    ] = False,
    compacted: Annotated[
        Compacted,
        typer.Option(
            help="Whether offsets may be missing. auto: where the log dir's cleaner-offset-checkpoint "
            "knows the log, or the topic is one that Kafka compacts."
        ),
    ] = Compacted.AUTO,
    show_all: Annotated[bool, typer.Option("--all", help="List the files that are fine, too.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines: one object a file, then the totals.")
    ] = False,
) -> None:
    """Verify segments and the files beside them: every CRC, offset chain, index and checkpoint.

    A segment that ends before the next one begins is a hole, unless its log was compacted: Kafka loads such
    a log without a word. Nothing is written, and a live broker may be running on the same files.

    Exit code 0: all verified. 1: something is wrong. 4: something could not be told, or nothing was there.
    """
    depth = Depth.RECORDS if records else Depth.BATCHES
    compaction = None if compacted is Compacted.AUTO else Compaction(compacted.value)
    request = Request(depth=depth, compaction=compaction, scan=scan_segment_in_parts)
    totals = Totals()
    console = stdout_console()
    report = _print_json if as_json else _printer(console, show_all=show_all)
    with _progress(paths) as on_progress:
        for path in paths:
            for checked in _verify_path(path, request, on_progress):
                totals.add(checked)
                report(checked)
    if as_json:
        typer.echo(json.dumps({"totals": _totals_json(totals)}))
    else:
        console.print(_summary(totals, depth))
    raise typer.Exit(totals.exit_code())


def _verify_path(path: Path, request: Request, on_progress: Callable[[int], None]) -> Iterator[Checked]:
    try:
        if not path.exists():
            raise NoSuchPath(path=path)
        if not path.is_dir():
            if classify(path).kind is FileKind.UNKNOWN and not is_log_dir_file(path):
                raise NotKafkas(path=path)
            yield verify_file(path, request, on_progress)
        elif is_log_directory(path):  # asked first: a log dir may be called `logs-2`, as a partition is
            yield from verify_log_directory(path, request, on_progress)
        elif partition_name(path.resolve().name) is not None:
            yield from verify_partition(path.resolve(), request, on_progress)
        else:
            raise NotKafkas(path=path)
    except PermissionError as exc:
        raise PathUnreadable(path=Path(exc.filename or path), why=exc.strerror or str(exc)) from exc


@contextmanager
def _progress(paths: list[Path]) -> Iterator[Callable[[int], None]]:
    """A bar over the bytes of all segments, on a terminal only.

    It is drawn when it is told something: a thread that draws it would keep the scan from forking.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    # Imported for a terminal only: it takes longer than a segment does.
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    total_bytes = sum(_segment_bytes(path) for path in paths)
    columns = (TextColumn("verifying"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task("verify", total=total_bytes)
        next_drawn_s = 0.0

        def advance(step_bytes: int) -> None:
            nonlocal next_drawn_s
            is_due = (now_s := monotonic()) >= next_drawn_s
            if is_due:
                next_drawn_s = now_s + REDRAWN_EACH_S
            bar.update(task, advance=step_bytes, refresh=is_due)

        yield advance


def _segment_bytes(path: Path) -> int:
    try:
        return sum(p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*.log")))
    except OSError:
        return 0  # an estimate for the bar; the run itself says what is wrong


def _word(checked: Checked) -> str:
    return type(checked.outcome).__name__.lower()


_MARKS = {
    "verified": ("ok", "green"),
    "failed": ("FAILED", "bold red"),
    "skipped": ("skipped", "dim"),
    "inconclusive": ("unclear", "yellow"),
}


def _printer(console: Console, *, show_all: bool) -> Report:
    def report(checked: Checked) -> None:
        word = _word(checked)
        if word == "verified" and not show_all:
            return
        if word == "skipped" and not show_all and checked.kind is not FileKind.UNKNOWN:
            return
        mark, style = _MARKS[word]
        console.print(Text.assemble((f"{mark:9}", style), str(checked.path), " ", (_range(checked), "dim")))
        for line in _reasons(checked):
            console.print(f"         {line}")

    return report


def _range(checked: Checked) -> str:
    if checked.scan is None:
        return ""
    scan = checked.scan
    holes = f", {scan.missing_offsets} offsets compacted away" if scan.missing_offsets else ""
    return (
        f"[{scan.base_offset}, {scan.data_end})  {scan.batch_count} batches  "
        f"{scan.record_count} records{holes}"
    )


def _reasons(checked: Checked) -> Iterator[str]:
    outcome = checked.outcome
    if isinstance(outcome, Failed):
        for problem in outcome.problems:
            where = f" at byte {problem.position}" if problem.position is not None else ""
            offset = f", offset {problem.offset}" if problem.offset is not None else ""
            yield f"{problem.kind}{where}{offset}: {problem.detail}"
    elif isinstance(outcome, Skipped | Inconclusive):
        yield outcome.reason


def _summary(totals: Totals, depth: Depth) -> Text:
    looked = "every record" if depth is Depth.RECORDS else "every batch"
    parts = [f"{count} {word}" for word, count in sorted(totals.files.items())]
    size = f"{totals.bytes_read / 2**20:,.1f} MiB, {totals.records:,} records"
    verdict = {
        CLEAN: ("verified", "bold green"),
        FINDINGS: ("damaged", "bold red"),
        INDETERMINATE: ("cannot tell", "bold yellow"),
    }[totals.exit_code()]
    return Text.assemble(verdict, f": {', '.join(parts) or 'no files'} ({size}, {looked})")


def _print_json(checked: Checked) -> None:
    outcome = checked.outcome
    row: dict[str, Any] = {
        "path": str(checked.path),
        "kind": checked.kind.value,
        "size_bytes": checked.size_bytes,
        "outcome": _word(checked),
    }
    if isinstance(outcome, Failed):
        row["problems"] = [
            {"kind": p.kind, "position": p.position, "offset": p.offset, "detail": p.detail}
            for p in outcome.problems
        ]
    elif isinstance(outcome, Skipped | Inconclusive):
        row["reason"] = outcome.reason
    if checked.scan is not None:
        scan = checked.scan
        row |= {
            "base_offset": scan.base_offset,
            "end_offset": checked.end_offset,
            "data_end": scan.data_end,
            "valid_bytes": scan.valid_bytes,
            "batches": scan.batch_count,
            "records": scan.record_count,
            "control_batches": scan.control_batch_count,
            "transactional_batches": scan.transactional_batch_count,
            "max_timestamp_ms": scan.max_timestamp_ms,
            "epochs": scan.epochs,
            "codecs": scan.codecs,
            "missing_offsets": scan.missing_offsets,
            "holes": scan.holes,
        }
    sys.stdout.write(json.dumps(row) + "\n")


def _totals_json(totals: Totals) -> dict[str, Any]:
    return {
        **{word: totals.files[word] for word in ("verified", "failed", "skipped", "inconclusive")},
        "bytes": totals.bytes_read,
        "records": totals.records,
        "missing_offsets": totals.missing_offsets,
    }
