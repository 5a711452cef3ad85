"""`seawall tier orphans`: what uploads and removals left behind, and with --delete --confirm its removal."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from rules.events import LogEvent
from rules.identity import LogId
from rules.policy.quantities import read_time
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from seawall.cli.tier.options import TopicName, size
from seawall.settings import Settings
from tiering.orphans.clean import Outcome, Ports, clean
from tiering.orphans.judge import Judged, Reason, Verdict, judge_log
from tiering.orphans.listing import Attempt, Foreign, listing

if TYPE_CHECKING:
    from seawall.tier.following import Followed
    from tiering.store.patient import PatientStore

SHOWN = (Verdict.ORPHAN, Verdict.UNCONFIRMED, Verdict.IN_FLIGHT, Verdict.KEPT)
STYLES = {
    Verdict.ORPHAN: "bold red",
    Verdict.UNCONFIRMED: "magenta",
    Verdict.KEPT: "yellow",
    Verdict.IN_FLIGHT: "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at bucket and topic. `labels` are the topics' names, where a record tells them.

    `judged` leaves out what was committed already when it was listed.
    """

    judged: tuple[Judged, ...]
    foreign: tuple[Foreign, ...]
    committed_segments: int
    committed_bytes: int
    labels: Mapping[LogId, str]


class _NoEvents:
    """A person at a terminal is the witness; agents hear of the records that are written."""

    def emit(self, event: LogEvent) -> None:
        pass


def _grace(given: str) -> int:
    try:
        return read_time(int(given) if given.isdigit() else given)
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}") from refused


