"""`seawall events tail`: the events of `__seawall_audit`, as lines for people or JSON lines for programs."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from audit_engine.errors import EventError
from audit_engine.topic import TOPIC
from audit_engine.wire import Envelope, decode
from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.cli.options import Bootstrap, load_settings
from seawall.cli.read.bounds import AtTime, parse_bound, spoken
from seawall.connections import kafka_config
from seawall.events.described import named
from seawall.events.kafka import Heard, hear
from seawall.events.lines import line, place

WINDOW_MS = 3_600_000
_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    topic: str | None
    kinds: frozenset[str]

    def has(self, envelope: Envelope) -> bool:
        is_kind = not self.kinds or envelope.kind in self.kinds
        return is_kind and (self.topic is None or place(envelope)[0] == self.topic)


def tail(
    context: typer.Context,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="Only events about this topic or its logs.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this kind. May be repeated.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="ISO 8601, @milliseconds, or ago: 30m. Default: 1h."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as events come.")] = False,
    bootstrap: Bootstrap = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines: record and place.")] = False,
) -> None:
    """Print the events that lie in __seawall_audit, one a line, each as soon as it is read.

    One emitter's events about one log come in their order; others may not. A record that cannot be read as an
    event is told on standard error, and the exit code is then 3.
    """
    for each in kind or ():
        if named(each) is None:
            raise typer.BadParameter(f"{each!r} is no kind; see: seawall events list", param_hint="--kind")
    wanted = _Wanted(topic=topic, kinds=frozenset(kind or ()))
    settings = load_settings(context, bootstrap=bootstrap).settings
    unread = 0
    for heard in hear(kafka_config(settings), since_ms=_since_ms(start), is_endless=follow, topic=TOPIC):
        try:
            envelope = decode(heard.value, f"{TOPIC}-{heard.partition} at offset {heard.offset}")
        except EventError as wrong:
            unread += 1
            typer.echo(f"seawall: {wrong}", err=True)
            continue
        if wanted.has(envelope):
            _print(heard, envelope, as_json=as_json)
    raise typer.Exit(PARTIAL if unread else CLEAN)


def _print(heard: Heard, envelope: Envelope, *, as_json: bool) -> None:
    if not as_json:
        said = line(envelope, spoken(envelope.event.occurred_at_ms))
    else:
        members: dict[str, Any] = json.loads(heard.value or b"")
        at = {"partition": heard.partition, "offset": heard.offset, "timestamp_ms": heard.timestamp_ms}
        said = json.dumps(members | {"kafka": at})
    sys.stdout.write(said + "\n")
    sys.stdout.flush()  # whoever follows wants it now


def _since_ms(start: str | None) -> int:
    now_ms = time.time_ns() // 1_000_000
    if start is None:
        return now_ms - WINDOW_MS
    if ago := _AGO.fullmatch(start):
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        bound = parse_bound(start)
    except ValueError:
        bound = None
    if not isinstance(bound, AtTime):
        raise typer.BadParameter(
            f"{start!r} is not a time: 2026-11-18T09:30:00Z, @1763458200000, or 30m (ago)",
            param_hint="--from",
        )
    return bound.timestamp_ms
