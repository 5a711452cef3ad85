"""What the two verbs share: their options, and the way from what was asked to the topic of events."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from rules.events.operators import Operation
from rules.moments import SPOKEN, read_moment, write_moment
from rules.policy.quantities import read_time, write_time
from rules.policy.values import NAME_MAX, is_name
from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.settings import Settings

if TYPE_CHECKING:
    from seawall.authorise import Asked

Principal: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Who allows it, as the policy names people.")
]
ChangeId: TypeAlias = Annotated[
    str, typer.Option(metavar="ID", help="What carries the reasons, such as a ticket.")
]
Reason: TypeAlias = Annotated[str, typer.Option(metavar="TEXT", help="Why, in a line.")]
Lasting: TypeAlias = Annotated[
    str, typer.Option("--for", metavar="TIME", help="For how long from now, such as 2h; 31d at most.")
]
Since: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="From when on, for what was done already: 2026-12-31T06:00Z, within declare_grace_ms.",
    ),
]
TopicId: TypeAlias = Annotated[
    str | None,
    typer.Option("--topic-id", metavar="ID", help="Which topic of that name, where it is gone by now."),
]
Confirm: TypeAlias = Annotated[
    bool, typer.Option("--confirm", help="Say it. Without, it is only shown what would be said.")
]
StateDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--state-dir", metavar="DIR", help="Where what is said is kept until Kafka has it; one for all verbs."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Who says it, why, and for how long, read from the command line."""

    principal: str
    change_id: str
    reason: str
    from_ms: int
    until_ms: int


def said(principal: str, change_id: str, reason: str, lasting: str, since: str | None) -> Said:
    """Raises BadParameter."""
    from seawall.authorise import LONGEST_MS

    for flag, text in (("--principal", principal), ("--change-id", change_id), ("--reason", reason)):
        if not is_name(text):
            raise typer.BadParameter(f"a line of 1 to {NAME_MAX} characters", param_hint=flag)
    now_ms = _now_ms()
    try:
        lasting_ms = read_time(lasting)
    except ValueError as wrong:
        raise typer.BadParameter(f"must be {wrong}", param_hint="--for") from None
    if not 0 < lasting_ms <= LONGEST_MS:
        raise typer.BadParameter(f"at most {write_time(LONGEST_MS)}, and not nothing", param_hint="--for")
    try:
        from_ms = now_ms if since is None else read_moment(since)
    except ValueError:
        raise typer.BadParameter(f"{since!r} is not {SPOKEN}", param_hint="--since") from None
    if from_ms > now_ms:
        raise typer.BadParameter("it is still to come", param_hint="--since")
    return Said(
        principal=principal,
        change_id=change_id,
        reason=reason,
        from_ms=from_ms,
        until_ms=now_ms + lasting_ms,
    )


def authorise(
    settings: Settings,
    who: Said,
    operation: Operation,
    log: tuple[str, str | None, int | None],
    offsets: tuple[int | None, int | None],
    *,
    state_dir: Path | None,
    confirm: bool,
    as_json: bool,
) -> None:
    """Show it, and say it if it is confirmed. `log`: topic, its id if it was given, partition."""
    from rules.policy import EMPTY
    from seawall.audit.saying import say
    from seawall.authorise import Asked, event_of, refuse
    from seawall.authorise.kafka import topic_id_of
    from seawall.policy.change_log import in_force
    from seawall.policy.kafka import open_cluster

    topic, topic_id, partition = log
    opened = open_cluster(settings)
    applied = in_force(opened.changes.read())
    policy = (EMPTY if applied is None else applied.policy).effective(topic)
    asked = Asked(
        operation=operation,
        principal=who.principal,
        change_id=who.change_id,
        reason=who.reason,
        topic=topic,
        topic_id=topic_id or topic_id_of(opened.source, topic, partition),
        partition=partition,
        start_offset=offsets[0],
        end_offset=offsets[1],
        valid_from_ms=who.from_ms,
        expires_at_ms=who.until_ms,
    )
    refuse(asked, policy, now_ms=_now_ms())
    event = event_of(asked, cluster_id=opened.cluster_id, event_id=str(uuid.uuid4()), now_ms=_now_ms())
    left = say(settings, opened.cluster_id, [event], state_dir) if confirm else 0
    _show(asked, is_said=confirm, left=left, event_id=event.event_id if confirm else None, as_json=as_json)
    raise typer.Exit(PARTIAL if left else CLEAN)


def _show(asked: Asked, *, is_said: bool, left: int, event_id: str | None, as_json: bool) -> None:
    if as_json:
        members = {name: getattr(asked, name) for name in asked.__slots__}
        told = members | {"operation": asked.operation.value, "event_id": event_id, "waiting_events": left}
        typer.echo(json.dumps(told, indent=2))
    else:
        period = f"{write_moment(asked.valid_from_ms)} to {write_moment(asked.expires_at_ms)}"
        typer.echo(f"{asked.spoken}: {period}, by {asked.principal}, {asked.change_id}: {asked.reason}")
    if not is_said:
        typer.echo("seawall: nothing was authorised; do it with --confirm", err=True)
    elif left:
        typer.echo(
            f"seawall: it is on this disk, and Kafka does not have it yet ({left} events wait);"
            " say it again, or run another verb with the same --state-dir, to send it",
            err=True,
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
