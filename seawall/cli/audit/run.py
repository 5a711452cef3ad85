"""`seawall audit run`: judge every log on the evidence since the last run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.text import Text

from seawall.cli.audit.options import Master, TablesAt, tables_at, tables_settings
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from seawall.cli.options import EndpointUrl, Json, Region
from seawall.settings import Settings
from seawall.traces import steps
from seawall.version import version

if TYPE_CHECKING:
    from audit_engine.run.spark import RunSummary

STEPS = {
    "read": "reading the slice",
    "listen": "listening for what never came",
    "gate": "looking at the slice as a whole",
    "fold": "folding the evidence over what is carried",
    "refold": "judging anew what late evidence is about",
    "merge": "comparing findings with the run before",
    "commit": "writing state, findings and statements",
    "finish": "committing the run",
}
_ORDER = ("VIOLATION", "INDETERMINATE", "SUSPECT", "PASS")


def run(
    context: typer.Context,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Judge as of this moment, such as 2026-01-31T06:00Z; default 15 minutes ago."
        ),
    ] = None,
    again: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="RUN", help="Judge that run anew: the same evidence, as of the same moment."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Judge a period of the past anew, into nothing but output."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="The period's end; default: the last run's.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Judge by this rule set (docs/AUDIT.md); only with --shadow."),
    ] = None,
    is_shadow: Annotated[
        bool,
        typer.Option("--shadow", help="Print what --rules finds otherwise; nothing is written or paged."),
    ] = False,
    data_docs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the gate's pages here (Great Expectations' Data Docs)."),
    ] = None,
    has_alerts: Annotated[
        bool, typer.Option("--alerts/--no-alerts", help="Tell people at the end, where endpoints are set.")
    ] = True,
    has_holds: Annotated[
        bool,
        typer.Option(
            "--holds/--no-holds", help="Hold the logs of critical findings, where the cluster is set."
        ),
    ] = True,
    master: Master = None,
    tables: TablesAt = None,
    is_only_driver: Annotated[
        bool,
        typer.Option("--single-driver-i-accept", help="Tables on S3: see `seawall audit ingest --help`."),
    ] = False,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Judge every log by the rules, on what was ingested since.

    A run sees the evidence from where the last one ended. With --from or --to it judges the past anew, from
    the first event on, and with --rules FILE --shadow by another rule set; both print what they find, write
    nothing, and leave the chain of runs as it is.

    Each log gets a verdict and a statement of it; findings stay open until what they say is made good,
    whatever later runs see. A run that is killed leaves nothing that counts; run it again. When it is
    committed, each log of an incident with a critical finding is held (`seawall hold`), and people are told.

    Exits with 0 if every log passes, 1 if one violates a rule, 4 if one cannot be told; with 3 if one
    violates a rule and somebody answers for each such finding (`seawall audit suppress`), or all is well and
    an alert did not arrive. With --shadow: 0 if both rule sets find the same, 1 if not.
    """
    settings = tables_settings(context, tables=tables, endpoint_url=endpoint_url, region=region)
    if as_of is not None and again is not None:
        raise typer.BadParameter("a run that is judged again has its moment already", param_hint="--as-of")
    moment_ms = None if as_of is None else _moment_ms(as_of)
    if is_shadow != (rules is not None):
        raise typer.BadParameter("a rule set is tried out: --rules FILE --shadow", param_hint="--rules")
    if since is not None or until is not None or rules is not None:
        if as_of is not None or again is not None or data_docs is not None:
            raise typer.BadParameter("the past is judged by --from and --to alone", param_hint="--from")
        _of_the_past(settings, since, until, rules, as_json=as_json)
    from audit_engine.alerts.outbox.spark import Finished
    from audit_engine.run.cut import AS_OF_BEHIND_MS
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.run.spark import AuditRun, Means
    from audit_engine.tables.place import root_of
    from rules.machine import Terms
    from seawall.alerts.delivery import deliver, take_in
    from seawall.audit.spark import session
    from seawall.holds.of_run import place_for

    root = root_of(tables_at(settings))
    with (
        _progress() as shown,
        steps("audit run") as traced,
        session(settings, root, is_only_driver=is_only_driver, master=master, is_batch=True) as (spark, _),
    ):

        def at(step: str) -> None:
            shown(step)
            traced(step)

        means = Means(terms=Terms(), now_ms=_now_ms, version=version() or "source", docs=data_docs, at=at)
        audit = AuditRun(spark, root, means)
        if again is not None:
            summary = audit.again(again)
        else:
            summary = audit.next(_now_ms() - AS_OF_BEHIND_MS if moment_ms is None else moment_ms)
        is_told = not has_alerts or take_in(settings, Finished(spark, root), _warn)
        found = Verdicts(spark, root).findings() if has_holds else []
    _say(summary, as_json=as_json)
    is_held = place_for(settings, found, _warn)
    is_told = is_told and (not has_alerts or deliver(settings, _warn))
    code = exit_code(summary.verdict.value, is_let_be=not summary.open_findings)
    raise typer.Exit(PARTIAL if code == CLEAN and not (is_told and is_held) else code)


