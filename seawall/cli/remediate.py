"""`seawall remediate`: what can be done about a finding, and with --confirm what the verb can do of it."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.audit.options import TablesAt, tables_at
from seawall.cli.exit_codes import CLEAN, FINDINGS, PARTIAL
from seawall.cli.options import (
    Bootstrap,
    Bucket,
    EndpointUrl,
    Json,
    Prefix,
    Region,
    load_settings,
)
from seawall.settings import Settings

if TYPE_CHECKING:
    from seawall.holds.from_findings import Wanted
    from seawall.holds.opened import OpenedHolds
    from seawall.holds.service import Place
    from seawall.remedies.steps import Prospect, Step

_OF_ALERTS = {"critical": "C", "error": "E", "warning": "W"}  # as an alert spells them


def remediate(
    context: typer.Context,
    finding: Annotated[
        str, typer.Argument(metavar="FINDING", help="Its id as `audit findings` prints it, or how it begins.")
    ],
    confirm: Annotated[bool, typer.Option("--confirm", help="Do what can be done from here.")] = False,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file",
            metavar="FILE",
            help="The finding as JSON, as an alert has it or `audit findings --json`: no Spark, no tables.",
        ),
    ] = None,
    tables: TablesAt = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Show what can be done about a finding, the most pressing first.

    Each with how long is left for it. With --confirm: hold the log; make a corrupt replica the last of its
    partition's, so that no preferred election makes it leader, and elect another if it leads; set Kafka's
    retention back to what was declared; put what was lost back into the tier, by the plan that is shown
    without it. Whatever destroys or needs somebody at a broker's host is told with its steps, and not done.

    Exits with 0 if nothing is left to do, 1 if something is, 3 if something could not be done or not be seen.
    """
    settings = load_settings(
        context,
        bootstrap=bootstrap,
        bucket=bucket,
        prefix=prefix,
        endpoint_url=endpoint_url,
        region=region,
        more={"audit.tables": ("--tables", tables)},
    ).settings
    found, incident = _finding(settings, finding, from_file)
    from seawall.cli.hold.view import warn
    from seawall.holds.from_findings import wanted
    from seawall.holds.opened import now_ms, opened
    from seawall.remedies.look import seen_of
    from seawall.remedies.restore import prospect
    from seawall.remedies.steps import steps_of

    refused: list[str] = []
    with opened(settings, warn) as holds:
        asked = wanted(incident, holds.cluster.cluster_id)
        place = _place(found, holds)
        if place is None:
            typer.echo(f"{found['subject']}: no topic of this cluster is meant; its alert says what to do")
            raise typer.Exit(PARTIAL)
        is_of_log = _has_partition(found)

        def look() -> tuple[Sequence[Step], Prospect | None, tuple[str, ...]]:
            seen = seen_of(
                holds.cluster,
                place.topic,
                place.log.partition if is_of_log else None,
                is_held=_is_held(holds, place),
            )
            restore = prospect(settings, found)
            unseen = () if restore is None or not restore.unknown else (restore.unknown,)
            steps = steps_of(found, seen, now_ms=now_ms(), prospect=restore)
            return steps, restore, (*seen.unknown, *unseen)

        steps, restore, unknown = look()
        if confirm:
            for step in steps:
                _do(step, place, holds, settings, asked, restore, refused.append)
            steps, _, unknown = look()
    if as_json:
        told = [{**_json(each)} for each in steps]
        typer.echo(
            json.dumps({"finding_id": found["finding_id"], "steps": told, "unknown": unknown}, indent=2)
        )
    else:
        _print(found, steps, unknown)
    for line in refused:
        typer.echo(f"seawall: {line}", err=True)
    if not confirm and any(each.can_do for each in steps) and not as_json:
        typer.echo("seawall: nothing was changed; do what can be done from here with --confirm", err=True)
    if refused or unknown:
        raise typer.Exit(PARTIAL)
    raise typer.Exit(CLEAN if all(each.is_done for each in steps) else FINDINGS)