def orphans(
    context: typer.Context,
    topic: TopicName = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove the orphans; without --confirm only shows which.")
    ] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it.")] = False,
    grace: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            callback=lambda given: str(_grace(given)),
            help="How old anything must be that may still be at work, by the bucket's clock.",
        ),
    ] = "1d",
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Account for leftovers in the bucket, and remove dead ones.

    Each attempt to copy a segment is referenced (a committed copy), in flight, an orphan with the proof that
    it counts for nothing, unconfirmed (whole, and the topic knows nothing of it), or kept, since its log is
    held or not fully known. Keys that are not Seawall's are never touched. Without --delete --confirm nothing
    is changed; with them only orphans go: records first, then delete markers, which a version outlives.

    Exits with 0 if nothing is left over, 1 if orphans or unconfirmed copies are, 3 if some were not removed,
    4 if of some it cannot be told.
    """
    settings = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    ).settings
    grace_ms = int(grace)
    outcomes: list[Outcome] | None = None
    with _opened(settings) as (table, store):
        seen = _look(table, store, settings, topic, grace_ms)
        if not as_json:
            _print(seen)
        if delete and confirm:
            outcomes = list(clean(seen.judged, _ports(table, store, grace_ms)))
    if as_json:
        typer.echo(json.dumps(_as_json(seen, outcomes), indent=2))
    elif outcomes is not None:
        _print_outcomes(outcomes)
    elif delete and any(each.is_orphan for each in seen.judged):
        typer.echo("seawall: nothing was changed; do it with --confirm", err=True)
    raise typer.Exit(_exit_code(seen, outcomes))


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[Followed, PatientStore]]:
    from seawall.connections import segment_store
    from seawall.tier.following import followed

    store = segment_store(settings)  # what the settings lack is said before the cluster is asked
    with followed(settings) as table:
        yield table, store


def _look(table: Followed, store: PatientStore, settings: Settings, topic: str | None, grace_ms: int) -> Seen:
    """The bucket first, and the topic after it: what is listed was begun in what is read."""
    from seawall.connections import key_layout

    layout = key_layout(settings)
    cluster_id = table.topic.cluster_id
    labels = {log: label for log in table.logs() if (label := table.label(log)) is not None}
    under = [layout.cluster_prefix(cluster_id)]
    if topic is not None:
        ids = sorted({log.topic_id for log, label in labels.items() if label == topic})
        under = [layout.topic_prefix(cluster_id, each) for each in ids]

    @lru_cache(maxsize=2)  # a listing goes through one log after the other
    def committed(log: LogId) -> frozenset[str]:
        return table.committed(log)

    found = listing(
        layout,
        (each for prefix in under for each in store.list_keys(prefix)),
        (each for prefix in under for each in store.list_uploads(prefix)),
        is_committed=lambda segment: segment.segment_id in committed(segment.log),
    )
    now_ms = store.now_ms()
    ends = table.read_on()
    by_log: dict[LogId, list[Attempt]] = defaultdict(list)
    for attempt in found.attempts:
        by_log[attempt.log].append(attempt)
    labels |= {log: label for log in table.logs() if (label := table.label(log)) is not None}
    logs = sorted({*table.logs(), *by_log}, key=lambda log: (labels.get(log, log.topic_id), log))
    judged = (
        each
        for log in logs
        if topic is None or labels.get(log) == topic
        for each in judge_log(table.known(log, ends), by_log[log], now_ms=now_ms, grace_ms=grace_ms)
    )
    return Seen(
        judged=tuple(judged),
        foreign=found.foreign,
        committed_segments=found.committed_segments,
        committed_bytes=found.committed_bytes,
        labels=labels,
    )


def _ports(table: Followed, store: PatientStore, grace_ms: int) -> Ports:
    return Ports(
        table=table,
        tier=table,
        objects=store,
        sink=_NoEvents(),
        store_now_ms=store.now_ms,
        now_ms=lambda: time.time_ns() // 1_000_000,
        new_id=lambda: str(uuid.uuid4()),
        grace_ms=grace_ms,
    )


def _exit_code(seen: Seen, outcomes: Sequence[Outcome] | None) -> int:
    if outcomes is not None and any(each.kept is not None for each in outcomes):
        return PARTIAL
    left = {Verdict.UNCONFIRMED} if outcomes is not None else {Verdict.ORPHAN, Verdict.UNCONFIRMED}
    if any(each.verdict in left for each in seen.judged):
        return FINDINGS
    untold = any(each.verdict is Verdict.KEPT and each.reason is not Reason.HELD for each in seen.judged)
    return INDETERMINATE if untold else CLEAN


def _print(seen: Seen) -> None:
    rows = [_row(seen, each) for each in seen.judged if each.verdict in SHOWN]
    if rows:
        print_table(("log", "base offset", "objects", "size", "what", "why", "proof"), rows)
        typer.echo()
    for found in seen.foreign:
        typer.echo(f"not Seawall's, never touched: {found.key}")
    counts, sizes = Counter[Verdict](), Counter[Verdict]()
    counts[Verdict.REFERENCED], sizes[Verdict.REFERENCED] = seen.committed_segments, seen.committed_bytes
    for each in seen.judged:
        counts[each.verdict] += 1
        sizes[each.verdict] += each.attempt.size_bytes
    said = [f"{counts[one]} {one.value} ({size(sizes[one])})" for one in Verdict if counts[one]]
    typer.echo(f"{', '.join(said) or 'nothing is there'}; {len(seen.foreign)} foreign keys")


def _row(seen: Seen, each: Judged) -> tuple[Text, ...]:
    kinds = [kind.value for kind, _ in each.attempt.objects] + ["upload"] * len(each.attempt.uploads)
    return (
        Text(_name(seen, each.attempt.log)),
        Text(str(each.attempt.base_offset)),
        Text("+".join(kinds) or "none"),
        Text(size(each.attempt.size_bytes)),
        Text(each.verdict.value, style=STYLES[each.verdict]),
        Text(each.reason.value),
        Text(each.detail),
    )


def _name(seen: Seen, log: LogId) -> str:
    return f"{seen.labels.get(log, log.topic_id)}-{log.partition}"


def _print_outcomes(outcomes: Sequence[Outcome]) -> None:
    removed = [each for each in outcomes if each.kept is None]
    for each in outcomes:
        if each.kept is not None:
            typer.echo(f"kept: {each.judged.attempt.segment_id}: {each.kept}")
    freed = sum(each.judged.attempt.size_bytes for each in removed)
    typer.echo(f"removed {len(removed)} of {len(outcomes)} orphans ({size(freed)}); their versions stay")


def _as_json(seen: Seen, outcomes: Sequence[Outcome] | None) -> dict[str, Any]:
    kept = {each.judged.attempt.segment_id: each.kept for each in outcomes or ()}
    return {
        "attempts": [
            {
                "topic": seen.labels.get(each.attempt.log),
                "topic_id": each.attempt.log.topic_id,
                "partition": each.attempt.log.partition,
                "base_offset": each.attempt.base_offset,
                "segment_id": each.attempt.segment_id,
                "keys": [found.key for _, found in each.attempt.objects],
                "uploads": [upload.upload_id for upload in each.attempt.uploads],
                "size_bytes": each.attempt.size_bytes,
                "verdict": each.verdict.value,
                "reason": each.reason.value,
                "detail": each.detail,
                "removed": each.attempt.segment_id in kept and kept[each.attempt.segment_id] is None,
                "kept": kept.get(each.attempt.segment_id),
            }
            for each in seen.judged
        ],
        "referenced": {"segments": seen.committed_segments, "size_bytes": seen.committed_bytes},
        "foreign": [found.key for found in seen.foreign],
    }
