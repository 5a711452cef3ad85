"""`seawall tier status`: each log, where its offsets are, and what is wrong with it. Read-only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from rich.text import Text

from rules.identity import LogId
from seawall.cli.console import print_table, stdout_console
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.options import Bootstrap, Json, load_settings
from seawall.cli.tier.options import NOTHING, TopicName, number, size
from seawall.settings import Settings
from seawall.tier.picture import bar, legend
from seawall.tier.status import LogStatus, Weight, log_status

BAR_LEAST = 20
HEADER = (
    "log",
    "log start",
    "local start",
    "tiered from",
    "frontier",
    "high watermark",
    "segments",
    "size",
    "lag",
    "claim/leader",
    "state",
)


def status(
    context: typer.Context,
    topic: TopicName = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show what of each log is in the tier, and what is wrong.

    The frontier is the offset up to which everything is in the tier or on record as lost; lag is what the
    broker has beyond it. Changes nothing.

    Exits with 0 if nothing is wrong, 1 if something is lost or stands at a hole, 4 if it could not be told.
    """
    found = gather(load_settings(context, bootstrap=bootstrap).settings, topic)
    if as_json:
        shown = {"logs": [_as_json(each) for each in found], "totals": _totals(found)}
        typer.echo(json.dumps(shown, indent=2))
    else:
        _print(found, topic)
    raise typer.Exit(_exit_code(found))


def gather(settings: Settings, topic: str | None) -> list[LogStatus]:
    """Every log of which the topic of metadata has a record, and the rest of those logs' topics."""
    from seawall.connections import open_cluster
    from seawall.tier.following import followed
    from tiering.cluster.interface import TopicPartition, Unknown

    cluster = open_cluster(settings, client_id="seawall-tier")
    with followed(settings) as table:
        logs = {log: label for log in table.logs() if (label := table.label(log)) is not None}
        names = {label for label in logs.values() if topic in (None, label)} | ({topic} if topic else set())
        described = cluster.describe_topics(names)
        for name, there in described.items():
            if not isinstance(there, Unknown):
                for partition in there.partitions:
                    logs.setdefault(LogId(table.topic.cluster_id, there.topic_id, partition), name)
        wanted = {log: label for log, label in logs.items() if label in names}
        # The broker first: what it drops between the two questions is in the tier by the second.
        places = {log: TopicPartition(label, log.partition) for log, label in wanted.items()}
        answers = cluster.leader_offsets(set(places.values())) if places else {}
        table.read_on()
        return [
            log_status(log, label, table.view(log), answers[places[log]])
            for log, label in sorted(wanted.items(), key=lambda item: (item[1], item[0].partition, item[0]))
        ]


def _exit_code(found: Sequence[LogStatus]) -> int:
    if any(each.has(Weight.FINDING) for each in found):
        return FINDINGS
    unknown = not found or any(each.has(Weight.UNKNOWN) for each in found)
    return INDETERMINATE if unknown else CLEAN


def _print(found: Sequence[LogStatus], topic: str | None) -> None:
    if not found:
        typer.echo(f"nothing of {topic} is tiered" if topic else "nothing is tiered")
        return
    print_table(HEADER, [_row(each) for each in found])
    typer.echo()
    _print_bars(found)
    for each in found:
        for line in _said(each):
            stdout_console().print(line)
    totals = _totals(found)
    tiered = f"{totals['tiered_segments']} segments, {size(totals['tiered_bytes'])} tiered"
    trouble = f"{totals['findings']} with findings, {totals['unknown']} unknown"
    typer.echo(f"\n{totals['logs']} logs, {tiered}, lag {totals['lag_offsets']} offsets; {trouble}")


def _row(each: LogStatus) -> tuple[Text, ...]:
    lag = NOTHING if each.lag_offsets is None else str(each.lag_offsets)
    if each.lag_offsets and each.lag_bytes is not None:
        lag = f"{lag} (~{size(each.lag_bytes)})"
    return (
        Text(each.name),
        Text(number(each.log_start)),
        Text(number(each.local_start)),
        Text(number(each.tiered_start)),
        Text(number(each.frontier)),
        Text(number(each.high_watermark)),
        Text(str(each.tiered_segments)),
        Text(size(each.tiered_bytes)),
        Text(lag),
        Text(f"{number(each.claim_epoch)}/{number(each.leader_epoch)}"),
        _state(each),
    )


def _state(each: LogStatus) -> Text:
    for weight, style in ((Weight.FINDING, "bold red"), (Weight.UNKNOWN, "magenta"), (Weight.NOTE, "yellow")):
        kinds = [trouble.kind for trouble in each.troubles if trouble.weight is weight]
        if kinds:
            return Text(", ".join(dict.fromkeys(kinds)), style=style)
    return Text("held" if each.holds else "ok", style="green")


def _print_bars(found: Sequence[LogStatus]) -> None:
    label = max(len(each.name) for each in found)
    ranges = {each.log: _range(each) for each in found}
    width = shutil.get_terminal_size((100, 24)).columns - label - max(map(len, ranges.values())) - 4
    console = stdout_console()
    for each in found:
        drawn = bar(each.stretches, max(BAR_LEAST, width))
        line = Text(f"{each.name:<{label}}  ").append_text(drawn).append(f"  {ranges[each.log]}", style="dim")
        console.print(line)
    console.print(legend())


def _range(each: LogStatus) -> str:
    return f"[{each.stretches[0].start}, {each.stretches[-1].end})" if each.stretches else ""


def _said(each: LogStatus) -> Iterator[Text]:
    styles = {Weight.FINDING: "bold red", Weight.UNKNOWN: "magenta", Weight.NOTE: "yellow"}
    for trouble in each.troubles:
        yield Text(f"{each.name}: {trouble.detail}", style=styles[trouble.weight])
    for hold in each.holds:
        yield Text(f"{each.name}: held by {hold}")


def _totals(found: Sequence[LogStatus]) -> dict[str, int]:
    return {
        "logs": len(found),
        "tiered_segments": sum(each.tiered_segments for each in found),
        "tiered_bytes": sum(each.tiered_bytes for each in found),
        "lag_offsets": sum(each.lag_offsets or 0 for each in found),
        "findings": sum(each.has(Weight.FINDING) for each in found),
        "unknown": sum(each.has(Weight.UNKNOWN) for each in found),
    }


def _as_json(each: LogStatus) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "cluster_id": each.log.cluster_id,
        "topic_id": each.log.topic_id,
        "partition": each.log.partition,
        "log_start": each.log_start,
        "local_start": each.local_start,
        "tiered_start": each.tiered_start,
        "frontier": each.frontier,
        "high_watermark": each.high_watermark,
        "tiered_segments": each.tiered_segments,
        "tiered_bytes": each.tiered_bytes,
        "lag_offsets": each.lag_offsets,
        "lag_bytes_estimate": each.lag_bytes,
        "claim_epoch": each.claim_epoch,
        "leader_epoch": each.leader_epoch,
        "holds": each.holds,
        "coverage": [
            {"start": part.start, "end": part.end, "where": part.where.value} for part in each.stretches
        ],
        "troubles": [
            {"weight": trouble.weight.value, "kind": trouble.kind, "detail": trouble.detail}
            for trouble in each.troubles
        ],
    }
