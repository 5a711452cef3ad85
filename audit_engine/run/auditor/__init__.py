"""Whether the auditor itself can be believed: AUD-04 to AUD-07, as findings beside those of emitters.

    AUD-04  each commit to the tables of evidence is one that Seawall makes
    AUD-05  runs came within their cadence, and judged no fewer logs than before
    AUD-06  nothing came later than the horizon behind which no statement is rewritten
    AUD-07  the canary's fault was found, exactly

Owns these judgements, pure. Invariant: each depends on what the run was cut to, so that a run that is judged
again comes to the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from audit_engine.run.canary import CLUSTER, Canary
from audit_engine.tables.marks import read
from rules.catalogue import rule
from rules.machine.findings import finding_id
from rules.machine.terms import Terms
from rules.moments import write_moment

CADENCE_MS = 26 * 3_600_000  # a daily run, and two hours
TABLE_PROPERTIES = frozenset(
    {
        "delta.appendOnly",
        "delta.enableChangeDataFeed",
        "delta.logRetentionDuration",
        "delta.deletedFileRetentionDuration",
    }
)
# What changes no row; `maintain` does it, or Delta by itself.
UPKEEP = frozenset(
    {"CREATE TABLE", "ADD CONSTRAINT", "ADD COLUMNS", "OPTIMIZE", "VACUUM START", "VACUUM END"}
)
_SET = ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One line of a table's history."""

    version: int
    operation: str
    parameters: Mapping[str, str]
    user_metadata: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tardy:
    """Of one run of an emitter: numbers that came later than the horizon."""

    cluster_id: str
    emitter: str
    first_seq: int
    events: int


def tampered(table: str, history: Iterable[Commit]) -> Iterator[dict[str, Any]]:
    """AUD-04, one a commit."""
    for commit in sorted(history, key=lambda each: each.version):
        why = _why_not(commit)
        if why is not None:
            yield _about(
                "AUD-04", "C", f"tables/{table}", str(commit.version), f"version {commit.version}: {why}"
            )


def _why_not(commit: Commit) -> str | None:
    if commit.operation in UPKEEP:
        return None
    if commit.operation == "WRITE":
        if commit.parameters.get("mode") != "Append":
            return f"a write that replaced rows ({commit.parameters.get('mode')})"
        return None if read(commit.user_metadata) is not None else "rows that no ingest of Seawall added"
    if commit.operation in _SET:
        return _why_not_set(commit)
    return f"{commit.operation}, which Seawall never does"


def _why_not_set(commit: Commit) -> str | None:
    told = commit.parameters.get("properties", "{}")
    try:
        named = json.loads(told)
    except ValueError:
        named = {"?": told}
    properties = named if isinstance(named, dict) else dict.fromkeys(named, "unset")
    odd = sorted(set(properties) - TABLE_PROPERTIES)
    if commit.operation.startswith("UNSET"):
        return f"properties were unset: {', '.join(sorted(properties))}"
    if str(properties.get("delta.appendOnly", "true")).lower() != "true":
        return "delta.appendOnly was turned off: rows could be changed from here on"
    return f"properties were set: {', '.join(odd)}" if odd else None


def out_of_cadence(
    *, as_of_ms: int, since_ms: int | None, logs: int, logs_before: int | None
) -> Iterator[dict[str, Any]]:
    """AUD-05. A log that was deleted is carried, and judged as gone: their number never falls."""
    if since_ms is not None and as_of_ms - since_ms > CADENCE_MS:
        between = f"{write_moment(since_ms)} and {write_moment(as_of_ms)}"
        yield _about("AUD-05", "W", "runs", "cadence", f"no run judged as of any moment between {between}")
    if logs_before is not None and logs < logs_before:
        note = f"{logs} logs were judged, and {logs_before} by the run before; none is ever given up"
        yield _about("AUD-05", "W", "runs", "logs", note)


def tardy(found: Iterable[Tardy], terms: Terms) -> Iterator[dict[str, Any]]:
    """AUD-06, one an emitter's run: named by the first number that came so late."""
    days = terms.lateness_ms // 86_400_000
    for each in sorted(found, key=lambda one: (one.cluster_id, one.emitter)):
        note = f"{each.events} events came more than {days} days after they were observed"
        subject = f"{each.cluster_id}/emitter {each.emitter}"
        yield _about("AUD-06", "W", subject, str(each.first_seq), note)


def blind(canary: Canary, found: Iterable[Mapping[str, Any]] | None) -> Iterator[dict[str, Any]]:
    """AUD-07. `found`: what the run found of the canary's log, None if it did not judge it at all."""
    if found is None:
        note = f"the canary was not judged: {canary.fault}"
    else:
        told = {
            (each["rule_id"], each["severity"], tuple((start, end) for start, end in each["ranges"]))
            for each in found
            if each["status"] == "open"
        }
        if told == canary.expected:
            return
        note = (
            f"the canary's fault ({canary.fault}): not found {_spoken(canary.expected - told)};"
            f" found and not there {_spoken(told - canary.expected)}"
        )
    yield _about("AUD-07", "C", CLUSTER, "found", note)


def _spoken(found: Iterable[tuple[str, str, Any]]) -> str:
    listed = [
        " ".join([rule_id, severity, *(f"[{start}, {end})" for start, end in ranges)])
        for rule_id, severity, ranges in sorted(found)
    ]
    return ", ".join(listed) or "nothing"


def _about(rule_id: str, severity: str, subject: str, anchor: str, note: str) -> dict[str, Any]:
    return {
        "finding_id": finding_id(rule_id, rule(rule_id).major, subject, anchor),
        "rule_id": rule_id,
        "severity": severity,
        "subject": subject,
        "anchor": anchor,
        "note": note,
    }
