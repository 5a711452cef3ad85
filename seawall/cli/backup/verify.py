"""`seawall backup verify`: is what could be had back there, by the listing or by every byte?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from backup.catalogue.bytes import StoredPieces
from backup.plan.make import DAY_MS, KEEP_DAYS
from backup.plan.render import size
from backup.plan.values import Piece
from backup.verify import Wrong, of_bytes, of_catalogue, pieces_of
from rules.policy.quantities import read_bytes
from seawall.cli.backup.options import Target, TopicId, checked_target, settings_of
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region
from seawall.doctor.finding import Finding, Status
from tiering.scrub.plan import Subset
from workers.consumer.tasks import in_order

if TYPE_CHECKING:
    from seawall.backup.opened import Opened

WORKERS = 8


@dataclass(slots=True, kw_only=True)
class Looked:
    """What one run came to."""

    logs: int = 0
    read_segments: int = 0
    read_bytes: int = 0
    left_segments: int = 0  # asked for, and beyond the budget
    wrong: list[Wrong] = field(default_factory=list)
    window_days: int = 0  # the longest that is declared of any of them
    bucket: list[Finding] = field(default_factory=list)  # what keeps it from keeping the window


def verify(
    context: typer.Context,
    target: Target = None,
    subset: Annotated[
        str | None, typer.Option("--subset", metavar="N/T", help="Read the Nth of T shares of the segments.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option("--max-bytes", metavar="SIZE", help="Read at most so much, such as 200GiB.")
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every byte of every segment.")] = False,
    topic_id: TopicId = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Verify that what the catalogue promises is there. Read-only.

    Without --subset, --max-bytes or --deep by a listing with versions alone: no offset between start and
    frontier without a live copy, and of each copy removed within the window its versions. The bucket's
    versioning, object lock and lifecycle are held against the longest window that is declared. With one of
    the options the objects are read as well, live ones and those under delete markers, against size and
    checksum.

    Exits with 0; 1 if something is wrong; 3 if --max-bytes left something out; 4 if there was nothing, or the
    bucket does not say how long it keeps versions.
    """
    checked_target(target)
    share, budget = _share(subset), _budget(max_bytes)
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    from seawall.backup.opened import opened

    found = Looked()
    with opened(settings) as world:
        reads = deep or subset is not None or max_bytes is not None
        pieces = list(_of_catalogues(world, target, topic_id, found))
        if found.logs:
            found.bucket += _of_bucket(world, found.window_days)
        if reads:
            _read(world, [each for each in pieces if each[1].record.segment_id in share], budget, found)
    if as_json:
        of_bucket = [{**asdict(each), "status": each.status.value} for each in found.bucket]
        members = {**asdict(found), "wrong": [asdict(each) for each in found.wrong], "bucket": of_bucket}
        typer.echo(json.dumps(members, indent=2))
    else:
        _print(found, reads=reads)
    raise typer.Exit(_exit_code(found))


def _of_catalogues(
    world: Opened, target: str | None, topic_id: str | None, found: Looked
) -> Iterator[tuple[str, Piece]]:
    now_ms = world.store.now_ms()
    for log in world.logs(target, topic_id):
        catalogue = world.catalogue(log)
        declared = world.policy(catalogue.topic)
        window_days = KEEP_DAYS if declared is None else declared.backup_window_days
        found.logs += 1
        found.window_days = max(found.window_days, window_days)
        found.wrong += of_catalogue(catalogue, window_ms=window_days * DAY_MS, now_ms=now_ms)
        for piece in pieces_of(catalogue):
            yield f"{catalogue.topic}-{log.partition}", piece


def _of_bucket(world: Opened, window_days: int) -> list[Finding]:
    """What breaks the window's promise, and what could not be told."""
    from seawall.backup.bucket.s3 import keeps_window

    prefix = world.layout.cluster_prefix(world.cluster_id)
    asked = keeps_window(world.settings.s3, prefix, window_days)
    return [each for each in asked if each.status in (Status.FAIL, Status.UNKNOWN)]


def _read(world: Opened, pieces: list[tuple[str, Piece]], budget: int | None, found: Looked) -> None:
    stored = StoredPieces(world.store)
    chosen: list[tuple[str, Piece]] = []
    for name, piece in pieces:
        if budget is not None and found.read_bytes + piece.size_bytes > budget:
            found.left_segments += 1
            continue
        found.read_bytes += piece.size_bytes
        chosen.append((name, piece))
    for wrong in in_order(chosen, lambda each: of_bytes(each[1], each[0], stored), threads=WORKERS):
        found.read_segments += 1
        found.wrong += [] if wrong is None else [wrong]


def _share(given: str | None) -> Subset:
    try:
        return Subset.parse(given or "1/1")
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}", param_hint="--subset") from refused


def _budget(given: str | None) -> int | None:
    if given is None:
        return None
    try:
        return read_bytes(int(given) if given.isdigit() else given)
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}", param_hint="--max-bytes") from refused


def _exit_code(found: Looked) -> int:
    if found.wrong or any(each.status is Status.FAIL for each in found.bucket):
        return FINDINGS
    if not found.logs or found.bucket:
        return INDETERMINATE
    return PARTIAL if found.left_segments else CLEAN


def _print(found: Looked, *, reads: bool) -> None:
    if found.wrong:
        rows: list[Any] = [
            (
                Text(each.log),
                Text(f"[{each.start}, {each.end})"),
                Text(each.kind, "bold red"),
                Text(each.detail),
            )
            for each in found.wrong
        ]
        print_table(("log", "offsets", "wrong", "detail"), rows)
    for each in found.bucket:
        typer.echo(f"{each.subject}: {each.detail}")
        if each.remedy is not None:
            typer.echo(f"  {each.remedy}")
    read = f"; {found.read_segments} segments read, {size(found.read_bytes)}" if reads else ""
    left = f"; {found.left_segments} left out by --max-bytes" if found.left_segments else ""
    typer.echo(f"{found.logs} logs listed{read}{left}; {len(found.wrong)} wrong")
