"""`seawall audit status|findings|statement`: what the last run said. Read-only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.text import Text

from audit_engine.run.decisions import Sort, latest
from rules.severities import SEVERITY_WORDS
from seawall.cli.audit.options import TablesAt, tables_at, tables_settings
from seawall.cli.audit.run import exit_code
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from seawall.cli.options import EndpointUrl, Json, Region

if TYPE_CHECKING:
    from audit_engine.run.reading.spark import Unfinished, Verdicts

STALE_MS = 26 * 3600 * 1000  # a daily run, and two hours
UNFINISHED_MS = 3600 * 1000  # no run takes so long between two of its writes
DISBELIEVED = ("AUD-04", "AUD-07")


def status(
    context: typer.Context,
    tables: TablesAt = None,
    stale_after_hours: Annotated[
        float, typer.Option(min=0.1, help="How old the last run's moment may be.")
    ] = STALE_MS / 3_600_000,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Say what the last runs came to, and whether they happen. For a monitor that is asked every hour.

    Exits with the last run's code, and with 4 where there is none, where it is older than it may be, where it
    judged fewer logs than the one before (a log that was deleted is carried, and judged as gone), where a
    newer one wrote rows and was not finished within an hour, or where the auditor found itself to be blind or
    its tables to be changed (AUD-04, AUD-07).
    """
    told = stand(context, tables, endpoint_url, region, stale_after_hours)
    runs, worries = told.runs, told.worries
    if as_json:
        typer.echo(json.dumps({"runs": runs, "worries": worries}, indent=2))
    else:
        header = ("run", "as of", "verdict", "logs", "events", "findings")
        print_table(header, [tuple(Text(cell) for cell in _run_cells(each)) for each in runs])
        for worry in worries:
            typer.echo(f"CANNOT TELL: {worry}")
    code = _code(runs[0]) if runs else INDETERMINATE
    raise typer.Exit(INDETERMINATE if worries and code == CLEAN else code)


class Stand(NamedTuple):
    """Where the audit stands: the last runs, newest first; what is open; why none of it is to be believed."""

    runs: list[dict[str, Any]]
    open_findings: list[dict[str, Any]]
    worries: list[str]
    now_ms: int


def stand(
    context: typer.Context,
    tables: str | None,
    endpoint_url: str | None,
    region: str | None,
    stale_after_hours: float = STALE_MS / 3_600_000,
) -> Stand:
    with _verdicts(context, tables, endpoint_url, region) as verdicts:
        runs = verdicts.runs(10)
        unfinished = verdicts.unfinished()
        standing = [each for each in verdicts.findings() if each["status"] == "open"] if runs else []
    now_ms = int(datetime.now(timezone.utc).timestamp() * 1000)
    worries = worries_of(runs, unfinished, standing, now_ms, int(stale_after_hours * 3_600_000))
    return Stand(runs, standing, worries, now_ms)


def _code(row: dict[str, Any]) -> int:
    return exit_code(row["verdict"], is_let_be=row["counts"].get("open_findings") == 0)


def worries_of(
    runs: list[dict[str, Any]],
    unfinished: Unfinished | None,
    findings: list[dict[str, Any]],
    now_ms: int,
    stale_ms: int,
) -> list[str]:
    """Why the last runs are not to be believed, whatever they say. `findings`: those that are open."""
    worries = []
    if unfinished is not None and now_ms - unfinished.wrote_ms > UNFINISHED_MS:
        worries.append(
            f"run {unfinished.run} failed half-way: it last wrote at {_time(unfinished.wrote_ms)}; nothing"
            " of it counts"
        )
    if not runs:
        return ["no run was ever finished", *worries]
    worries += [f"{each['rule_id']}: {each['note']}" for each in findings if each["rule_id"] in DISBELIEVED]
    if now_ms - runs[0]["as_of_ms"] > stale_ms:
        worries.append(f"the last run judged as of {_time(runs[0]['as_of_ms'])}; nothing later was looked at")
    if len(runs) > 1 and runs[0]["counts"]["logs"] < runs[1]["counts"]["logs"]:
        worries.append(
            f"the last run judged {runs[0]['counts']['logs']} logs, the one before "
            f"{runs[1]['counts']['logs']}"
        )
    return worries


def _run_cells(row: dict[str, Any]) -> tuple[str, ...]:
    counts = row["counts"]
    told = [f"{count} {change}" for change, count in sorted(counts["changes"].items())]
    told += [f"{count} suppressed" for count in [counts.get("suppressed_findings")] if count]
    return (
        str(row["run"]),
        _time(row["as_of_ms"]),
        row["verdict"],
        str(counts["logs"]),
        str(counts["events"]),
        ", ".join(told),
    )