def _warn(line: str) -> None:
    typer.echo(f"seawall: {line}", err=True)


def _of_the_past(
    settings: Settings, since: str | None, until: str | None, rules: Path | None, *, as_json: bool
) -> NoReturn:
    from_ms = None if since is None else _moment_ms(since, "--from")
    to_ms = None if until is None else _moment_ms(until, "--to")
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise typer.BadParameter("the period ends before it begins", param_hint="--to")
    from audit_engine.run.history.spark import History
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session
    from seawall.cli.audit.replay import replay

    root = root_of(tables_at(settings))
    with session(settings, root, is_batch=True) as (spark, _):
        code = replay(History(spark, root), from_ms=from_ms, to_ms=to_ms, rules=rules, as_json=as_json)
    raise typer.Exit(code)


def exit_code(verdict: str, *, is_let_be: bool = False) -> int:
    """A violation outranks what could not be told, and SUSPECT is judged by the next run.

    `is_let_be`: somebody answers for every finding that is open.
    """
    if verdict == "VIOLATION" and is_let_be:
        return PARTIAL
    return {"VIOLATION": FINDINGS, "INDETERMINATE": INDETERMINATE}.get(verdict, CLEAN)


def _say(summary: RunSummary, *, as_json: bool) -> None:
    if as_json:
        shown = {name: getattr(summary, name) for name in summary.__slots__}
        typer.echo(json.dumps(shown | {"verdict": summary.verdict.value}, indent=2))
        return
    as_of = datetime.fromtimestamp(summary.as_of_ms / 1000, tz=timezone.utc).isoformat(timespec="seconds")
    told = f"run {summary.run} as of {as_of}: {summary.events} events, {summary.logs} logs"
    typer.echo(f"{told}, of which {summary.excused} were excused")
    styles = {
        "VIOLATION": "bold red",
        "INDETERMINATE": "bold yellow",
        "SUSPECT": "yellow",
        "PASS": "bold green",
    }
    rows = [
        (Text(verdict, style=styles[verdict]), Text(str(summary.verdicts[verdict])))
        for verdict in _ORDER
        if summary.verdicts.get(verdict)
    ]
    print_table(("verdict", "logs"), rows)
    for change, count in sorted(summary.changes.items()):
        typer.echo(f"{count} findings {change}")
    typer.echo(f"{summary.open_findings} findings are open, and {summary.suppressed_findings} suppressed")
    if summary.verdict.value != "PASS":
        typer.echo("`seawall audit findings` lists what is open, `seawall audit statement TOPIC` says why.")


def _moment_ms(text: str, flag: str = "--as-of") -> int:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time such as 2026-01-31T06:00Z", param_hint=flag) from None
    if moment.tzinfo is None:
        raise typer.BadParameter(f"{text!r} names no time zone; add Z for UTC", param_hint=flag)
    return int(moment.timestamp() * 1000)


def _now_ms() -> int:
    return int(time.time() * 1000)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """The step that goes on, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=len(STEPS) + 1)

        def at(step: str) -> None:
            places = {name: place for place, name in enumerate(STEPS, start=1)}
            bar.update(task, description=STEPS[step], completed=places[step])

        yield at
