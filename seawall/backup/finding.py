"""What a finding says is lost, as what a plan is asked for.

Owns the reading of one row. Refuses a finding that is not of one log, or names no offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from audit_engine.report.values import subject_of
from backup.errors import BackupError
from backup.plan import Range
from rules.identity import LogId
from seawall.settings import Settings
from tiering.segments.records import Json


@dataclass(kw_only=True, eq=False)
class FindingNotOfALog(BackupError):
    """finding {finding_id} cannot be planned for: {why}

    `seawall audit explain` says what it is about; name the log and --offsets yourself.
    """

    finding_id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The log and the offsets that a finding is about. `details` go into the plan."""

    log: LogId
    range: Range
    text: str
    details: Mapping[str, Json]


def read_finding(settings: Settings, tables: str, wanted: str) -> Found:
    """The finding whose id begins so, as the last run left it."""
    from audit_engine.run.reading.spark import Verdicts
    from audit_engine.tables.place import root_of
    from seawall.audit.spark import session

    root = root_of(tables)
    with session(settings, root) as (spark, _):
        return found_of(Verdicts(spark, root).finding(wanted))


def found_of(row: Mapping[str, Any]) -> Found:
    """What a row of the findings asks for."""
    finding_id, subject = str(row["finding_id"]), subject_of(row["subject"])
    log = subject.log
    if log is None:
        raise FindingNotOfALog(finding_id=finding_id, why=f"it is about {row['subject']}")
    spans = [(int(start), int(end)) for start, end in row["ranges"]]
    if not spans:
        raise FindingNotOfALog(finding_id=finding_id, why="it names no offsets")
    whole = Range(min(start for start, _ in spans), max(end for _, end in spans))
    said = " ".join(f"[{start}, {end})" for start, end in spans)
    return Found(
        log=log,
        range=whole,
        text=f"{row['rule_id']} {finding_id} {said}",
        details={
            "finding_id": finding_id,
            "rule_id": str(row["rule_id"]),
            "held_by": [int(each) for each in row["held_by"]],
        },
    )