def findings(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Those that are not open any more, too.")] = False,
    tables: TablesAt = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """List the findings that stand, the worst first, with who answers for them.

    Exits with 1 if one is open, 3 if somebody answers for each that is (`seawall audit suppress`), 4 if no
    run was ever finished.
    """
    with _verdicts(context, tables, endpoint_url, region) as verdicts:
        known = bool(verdicts.runs(1))
        listed = [each for each in verdicts.findings() if everything or each["status"] == "open"]
        seen = latest(verdicts.decisions(), Sort.ACK) if listed else {}
    for each in listed:
        by = seen.get(each["finding_id"])
        each["acknowledged_by"] = None if by is None else f"{by.owner}: {by.reason}"
    if as_json:
        typer.echo(json.dumps(listed, indent=2))
    elif listed:
        header = ("severity", "rule", "about", "offsets", "since", "status", "finding", "what", "with")
        print_table(header, [tuple(Text(cell) for cell in _finding_cells(each)) for each in listed])
    else:
        typer.echo("no finding is open" if known else "no run was ever finished")
    if not known:
        raise typer.Exit(INDETERMINATE)
    standing = [each["suppressed_by"] is not None for each in listed if each["status"] == "open"]
    raise typer.Exit(CLEAN if not standing else PARTIAL if all(standing) else FINDINGS)


def _finding_cells(each: dict[str, Any]) -> tuple[str, ...]:
    name = SEVERITY_WORDS[each["severity"]]
    child = "" if each["parent"] is None else "  "
    return (
        name,
        child + each["rule_id"],
        each["subject"],
        " ".join(f"[{start}, {end})" for start, end in each["ranges"]),
        _time(each["opened_ms"]),
        "suppressed" if each["suppressed_by"] is not None else each["status"],
        each["finding_id"],
        each["note"],
        each["suppressed_by"] or each["acknowledged_by"] or "",
    )


def statement(
    context: typer.Context,
    log: Annotated[
        str, typer.Argument(metavar="TOPIC[:P]", help="A topic, or one partition of it: orders, orders:3.")
    ],
    sign_with: Annotated[
        Path | None,
        typer.Option(
            "--sign-with", metavar="FILE", help="Print JSON that is signed with this whsec_... secret."
        ),
    ] = None,
    tables: TablesAt = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Print what the last run states of a topic or a log.

    The claim, what it covers and what not, the evidence and where it lies in Kafka, what is missing, what is
    open or suppressed, and a hash over all that it says (but for the run and its offsets, which name it).
    With --sign-with all of it is signed: `seawall audit check-statement` tells whether it is as it was.

    Exits with 0 if all pass, 1 if one violates a rule, 3 if somebody answers for each that does, 4 if one
    cannot be told or is not known.
    """
    topic, _, partition = log.partition(":")
    if partition and not partition.isdecimal():
        raise typer.BadParameter(f"{log!r} is no TOPIC or TOPIC:PARTITION", param_hint="TOPIC[:P]")
    key = None if sign_with is None else _key(sign_with)
    with _verdicts(context, tables, endpoint_url, region) as verdicts:
        stated = verdicts.statements(topic, int(partition) if partition else None)
        runs = verdicts.runs(1)
    if as_json or key is not None:
        cut = {"run": runs[0]["run"], "evidence": runs[0]["cut"]} if runs else {}
        told = [each | cut for each in stated]
        typer.echo(json.dumps(told, indent=2) if key is None else _signed(told, key), nl=key is None)
    else:
        for each in stated:
            typer.echo(statement_text(each, runs[0]))
        if not stated:
            typer.echo(f"the last run states nothing of {log}")
    worst = [exit_code(each["verdict"], is_let_be=not each["open_findings"]) for each in stated] or [
        INDETERMINATE
    ]
    raise typer.Exit(FINDINGS if FINDINGS in worst else max(worst))


def _key(file: Path) -> bytes:
    from seawall.backup.keys import key_in

    return key_in(file)


def _signed(statements: list[dict[str, Any]], key: bytes) -> str:
    from seawall.audit.signed import signed

    return signed(statements, key)


def statement_text(each: dict[str, Any], run: dict[str, Any]) -> str:
    """`run` is the run that states it: what it saw of the topic of events stands in its row."""
    begin, end = run["cut"]["begin"], run["cut"]["end"]
    offsets = [f"{partition}/[{begin.get(partition, 0)}, {end[partition]})" for partition in end]
    name = f"{each['topic']}-{each['partition']}"
    lines = [
        f"{name} ({each['topic_id']} in {each['cluster_id']}): {each['verdict']}",
        f"  claim        {each['claim']}",
        f"  period       {_time(each['from_ms'])} to {_time(each['as_of_ms'])}, {each['events']} events",
        f"  evidence     run {run['run']}: of audit events the Kafka offsets {', '.join(offsets) or 'none'},"
        " on top of what it carried",
        f"  not covered  before {_time(each['not_before_ms'])}",
        f"  log          [{each['log_start']}, {each['high_watermark']}), "
        f"{each['tiered_offsets']} offsets in the tier, {each['deployment']}",
        f"  replicas     {', '.join(f'{broker} {seen}' for broker, seen in each['replicas'])}",
    ]
    for name in ("missing", "suspect", "open_findings", "suppressed_findings"):
        lines += [f"  {name.replace('_', ' '):<12} {one}" for one in each[name]]
    lines += [
        f"  rules        {len(each['applied'])} applied, {len(each['not_applicable'])} do not apply",
        f"  hash         {each['statement_hash']}",
    ]
    return "\n".join(lines)


@contextmanager
def _verdicts(
    context: typer.Context, tables: str | None, endpoint_url: str | None, region: str | None
) -> Iterator[Verdicts]:
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session

    root = root_of(tables_at(settings))
    with session(settings, root) as (spark, _):
        yield Verdicts(spark, root)


def _time(timestamp_ms: int | None) -> str:
    if not timestamp_ms:
        return "the beginning"
    at = datetime.fromtimestamp(timestamp_ms / 1000, tz=timezone.utc)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