def _finding(
    settings: Settings, wanted: str, from_file: Path | None
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The finding, and its whole incident."""
    if from_file is not None:
        told = json.loads(from_file.read_text())
        data = told.get("data", told) if isinstance(told, dict) else told
        every = data.get("findings", [data]) if isinstance(data, dict) else data
        read: list[Mapping[str, Any]] = [_as_carried(each) for each in every]
        fitting = [each for each in read if str(each["finding_id"]).startswith(wanted)]
        if len(fitting) != 1:
            raise typer.BadParameter(
                f"{len(fitting)} findings begin with {wanted!r}", param_hint="--from-file"
            )
        return fitting[0], read
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session

    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        verdicts = Verdicts(spark, root)
        found = verdicts.finding(wanted)
        return found, [each for each in verdicts.findings() if each["incident"] == found["incident"]]


def _as_carried(told: Mapping[str, Any]) -> dict[str, Any]:
    """A finding as the tables have it, from the spelling of an alert."""
    severity = str(told["severity"])
    return {"suppressed_by": None, **told, "severity": _OF_ALERTS.get(severity, severity)}


def _place(found: Mapping[str, Any], holds: OpenedHolds) -> Place | None:
    from seawall.holds.from_findings import Wanted, hold_id, subject_of
    from seawall.holds.service import Asked

    subject = subject_of(found)
    if subject is None or subject.cluster_id != holds.cluster.cluster_id:
        return None
    asked = Asked(
        hold_id=hold_id(str(found["incident"]), subject),
        start_offset=0,
        end_offset=None,
        reason="",
        owner="",
        finding_id=None,
        versions=None,
    )
    return next(iter(holds.places(Wanted(subject=subject, asked=asked))), None)


def _has_partition(found: Mapping[str, Any]) -> bool:
    from seawall.holds.from_findings import subject_of

    subject = subject_of(found)
    return subject is not None and subject.partition is not None


def _is_held(holds: OpenedHolds, place: Place) -> bool:
    return any(each.is_in_force and each.place.log == place.log for each in holds.holds.standing())


def _do(
    step: Step,
    place: Place,
    holds: OpenedHolds,
    settings: Settings,
    asked: Sequence[Wanted],
    restore: Prospect | None,
    refuse: Callable[[str], None],
) -> None:
    """One step, if it is one of ours; what keeps it from being done is said, and the next has its turn."""
    from seawall.connections import kafka_config
    from seawall.holds.kafka import KafkaTopicConfigs
    from seawall.remedies.kafka import KafkaRemedies
    from seawall.remedies.restore import carry_out
    from seawall.remedies.steps import Act
    from tiering.errors import StatedError

    if not step.can_do or step.is_done:
        return
    config = kafka_config(settings, client_id="seawall-remediate")
    remedies = KafkaRemedies(config, holds.cluster.source)
    try:
        if step.act is Act.HOLD:
            of_log = [each.asked for each in asked if each.log in (None, place.log)]
            for each in of_log:
                bound = holds.holds.place(place, replace(each, owner=f"{each.owner}, remediate"))
                if not bound.is_in_force:
                    refuse(f"{place} cannot be held: {bound.trouble} {bound.kafka.why}".strip())
        elif step.act is Act.KEEP_OUT:
            remedies.put_order(place.topic, place.log.partition, step.values["order"])
        elif step.act is Act.MOVE_OFF:
            remedies.elect_preferred(place.topic, place.log.partition, step.values["leader"])
        elif step.act is Act.PUT_BACK:
            KafkaTopicConfigs(config).alter(place.topic, {step.values["setting"]: step.values["value"]})
        elif step.act is Act.RESTORE and restore is not None and restore.plan is not None:
            carry_out(settings, restore.plan, getpass.getuser(), lambda line: typer.echo(line, err=True))
    except (StatedError, OSError) as failed:
        refuse(str(failed))


def _print(found: Mapping[str, Any], steps: Sequence[Step], unknown: Sequence[str]) -> None:
    typer.echo(f"{found['rule_id']} {found['subject']} ({found['finding_id']}), {found['status']}")
    typer.echo(f"  {found['note']}")
    for number, step in enumerate(steps, start=1):
        mark = "done" if step.is_done else "with --confirm" if step.can_do else "by hand"
        left = (
            ""
            if step.minutes_left is None or step.is_done
            else f", {max(0.0, step.minutes_left):.1f} min left"
        )
        typer.echo(f"{number}. [{mark}{left}] {step.says}")
        for line in step.lines:
            typer.echo(f"     {line}")
        for command in () if step.is_done else step.commands:
            typer.echo(f"     {command}")
    for line in unknown:
        typer.echo(f"not seen: {line}")
    if not steps:
        typer.echo(f"nothing can be done from here: `seawall rules explain {found['rule_id']}`")


def _json(step: Step) -> dict[str, Any]:
    return {
        "act": step.act.value,
        "says": step.says,
        "can_do": step.can_do,
        "is_done": step.is_done,
        "lines": list(step.lines),
        "commands": list(step.commands),
        "minutes_left": step.minutes_left,
        "values": dict(step.values),
    }
