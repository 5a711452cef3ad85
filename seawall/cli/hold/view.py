"""A hold for people and as JSON: which of the three is in force, and why another is not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from rich.text import Text

from rules.moments import write_moment
from seawall.cli.console import print_table
from seawall.holds.service import Bound
from tiering.segments.records import HeldVersions

CANNOT = (
    "A hold does not stop a broker that deletes below its own log start (KIP-405 does, at any retention), "
    "nor anybody with rights of their own on the cluster or the bucket. Only stopping that broker does."
)


def warn(line: str) -> None:
    typer.echo(f"seawall: {line}", err=True)


def print_holds(bounds: Iterable[Bound]) -> None:
    rows = [
        (
            Text(str(each.place)),
            Text(each.hold.hold_id),
            Text(_range(each)),
            _agents(each),
            _versions(each),
            _kafka(each),
            Text(write_moment(each.hold.placed_at_ms)),
            Text(each.hold.placed_by),
            Text(each.hold.reason),
        )
        for each in bounds
    ]
    heads = ("log", "hold", "offsets", "agents", "object versions", "kafka", "since", "owner", "reason")
    print_table(heads, rows)


def whys(bounds: Iterable[Bound]) -> list[str]:
    """Why something of it is not in force, each once."""
    found: dict[str, None] = {}
    for each in bounds:
        if each.trouble:
            found[f"{each.place}: {each.trouble}"] = None
        if each.versions is not None and each.versions.trouble is not None:
            found[f"{each.place}: object versions: {each.versions.trouble}"] = None
        if not each.kafka.is_held and each.kafka.why:
            found[f"{each.place}: Kafka's own retention goes on: {each.kafka.why}"] = None
        for left in each.kafka.left:
            found[f"{each.place}: was changed by somebody else, and left: {left}"] = None
    return list(found)


def as_json(bound: Bound) -> dict[str, Any]:
    hold = bound.hold
    return {
        "topic": bound.place.topic,
        "topic_id": bound.place.log.topic_id,
        "partition": bound.place.log.partition,
        "hold_id": hold.hold_id,
        "start_offset": hold.start_offset,
        "end_offset": hold.end_offset,
        "reason": hold.reason,
        "owner": hold.placed_by,
        "finding_id": hold.finding_id,
        "since_ms": hold.placed_at_ms,
        "agents": bound.agents,
        "object_versions": None if bound.versions is None else _versions_json(bound.versions),
        "kafka": bound.kafka.is_held,
        "kafka_why_not": bound.kafka.why or None,
        "trouble": bound.trouble or None,
    }


def _versions_json(versions: HeldVersions) -> dict[str, Any]:
    names = ("start_offset", "end_offset", "held", "missing", "at_ms", "trouble")
    return {name: getattr(versions, name) for name in names}


def _range(bound: Bound) -> str:
    hold = bound.hold
    if hold.start_offset == 0 and hold.end_offset is None:
        return "all"
    return f"[{hold.start_offset}, {'...' if hold.end_offset is None else hold.end_offset})"


def _agents(bound: Bound) -> Text:
    return Text("held", style="green") if bound.agents else Text("-", style="dim")


def _versions(bound: Bound) -> Text:
    found = bound.versions
    if found is None:
        return Text("-", style="dim")
    said = f"{found.held} held" + (f", {found.missing} gone" if found.missing else "")
    return Text(f"{said}, NOT ALL" if found.trouble else said, style="yellow" if found.trouble else "green")


def _kafka(bound: Bound) -> Text:
    return Text("held", style="green") if bound.kafka.is_held else Text("-", style="dim")
