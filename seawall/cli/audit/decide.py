"""`seawall audit suppress|ack|accept-gap`: what people decide about a finding."""

from __future__ import annotations

import getpass
import json
import time
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from rules.moments import SPOKEN, read_moment, write_moment
from seawall.cli.audit.options import TablesAt, tables_at, tables_settings
from seawall.cli.exit_codes import CLEAN
from seawall.cli.options import EndpointUrl, Json, Region

if TYPE_CHECKING:
    from audit_engine.run.decisions import Decision, Sort

FindingId: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="FINDING", help="Its id as `seawall audit findings` prints it, or how it begins."),
]
Reason: TypeAlias = Annotated[str, typer.Option(metavar="TEXT", help="Why; it stands in every statement.")]
OnlyDriver: TypeAlias = Annotated[
    bool, typer.Option("--single-driver-i-accept", help="Tables on S3: see `seawall audit ingest --help`.")
]


def suppress(
    context: typer.Context,
    finding: FindingId,
    reason: Reason,
    owner: Annotated[str, typer.Option(metavar="WHO", help="Who answers for it until then.")],
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="When it ends: 2026-12-31 or 2026-12-31T06:00Z. There is always an end."
        ),
    ],
    tables: TablesAt = None,
    is_only_driver: OnlyDriver = False,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Let a finding be until a moment: nobody is paged for it, and it stays open.

    From the next run on. The log stays in VIOLATION, the finding is counted as suppressed in the summary, in
    `seawall audit status` and in statements; a run whose violations are all suppressed exits with 3. When
    the time is over it pages again. To say it anew, with another end, replaces it.

    Exits with 0 if it is kept.
    """
    from audit_engine.run.decisions import Sort

    try:
        expires_at_ms = read_moment(until)
    except ValueError:
        raise typer.BadParameter(f"{until!r} is not {SPOKEN}", param_hint="--until") from None
    if expires_at_ms <= _now_ms():
        raise typer.BadParameter(f"{until} is over", param_hint="--until")
    _decide(
        context,
        (Sort.SUPPRESS, finding, owner, reason, expires_at_ms),
        tables,
        is_only_driver,
        endpoint_url,
        region,
        as_json=as_json,
    )


def ack(
    context: typer.Context,
    finding: FindingId,
    reason: Reason,
    owner: Annotated[
        str | None, typer.Option(metavar="WHO", help="Who has seen it; by default whoever runs this.")
    ] = None,
    tables: TablesAt = None,
    is_only_driver: OnlyDriver = False,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Say that somebody has seen a finding and is at it.

    It changes no verdict: the finding stays open, and pages again when it gets worse. `audit findings`
    and `explain` show who has it.

    Exits with 0 if it is kept.
    """
    from audit_engine.run.decisions import Sort

    _decide(
        context,
        (Sort.ACK, finding, owner or getpass.getuser(), reason, None),
        tables,
        is_only_driver,
        endpoint_url,
        region,
        as_json=as_json,
    )


def accept_gap(
    context: typer.Context,
    finding: FindingId,
    reason: Reason,
    owner: Annotated[str, typer.Option(metavar="WHO", help="Who takes it as lost.")],
    tables: TablesAt = None,
    is_only_driver: OnlyDriver = False,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Take as lost what an emitter said and nobody will ever hear: AUD-01, of a spool that is gone.

    From the next run on the finding is resolved, and logs that were INDETERMINATE for it are judged on what
    there is. Of a log whose disk is watched, its next baseline does the same by itself; of what an emitter
    without a disk said, nothing else does. What comes late after all is judged as ever.

    Exits with 0 if it is kept.
    """
    from audit_engine.run.decisions import Sort

    _decide(
        context,
        (Sort.ACCEPT, finding, owner, reason, None),
        tables,
        is_only_driver,
        endpoint_url,
        region,
        as_json=as_json,
    )


def _decide(
    context: typer.Context,
    what: tuple[Sort, str, str, str, int | None],
    tables: str | None,
    is_only_driver: bool,
    endpoint_url: str | None,
    region: str | None,
    *,
    as_json: bool,
) -> None:
    sort, wanted, owner, reason, expires_at_ms = what
    for name, text in (("--owner", owner), ("--reason", reason)):
        if not text.strip() or not text.isprintable():
            raise typer.BadParameter("say it in a line of text", param_hint=name)
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    from audit_engine.run.decisions import GAP, Decision, Sort
    from audit_engine.run.decisions.spark import Decisions
    from audit_engine.run.errors import FindingClosed
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session

    root = root_of(tables_at(settings))
    with session(settings, root, is_only_driver=is_only_driver) as (spark, _):
        found = Verdicts(spark, root).finding(wanted)
        if found["status"] != "open":
            raise FindingClosed(finding_id=found["finding_id"], status=found["status"])
        if sort is Sort.ACCEPT and found["rule_id"] != GAP:
            raise typer.BadParameter(f"that is {found['rule_id']}, and no {GAP}", param_hint="FINDING")
        decision = Decision(
            sort=sort,
            finding_id=found["finding_id"],
            rule_id=found["rule_id"],
            subject=found["subject"],
            owner=owner.strip(),
            reason=reason.strip(),
            decided_at_ms=_now_ms(),
            expires_at_ms=expires_at_ms,
        )
        kept = Decisions(spark, root).append(decision)
    typer.echo(json.dumps(kept.as_row(), indent=2) if as_json else _said(kept))
    raise typer.Exit(CLEAN)


def _said(kept: Decision) -> str:
    what = f"{kept.rule_id} {kept.subject} ({kept.finding_id})"
    if kept.sort.value == "accept":
        return f"{what}: {kept.owner} takes it as lost; the next run waits for it no more"
    if kept.expires_at_ms is None:
        return f"{what}: {kept.owner} has seen it; it stays open"
    return (
        f"{what}: {kept.owner} answers for it until {write_moment(kept.expires_at_ms)};"
        " it stays open, and the next run pages nobody for it"
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
