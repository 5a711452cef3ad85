"""`seawall policy check`: is the file a policy, and do the brokers do what it declares? Read-only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from rules.policy import Policy
from seawall.cli.console import print_table
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.options import Bootstrap, Json, load_settings
from seawall.cli.policy.options import PolicyFile
from seawall.policy.compare import Compared, Finding, compare
from seawall.policy.errors import PolicyFileError, PolicyFileRefused
from seawall.policy.file import read_file
from seawall.settings import Settings
from tiering.cluster.errors import ClusterUnreachable

NOTHING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """What was found. `topics` is None where there was no cluster to look at, or none that answered."""

    policy: Policy
    topics: tuple[Compared, ...] | None
    cluster_id: str | None = None
    silence: str | None = None  # why the cluster could not be looked at

    @property
    def status(self) -> int:
        topics = self.topics or ()
        if any(each.findings for each in topics):
            return FINDINGS
        is_unknown = self.silence is not None or any(each.unknown is not None for each in topics)
        return INDETERMINATE if is_unknown else CLEAN

    @property
    def idle_patterns(self) -> list[str]:
        """Those that match no topic: of tomorrow's, or misspelt."""
        if self.topics is None:
            return []
        names = [each.topic for each in self.topics]
        return [
            pattern.text
            for pattern in self.policy.patterns
            if not any(pattern.matches(name) for name in names)
        ]


def check(
    context: typer.Context,
    file: PolicyFile,
    bootstrap: Bootstrap = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Look at the file alone, though a cluster is configured.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a policy file, and brokers against it.

    With a cluster configured, shows for each topic which tables match it, and where what brokers do differs
    from what is declared. Changes nothing.

    Exits with 0 if the file is valid and brokers do what it declares, 1 if not, 4 if it could not be told.
    """
    settings = load_settings(context, bootstrap=bootstrap).settings
    try:
        policy = read_file(file)
    except PolicyFileError as invalid:
        _print_invalid(file, invalid, as_json=as_json)
        raise typer.Exit(FINDINGS) from invalid
    checked = _checked(policy, None if offline else settings)
    if as_json:
        typer.echo(json.dumps(_as_json(file, checked), indent=2))
    else:
        _print(file, checked)
    raise typer.Exit(checked.status)


def _checked(policy: Policy, settings: Settings | None) -> _Checked:
    if settings is None or settings.kafka.bootstrap is None:
        return _Checked(policy=policy, topics=None)
    from seawall.policy.cluster import look
    from seawall.policy.kafka import open_cluster  # the client it imports would slow an offline check

    try:
        opened = open_cluster(settings)
        seen = look(opened.source, opened.topic_names())
    except ClusterUnreachable as silent:
        return _Checked(policy=policy, topics=None, silence=str(silent))
    return _Checked(policy=policy, topics=tuple(compare(policy, seen)), cluster_id=opened.cluster_id)


def _print_invalid(file: Path, invalid: PolicyFileError, *, as_json: bool) -> None:
    if not as_json:
        typer.echo(str(invalid))
        return
    problems = invalid.problems if isinstance(invalid, PolicyFileRefused) else (str(invalid),)
    typer.echo(json.dumps({"file": str(file), "valid": False, "problems": problems}, indent=2))


def _print(file: Path, checked: _Checked) -> None:
    typer.echo(f"{file} is a valid policy of {len(checked.policy.tables)} tables")
    if checked.silence is not None:
        typer.echo(f"seawall: {checked.silence}", err=True)
    elif checked.topics is None:
        typer.echo("seawall: only the file was looked at, and no cluster", err=True)
    if not checked.topics:
        return
    rows = [row for each in checked.topics for row in _rows(checked.policy, each)]
    typer.echo()
    print_table(("topic", "tables", "tier", "state"), rows)
    for pattern in checked.idle_patterns:
        typer.echo(f"seawall: {pattern} matches no topic", err=True)


def _rows(policy: Policy, compared: Compared) -> Iterable[tuple[Text, ...]]:
    tier = compared.deployment.value if compared.deployment is not None else "?"
    head = (Text(compared.topic), Text(", ".join(_matching(policy, compared)) or NOTHING), Text(tier))
    for state in _states(policy, compared):
        yield (*head, state)


def _states(policy: Policy, compared: Compared) -> Sequence[Text]:
    if compared.unknown is not None:
        return [Text(f"unknown: {compared.unknown}", style="magenta")]
    if compared.findings:
        return [Text(_said(finding, compared), style="bold red") for finding in compared.findings]
    if compared.is_undeclared:
        why = "no retention is declared" if _matching(policy, compared) else "no table matches"
        return [Text(why, style="yellow")]
    if compared.is_compacted_only:
        return [Text("compacted: retention does not apply", style="dim")]
    return [Text("as declared", style="green")]


def _said(finding: Finding, compared: Compared) -> str:
    brokers = f" (broker {', '.join(map(str, finding.brokers))})" if finding.brokers else ""
    return f"{finding.kind.value}: {finding.detail} by {compared.policy.origins[finding.key]}{brokers}"


def _matching(policy: Policy, compared: Compared) -> list[str]:
    return sorted(table.pattern.text for table in policy.matching(compared.topic))


def _as_json(file: Path, checked: _Checked) -> dict[str, Any]:
    topics = checked.topics
    return {
        "file": str(file),
        "valid": True,
        "policy_hash": checked.policy.content_hash,
        "cluster_id": checked.cluster_id,
        "silence": checked.silence,
        "topics": None if topics is None else [_topic_as_json(checked.policy, each) for each in topics],
        "idle_patterns": checked.idle_patterns,
    }


def _topic_as_json(policy: Policy, compared: Compared) -> dict[str, Any]:
    return {
        "topic": compared.topic,
        "patterns": _matching(policy, compared),
        "deployment": compared.deployment.value if compared.deployment is not None else None,
        "declares_retention": not compared.is_undeclared,
        "compacted_only": compared.is_compacted_only,
        "unknown": compared.unknown,
        "findings": [
            {
                "kind": finding.kind.value,
                "key": finding.key,
                "detail": finding.detail,
                "brokers": finding.brokers,
                "from": compared.policy.origins[finding.key].patterns,
            }
            for finding in compared.findings
        ],
    }
