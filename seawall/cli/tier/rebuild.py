"""`seawall tier rebuild --from-bucket`: does the bucket alone tell what the topic of metadata holds?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from rules.identity import LogId
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from seawall.cli.tier.errors import TopicNotEmpty
from seawall.cli.tier.options import TopicName
from seawall.settings import Settings
from seawall.tier.rebuild import Disagreeing, as_it_lies, fill
from tiering.segments.errors import SegmentsTopicMissing
from tiering.segments.rebuild import Comparison, Difference, Retold, StoredSegment, compare, retell_all

if TYPE_CHECKING:
    from seawall.tier.following import Followed
    from tiering.store.patient import PatientStore

NOT_IN_BUCKET = (
    "of a log's own record the bucket has nothing: claims, gaps, holds and moved starts are the topic's alone"
)
Listing = Callable[[], Iterable[StoredSegment]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was put into an empty topic."""

    copies: int
    logs: int
    untold: tuple[Difference, ...]  # a .json that is no record
    broken: tuple[Retold, ...]  # objects that it names are not there
    disagreeing: tuple[Disagreeing, ...]


def rebuild(
    context: typer.Context,
    topic: TopicName = None,
    from_bucket: Annotated[
        bool, typer.Option("--from-bucket", help="From the .json that each copy left beside its bytes.")
    ] = False,
    only_compare: Annotated[bool, typer.Option("--compare", help="Write nothing: the default.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Fill a topic that was lost; only one that holds nothing.")
    ] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it: with --write.")] = False,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Tell the topic of metadata again from the bucket alone, and compare.

    Reads every copy's .json, and holds the record that it tells against the topic's, byte by byte. Changes
    nothing. With --write --confirm, and all agents stopped, fills a topic that was lost and holds nothing.

    Exits with 0 if bucket and topic say the same, 1 if they differ, 4 if there is nothing to compare.
    """
    if not from_bucket:
        raise typer.BadParameter("say --from-bucket: there is nothing else to rebuild from")
    if only_compare and write:
        raise typer.BadParameter("either --compare or --write")
    settings = load_settings(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    ).settings
    from seawall.connections import segment_store

    store = segment_store(settings)  # what the settings lack is said before the cluster is asked
    if write:
        if topic is not None:
            raise typer.BadParameter("a topic that was lost is filled as a whole: leave out TOPIC")
        raise typer.Exit(_write(settings, store, confirm=confirm, as_json=as_json))
    found, labels = _compare(settings, store, topic)
    if as_json:
        typer.echo(json.dumps(_as_json(found, labels), indent=2))
    else:
        _print(found, labels)
    if found.differences:
        raise typer.Exit(FINDINGS)
    raise typer.Exit(CLEAN if found.equal else INDETERMINATE)


def _compare(
    settings: Settings, store: PatientStore, topic: str | None
) -> tuple[Comparison, dict[LogId, str]]:
    """A difference counts if it is seen twice: agents go on between the reading of topic and bucket."""
    from seawall.connections import key_layout, open_cluster
    from seawall.tier.following import followed
    from tiering.cluster.interface import Unknown
    from tiering.segments.bucket_listing import list_segments

    layout = key_layout(settings)
    with followed(settings) as table:
        labels = {log: label for log in table.logs() if (label := table.label(log)) is not None}
        cluster_id = table.topic.cluster_id
        under = [layout.cluster_prefix(cluster_id)]
        if topic is not None:
            labels = {log: label for log, label in labels.items() if label == topic}
            ids = {log.topic_id for log in labels}
            there = open_cluster(settings, client_id="seawall-tier").describe_topics([topic])[topic]
            ids |= set() if isinstance(there, Unknown) else {str(there.topic_id)}
            under = [layout.topic_prefix(cluster_id, each) for each in sorted(ids)]

        def listing() -> Iterable[StoredSegment]:
            return (each for prefix in under for each in list_segments(store, layout, prefix))

        first = _compare_once(table, listing, labels)
        if first.is_equal:
            return first, labels
        table.read_on()
        again = _compare_once(table, listing, labels)
        seen = {(each.kind, each.segment_id) for each in first.differences}
        again.differences = [each for each in again.differences if (each.kind, each.segment_id) in seen]
        return again, labels


def _compare_once(table: Followed, listing: Listing, labels: dict[LogId, str]) -> Comparison:
    with table.metadata.table() as tables:
        return compare(listing(), tables, labels)


def _write(settings: Settings, store: PatientStore, *, confirm: bool, as_json: bool) -> int:
    from seawall.connections import kafka_config, key_layout, open_cluster
    from tiering.segments.bucket_listing import list_segments
    from tiering.segments.kafka import KafkaAppender, ensure_topic

    config = kafka_config(settings, client_id="seawall-tier")
    _refuse_if_filled(config)
    layout = key_layout(settings)
    cluster_id = open_cluster(settings, client_id="seawall-tier").identity().cluster_id
    told = list(retell_all(list_segments(store, layout, layout.cluster_prefix(cluster_id))))
    copies = [each for each in told if isinstance(each, Retold)]
    lying = [as_it_lies(each, store.head) if each.absent else each for each in copies]
    whole = [each for each in lying if each is not None]
    broken = [each for each, found in zip(copies, lying, strict=True) if found is None]
    disagreeing: tuple[Disagreeing, ...]
    if confirm:
        with KafkaAppender(config, ensure_topic(config)) as appender:
            disagreeing = fill(whole, appender.append, now_ms=_now_ms())
    else:
        disagreeing = fill(whole, lambda log, key, value: None, now_ms=_now_ms())
    done = Written(
        copies=len(whole),
        logs=len({each.record.log for each in whole}) - len(disagreeing),
        untold=tuple(each for each in told if isinstance(each, Difference)),
        broken=tuple(broken),
        disagreeing=disagreeing,
    )
    _print_written(done, len(told), confirm=confirm, as_json=as_json)
    if not whole:
        return INDETERMINATE
    return FINDINGS if disagreeing or len(whole) < len(told) else CLEAN


def _refuse_if_filled(config: dict[str, str]) -> None:
    from tiering.segments.kafka import check_topic, topic_ends

    try:
        topic = check_topic(config)
    except SegmentsTopicMissing:
        return
    if held := sum(topic_ends(config, topic).values()):
        raise TopicNotEmpty(topic=topic.name, records=held)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _print_written(done: Written, told: int, *, confirm: bool, as_json: bool) -> None:
    if as_json:
        shown = {
            "written": confirm,
            "copies": done.copies,
            "not_whole": told - done.copies,
            "logs_claimed": done.logs,
            "untold": [_difference(each, {}) for each in done.untold],
            "broken": [
                {
                    "segment_id": each.record.segment_id,
                    "key_stem": each.record.key_stem,
                    "absent": each.absent,
                }
                for each in done.broken
            ],
            "disagreeing": [
                {"topic": each.topic, "partition": each.log.partition, "detail": each.detail}
                for each in done.disagreeing
            ],
        }
        typer.echo(json.dumps(shown, indent=2))
        return
    for each in done.untold:
        typer.echo(f"{each.log.topic_id}-{each.log.partition} at {each.base_offset}: {each.detail}")
    for copy in done.broken:
        typer.echo(f"{copy.record.key_stem} is not whole: {', '.join(copy.absent)}")
    for log in done.disagreeing:
        typer.echo(f"{log.topic}-{log.log.partition} has no log record: {log.detail}")
    verb = "written" if confirm else "to be written"
    typer.echo(f"{verb}: {done.copies} of {told} copies, {done.logs} logs' claims")
    typer.echo(f"seawall: {NOT_IN_BUCKET}", err=True)
    if not confirm:
        typer.echo("seawall: nothing was written; stop all agents, and do it with --confirm", err=True)


def _print(found: Comparison, labels: dict[LogId, str]) -> None:
    if found.differences:
        rows = [
            (
                Text(_name(each, labels)),
                Text(str(each.base_offset)),
                Text(each.segment_id),
                Text(each.kind.value, style="bold red"),
                Text(each.detail),
            )
            for each in found.differences
        ]
        print_table(("log", "base offset", "segment", "what", "detail"), rows)
        typer.echo()
    said = "the same in bucket and topic, to the byte"
    typer.echo(f"{found.equal} copies are {said}; {len(found.differences)} differences")
    typer.echo(f"seawall: {NOT_IN_BUCKET}", err=True)


def _name(each: Difference, labels: dict[LogId, str]) -> str:
    return f"{labels.get(each.log, each.log.topic_id)}-{each.log.partition}"


def _as_json(found: Comparison, labels: dict[LogId, str]) -> dict[str, Any]:
    return {
        "equal": found.equal,
        "differences": [_difference(each, labels) for each in found.differences],
        "logs": len(labels),
    }


def _difference(each: Difference, labels: dict[LogId, str]) -> dict[str, Any]:
    return {
        "topic": labels.get(each.log),
        "topic_id": each.log.topic_id,
        "partition": each.log.partition,
        "base_offset": each.base_offset,
        "segment_id": each.segment_id,
        "kind": each.kind.value,
        "detail": each.detail,
    }
