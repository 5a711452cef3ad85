"""`seawall policy apply`: what a file would change, and with --confirm the change itself."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from rules.policy.record import declared_change
from rules.policy.timeline import Applied
from rules.policy.values import NAME_MAX, is_name
from seawall.cli.options import Bootstrap, Json, load_settings
from seawall.cli.policy import options
from seawall.cli.policy.options import PolicyFile
from seawall.cli.policy.plan_view import plan_as_json, print_plan
from seawall.policy.errors import PlanMoved
from seawall.policy.file import read_file
from seawall.policy.plan import Plan, plan


def _name(given: str) -> str:
    if not is_name(given):
        raise typer.BadParameter(f"1 to {NAME_MAX} printable characters, without a space at either end")
    return given


def apply(
    context: typer.Context,
    file: PolicyFile,
    principal: Annotated[
        str, typer.Option(metavar="NAME", callback=_name, help="Who declares it, as the policy names people.")
    ],
    change_id: Annotated[
        str, typer.Option(metavar="ID", callback=_name, help="What carries the reasons, such as a ticket.")
    ],
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Do it. Without, only the plan is shown.")
    ] = False,
    plan_id: Annotated[
        str | None, typer.Option("--plan", metavar="PLAN", help="Refuse to do any other plan than this.")
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Put a policy file in force.

    Compares it with the policy in force and prints what changes, and for which topics; what weakens a
    protection is marked. Without --confirm nothing is changed. With it, the change is recorded for ever in
    the topic __seawall_policy, under the principal and the change id.
    """
    settings = load_settings(context, bootstrap=bootstrap).settings
    policy = read_file(file)
    from seawall.policy.change_log import in_force
    from seawall.policy.cluster import look
    from seawall.policy.kafka import open_cluster

    opened = open_cluster(settings)
    base = in_force(opened.changes.read())
    seen = look(opened.source, opened.topic_names())
    planned = plan(policy, base, seen, cluster_id=opened.cluster_id, principal=principal)
    if not as_json:
        print_plan(planned)
    _refuse(planned, plan_id)
    applied: Applied | None = None
    if confirm and not planned.is_empty:
        change = declared_change(
            policy=policy,
            base=base.as_base if base is not None else None,
            cluster_id=opened.cluster_id,
            principal=principal,
            change_id=change_id,
            occurred_at_ms=time.time_ns() // 1_000_000,
        )
        applied = opened.changes.append(change)
    if as_json:
        typer.echo(json.dumps(plan_as_json(planned, applied), indent=2))
    elif applied is not None:
        typer.echo(f"in force: {options.named(applied)}")
    elif not planned.is_empty:
        typer.echo("seawall: nothing was changed; do it with --confirm", err=True)


def _refuse(planned: Plan, expected: str | None) -> None:
    if expected is not None and expected != planned.plan_id:
        raise PlanMoved(plan_id=planned.plan_id, expected=expected)
    if planned.obstacles and not planned.is_empty:
        for obstacle in planned.obstacles[1:]:
            typer.echo(f"seawall: {obstacle}", err=True)
        raise planned.obstacles[0]
