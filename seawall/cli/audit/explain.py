"""`seawall audit explain`: what a finding was made of. Read-only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rules.moments import write_moment
from rules.severities import SEVERITY_WORDS
from seawall.cli.audit.options import TablesAt, tables_at, tables_settings
from seawall.cli.exit_codes import CLEAN, INDETERMINATE
from seawall.cli.options import EndpointUrl, Json, Region

if TYPE_CHECKING:
    from audit_engine.run.history.spark import Placed
    from rules.machine.explained import Explanation


def explain(
    context: typer.Context,
    finding: Annotated[
        str, typer.Argument(metavar="FINDING", help="Its id as `audit findings` prints it, or how it begins.")
    ],
    tables: TablesAt = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Print the evidence of a finding, the arithmetic behind it, and what would repair it.

    The log's events are folded once more up to the moment at which the finding opened. Told are: what was
    authorised, in force and there, what is missing; each event that it rests on, with its id, times,
    emitter and place in Kafka; the rule and its remedy; the command that plans a restore, where a copy of
    the bytes is to be had.

    Exits with 0 if it could be derived from the evidence, 4 if not: what it says was then found by another
    rule set, or of emitters and not of a log.
    """
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    from audit_engine.run.decisions import Sort, latest
    from audit_engine.run.history.spark import History
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.tables.place import root_of
    from rules.machine.explained import restore_command
    from seawall.audit.spark import session

    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        verdicts = Verdicts(spark, root)
        found = verdicts.finding(finding)
        history = History(spark, root)
        explained, places = history.explain(found)
        seen = latest(verdicts.decisions(), Sort.ACK).get(found["finding_id"])
    repair = restore_command(
        found["rule_id"], found["finding_id"], found["recoverable_offsets"], found["status"]
    )
    by = None if seen is None else f"{seen.owner}: {seen.reason}"
    if as_json:
        told = asdict(explained)
        for each in told["cited"]:
            each["kafka"] = [asdict(one) for one in places.get(each["event_id"], [])]
        rest = {"acknowledged_by": by, "restore_command": repair, "remedy": _rule(found).remedy}
        typer.echo(json.dumps({"finding": found, "explanation": told, **rest}, indent=2))
    else:
        typer.echo("\n".join(_lines(found, explained, places, by, repair)))
    raise typer.Exit(CLEAN if explained.is_derived else INDETERMINATE)


def _rule(found: dict[str, Any]) -> Any:
    from rules.catalogue import rule

    return rule(found["rule_id"])


def _lines(
    found: dict[str, Any],
    explained: Explanation,
    places: dict[str, list[Placed]],
    seen_by: str | None,
    repair: str | None,
) -> Iterator[str]:
    rule = _rule(found)
    yield f"{found['rule_id']} {SEVERITY_WORDS[found['severity']]}, {found['status']}: {found['subject']}"
    yield f"  finding      {found['finding_id']}"
    yield f"  rule         {rule.invariant}"
    yield f"  what         {found['note']}"
    if found["ranges"]:
        yield f"  offsets      {' '.join(f'[{start}, {end})' for start, end in found['ranges'])}"
    yield f"  opened       {write_moment(found['opened_ms'])}"
    if explained.happened is not None:
        since, until = (write_moment(each) for each in explained.happened)
        yield f"  happened     {since}" if since == until else f"  happened     after {since}, by {until}"
    if found["suppressed_by"]:
        yield f"  suppressed   {found['suppressed_by']}"
    if seen_by is not None:
        yield f"  acknowledged {seen_by}"
    for title, told in (
        ("required", explained.required),
        ("there", explained.there),
        ("missing", explained.missing),
    ):
        yield from (f"  {title:<12} {each}" for each in told)
    if not explained.is_derived:
        yield "  NOT DERIVED  the events of one log alone do not come to it"
    for each in explained.cited:
        at = ", ".join(f"{one.partition}/{one.offset}" for one in places.get(each.event_id, [])) or "nowhere"
        opened = ", opened it" if each.opened else ""
        yield f"  event        {each.kind} {each.event_id}{opened}"
        yield f"               by {each.emitter} number {each.seq}, Kafka partition/offset {at}"
        since_ms = each.not_before_ms
        before = "" if since_ms is None else f", not before {write_moment(since_ms)}"
        seen = write_moment(each.observed_at_ms)
        yield f"               occurred {write_moment(each.occurred_at_ms)}{before}, observed {seen}"
        yield f"               {each.says}"
    if explained.cited_left_out:
        yield f"  event        and {explained.cited_left_out} earlier ones"
    yield f"  remedy       {rule.remedy}"
    if found["recoverable_offsets"] or found["lost_offsets"]:
        back = f"{found['recoverable_offsets']} offsets to be had back, {found['lost_offsets']} lost"
        brokers = ", ".join(map(str, found["held_by"]))
        yield f"  recoverable  {back}" + (f"; whole on disks of brokers {brokers}" if brokers else "")
    if repair is not None:
        yield f"  repair       {repair}"
