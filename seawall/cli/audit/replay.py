"""`seawall audit run --from --to`, `--rules FILE --shadow`: the past judged anew, into output alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from rules.moments import write_moment
from rules.severities import SEVERITY_WORDS
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE

if TYPE_CHECKING:
    from audit_engine.run.history.difference import Difference
    from audit_engine.run.history.spark import History, Replayed

Told = Mapping[str, Any]


def replay(
    history: History,
    *,
    from_ms: int | None,
    to_ms: int | None,
    rules: Path | None,
    as_json: bool,
) -> int:
    """The exit code. With `rules`, what they find otherwise; without, what stands and stood in the period."""
    from audit_engine.run.history.difference import difference, in_period
    from seawall.audit.ruleset import read_file

    on_trial = None if rules is None else read_file(rules)  # refused before anything is judged
    terms = history.live_terms()
    begin_ms, end_ms = from_ms or 0, history.last_cut.as_of_ms if to_ms is None else to_ms
    live = history.replay(terms, from_ms=begin_ms, to_ms=end_ms)
    there = in_period(live.findings, begin_ms, end_ms)
    if on_trial is None:
        return _period(live, there, begin_ms, as_json=as_json)
    shadow = history.replay(on_trial.on(terms), from_ms=begin_ms, to_ms=end_ms)
    here = in_period(shadow.findings, begin_ms, end_ms)
    return _shadow(difference(here, there), shadow, live, as_json=as_json)


def _period(live: Replayed, findings: list[Told], from_ms: int, *, as_json: bool) -> int:
    verdicts = _verdicts(live)
    if as_json:
        told = {"from_ms": from_ms, "as_of_ms": live.as_of_ms, "verdicts": verdicts}
        typer.echo(json.dumps({**told, "findings": findings, "statements": live.statements}, indent=2))
    else:
        since = "the beginning" if not from_ms else write_moment(from_ms)
        typer.echo(f"{since} to {write_moment(live.as_of_ms)}, judged anew; nothing was written")
        _print_verdicts(verdicts)
        if findings:
            header = ("severity", "rule", "about", "offsets", "opened", "status", "finding")
            print_table(header, [_cells(each) for each in findings])
    return _code(verdicts)


def _shadow(found: Difference, shadow: Replayed, live: Replayed, *, as_json: bool) -> int:
    if as_json:
        told = {
            "as_of_ms": shadow.as_of_ms,
            "verdicts": {"live": _verdicts(live), "shadow": _verdicts(shadow)},
            "only_in_shadow": found.only_here,
            "only_live": found.only_there,
            "otherwise": [{"shadow": here, "live": there} for here, there in found.otherwise],
        }
        typer.echo(json.dumps(told, indent=2))
    else:
        typer.echo(
            f"as of {write_moment(shadow.as_of_ms)}, by another rule set; nothing was written or paged"
        )
        rows = [(Text("+"), *_cells(each)) for each in found.only_here]
        rows += [(Text("-"), *_cells(each)) for each in found.only_there]
        for here, there in found.otherwise:
            rows += [(Text("<"), *_cells(there)), (Text(">"), *_cells(here))]
        if rows:
            header = ("", "severity", "rule", "about", "offsets", "opened", "status", "finding")
            print_table(header, rows)
        typer.echo(
            f"{len(found.only_here)} only by the new rules (+), {len(found.only_there)} only as it is (-),"
            f" {len(found.otherwise)} otherwise (< as it is, > by the new rules)"
        )
    return CLEAN if found.is_none else FINDINGS


def _verdicts(judged: Replayed) -> dict[str, int]:
    return dict(Counter(each["verdict"] for each in judged.statements))


def _print_verdicts(verdicts: Mapping[str, int]) -> None:
    order = ("VIOLATION", "INDETERMINATE", "SUSPECT", "PASS")
    rows = [(Text(name), Text(str(verdicts[name]))) for name in order if verdicts.get(name)]
    print_table(("verdict", "logs"), rows)


def _code(verdicts: Mapping[str, int]) -> int:
    if verdicts.get("VIOLATION"):
        return FINDINGS
    return INDETERMINATE if verdicts.get("INDETERMINATE") or not verdicts else CLEAN


def _cells(each: Told) -> tuple[Text, ...]:
    ranges = " ".join(f"[{start}, {end})" for start, end in each["ranges"])
    told = (
        SEVERITY_WORDS[each["severity"]],
        each["rule_id"],
        each["subject"],
        ranges,
        write_moment(each["opened_ms"]),
        "suppressed" if each["suppressed_by"] else each["status"],
        each["finding_id"],
    )
    return tuple(Text(cell) for cell in told)
