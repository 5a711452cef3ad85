"""What the verbs of `seawall backup` share: how a log and a time are named, and where evidence is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from backup.plan import Range
from rules.policy.quantities import read_bytes
from seawall.cli.options import load_settings
from seawall.cli.read.bounds import AtTime, parse_bound
from seawall.cli.read.target import parse_target
from seawall.settings import Settings, load

BACKUP = "backup"  # the sort of emitter, and of state folder

Target: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[TOPIC[:PARTITION]]", help="One topic, or one log; without it, all.")
]
TopicId: TypeAlias = Annotated[
    str | None,
    typer.Option("--topic-id", metavar="ID", help="Of a topic that was deleted and made again: which one."),
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        callback=lambda given: given if given is None else str(moment(given)),
        help="As the bucket was then: 2026-11-18T09:30Z, or @ and milliseconds since 1970.",
    ),
]
StateDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--state-dir", metavar="DIR", help="Where events wait for Kafka, and the key of reports is."
    ),
]
Report: TypeAlias = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Where the signed report goes.")
]
SignWith: TypeAlias = Annotated[
    Path | None,
    typer.Option("--sign-with", metavar="FILE", help="A whsec_... secret, instead of this host's own key."),
]
Rate: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="SIZE",
        callback=lambda given: rate_of(given),
        help="Read at most so much a second, such as 50MiB.",
    ),
]

AS_OF_MEANS = (
    "by the dates of versions and markers that the bucket still has; starts, gaps and holds are as they are"
    " now, and brokers are not asked"
)


def rate_of(given: str | None) -> str | None:
    """A size in bytes, as text: what typer has of an option."""
    if given is None:
        return None
    try:
        return str(read_bytes(int(given) if given.isdigit() else given))
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}") from refused


def moment(given: str) -> int:
    """A time in milliseconds."""
    try:
        found = parse_bound(given)
    except ValueError as refused:
        raise typer.BadParameter(str(refused)) from refused
    if not isinstance(found, AtTime):
        raise typer.BadParameter(f"{given} is an offset: give a time, or milliseconds behind an @")
    return found.timestamp_ms


def offsets(given: str) -> Range:
    """`a:b`, of which a is in and b is not."""
    first, colon, last = given.partition(":")
    if not colon or not first.isdigit() or not last.isdigit() or int(first) >= int(last):
        raise typer.BadParameter(f"{given!r} is not A:B, two offsets of which B is the larger")
    return Range(int(first), int(last))


def checked_target(given: str | None, *, needs_partition: bool = False) -> str | None:
    """As it was given, once it is known to be one."""
    if given is None:
        return None
    try:
        _, partition = parse_target(given)
    except ValueError as refused:
        raise typer.BadParameter(str(refused)) from refused
    if needs_partition and partition is None:
        raise typer.BadParameter(f"{given}: one log at a time, as TOPIC:PARTITION")
    return given


def elsewhere(here: Settings, file: Path | None) -> Settings:
    """The settings of another cluster: of its file alone. The environment is about this one, and a variable
    that beat the file would have this cluster written to instead."""
    return here if file is None else load(file=file, environ={}).settings


def settings_of(context: typer.Context, **flags: Any) -> Settings:
    """The settings of this run."""
    return load_settings(context, **flags).settings
