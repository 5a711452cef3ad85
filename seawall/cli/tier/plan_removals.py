"""`seawall tier plan-removals`: what trim and expiry would do now, and why not more. Read-only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.text import Text

from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, INDETERMINATE
from seawall.cli.options import Bootstrap, Json, load_settings
from seawall.cli.tier.options import NOTHING, TopicName, size
from seawall.settings import Settings

if TYPE_CHECKING:  # with these come the client libraries
    from rules.policy import Policy
    from tiering.retention.local_service import PlannedTrim
    from tiering.retention.plans import Planned

    Plan: TypeAlias = Planned | PlannedTrim

HEADER = ("log", "what", "act", "offsets", "segments", "size", "why not more")


def plan_removals(
    context: typer.Context,
    topic: TopicName = None,
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="A log dir of the broker; repeat it for several."),
    ] = None,
    server_properties: Annotated[
        Path | None,
        typer.Option("--server-properties", metavar="FILE", help="The broker's own file, for its log dirs."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", metavar="FILE", help="As if this file were applied, not what is in force."),
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Say what trim and expiry would remove now, beside this broker, and do none of it.

    For each log that this broker leads, the next act of its agent: the offset to which expiry would move the
    tier's start, the segments that would go, the offset to which trim would move the start on the brokers'
    disks; or what keeps it. What follows an act is decided when that is done: run it again.

    Exits with 0, or 4 if there was no log to look at.

    Examples:

    seawall tier plan-removals --server-properties /etc/kafka/server.properties

    seawall tier plan-removals orders --policy policy.toml --json
    """
    settings = load_settings(
        context,
        bootstrap=bootstrap,
        more={
            "agent.log_dirs": ("--log-dir", ",".join(map(str, log_dir)) if log_dir else None),
            "agent.server_properties": (
                "--server-properties",
                str(server_properties) if server_properties else None,
            ),
        },
    ).settings
    from seawall.agent.planning import planned_removals

    found = planned_removals(settings, lambda: _policy(settings, policy))
    plans: list[tuple[str, Plan]] = [("expiry", each) for each in found.expiry]
    plans += [("trim", each) for each in found.trim]
    plans = [each for each in plans if topic in (None, each[1].topic)]
    if as_json:
        shown = {"broker_id": found.broker.broker_id, "plans": [_as_json(*each) for each in plans]}
        typer.echo(json.dumps(shown, indent=2))
    else:
        _print(plans, topic)
    raise typer.Exit(CLEAN if plans else INDETERMINATE)


def _policy(settings: Settings, file: Path | None) -> Policy | None:
    from seawall.policy.change_log import in_force
    from seawall.policy.file import read_file
    from seawall.policy.kafka import open_cluster

    if file is not None:
        return read_file(file)
    applied = in_force(open_cluster(settings).changes.read())
    return None if applied is None else applied.policy


def _print(plans: list[tuple[str, Plan]], topic: str | None) -> None:
    if not plans:
        what = f"of {topic} " if topic else ""
        typer.echo(f"nothing {what}is tiered under this broker's lead, or its policy trims nothing")
        return
    print_table(HEADER, [_row(*each) for each in plans])
    typer.echo()
    for _, plan in plans:
        if not _is_kept(plan):
            for line in plan.lines():
                typer.echo(line)
    acts = sum(not _is_kept(plan) for _, plan in plans)
    typer.echo(f"{len(plans)} looked at, {acts} with something to do; nothing was changed")


def _row(what: str, plan: Plan) -> tuple[Text, ...]:
    told = _as_json(what, plan)
    offsets = f"{told['from']} to {told['to']}" if told["to"] is not None else NOTHING
    why = f"{told['reason']}: {told['detail']}" if told["reason"] else ""
    return (
        Text(f"{plan.topic}-{plan.log.partition}"),
        Text(what),
        Text(told["act"], style="dim" if _is_kept(plan) else "bold yellow"),
        Text(offsets),
        Text(str(len(told["segments"])) if told["segments"] else NOTHING),
        Text(size(sum(each["size_bytes"] for each in told["segments"])) if told["segments"] else NOTHING),
        Text(why, style="dim"),
    )


def _is_kept(plan: Plan) -> bool:
    from tiering.retention.plans import Planned
    from tiering.retention.reasons import Keep

    return isinstance(plan.act if isinstance(plan, Planned) else plan.decision, Keep)


def _as_json(what: str, plan: Plan) -> dict[str, Any]:
    """`act` is stable: keep, move_start, remove, record_topic_gone, forget_log, trim."""
    from tiering.retention.plans import Planned

    return {
        "topic": plan.topic,
        "cluster_id": plan.log.cluster_id,
        "topic_id": plan.log.topic_id,
        "partition": plan.log.partition,
        "what": what,
        "act": "keep",
        "from": None,
        "to": None,
        "segments": [],
        "reason": None,
        "detail": None,
        **dict(_of_expiry(plan) if isinstance(plan, Planned) else _of_trim(plan)),
    }


def _of_expiry(plan: Planned) -> Iterator[tuple[str, Any]]:
    from tiering.retention.expiry import Advance
    from tiering.retention.reasons import Keep
    from tiering.retention.remote import ForgetLog, RecordTopicGone, Remove

    match plan.act:
        case Keep() as kept:
            yield from _why(kept)
        case Advance(old_start=old, new_start=new, freed=freed, then=then):
            yield from (("act", "move_start"), ("from", old), ("to", new), ("segments", _segments(freed)))
            yield from _why(then)
        case Remove(copies=copies, then=then):
            yield from (("act", "remove"), ("segments", _segments(copies)))
            yield from _why(then)
        case RecordTopicGone():
            yield "act", "record_topic_gone"
        case ForgetLog():
            yield "act", "forget_log"


def _of_trim(plan: PlannedTrim) -> Iterator[tuple[str, Any]]:
    from tiering.retention.reasons import Keep

    decision = plan.decision
    if isinstance(decision, Keep):
        yield from _why(decision)
        return
    yield from (("act", "trim"), ("from", decision.old_start), ("to", decision.up_to))
    yield "segments", _segments(decision.certificate.copies)


def _why(kept: Any) -> Iterator[tuple[str, Any]]:
    if kept is not None:
        yield from (("reason", kept.reason.value), ("detail", kept.detail))


def _segments(copies: Any) -> list[dict[str, Any]]:
    names = ("segment_id", "base_offset", "end_offset", "size_bytes")
    return [{name: getattr(each, name) for name in names} for each in copies]
