"""Findings as people meet them: incidents, each a root and what follows from it, the worst first.

Of offsets that went, each log's largest finding counts: a root and its children tell of the same range.
`lost_offsets`: no copy of them is known. Only what is critical counts: a declared change that lets data go is
no loss.

Owns the grouping. Invariant: every open finding is in one incident, or among the suppressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from audit_engine.report.values import SEVERITIES, Gathered, Row, Subject, subject_of
from audit_engine.report.words import number, things
from rules.identity import LogId

PICTURED_MAX = 25  # incidents with a picture; the others are rows of a table
PICTURES_MAX = 3  # of one incident: the logs that lost most
LISTED_MAX = 500  # rows of that table
FINDINGS_MAX = 30  # shown of one incident


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """`findings`: the root first. `change`: what became of it in this run; none: it stands as it was."""

    root: Row
    findings: tuple[Row, ...]
    severity: str
    lost_offsets: int
    recoverable_offsets: int
    change: str | None

    @property
    def logs(self) -> tuple[LogId, ...]:
        """Those that lost most first."""
        largest: dict[LogId, int] = {}
        for each in self.findings:
            log = subject_of(each["subject"]).log
            if log is not None:
                size = sum(end - start for start, end in each["ranges"])
                largest[log] = max(size, largest.get(log, 0))
        return tuple(sorted(largest, key=lambda log: (-largest[log], log)))

    @property
    def open_findings(self) -> tuple[Row, ...]:
        return tuple(each for each in self.findings if is_open(each))


def is_open(finding: Row) -> bool:
    return bool(finding["status"] == "open")


def suppressed(findings: Iterable[Row]) -> list[Row]:
    """Open, and somebody answers for them."""
    found = (each for each in findings if is_open(each) and each["suppressed_by"] is not None)
    return sorted(
        found, key=lambda each: (SEVERITIES.index(each["severity"]), each["subject"], each["rule_id"])
    )


def incidents(findings: Iterable[Row], changes: Iterable[Row] = ()) -> list[Incident]:
    """Those of which something is open that nobody answers for; the worst first."""
    changed = {each["finding_id"]: str(each["change"]) for each in changes}
    by_id: dict[str, list[Row]] = {}
    for each in findings:
        if each["status"] != "withdrawn" and each["suppressed_by"] is None:
            by_id.setdefault(each["incident"], []).append(each)
    found = [
        _incident(incident, told, changed)
        for incident, told in by_id.items()
        if any(is_open(each) for each in told)
    ]
    return sorted(
        found,
        key=lambda each: (
            SEVERITIES.index(each.severity),
            each.root["rule_id"].startswith("AUD-"),
            -each.lost_offsets,
            -each.recoverable_offsets,
            -each.root["opened_ms"],
            each.root["finding_id"],
        ),
    )


def pictured(findings: Iterable[Row]) -> list[LogId]:
    """The logs whose states a report draws, and one of each topic whose settings it puts back."""
    shown = incidents(findings)[:PICTURED_MAX]
    found = {log for each in shown for log in each.logs[:PICTURES_MAX]}
    about = (subject_of(each.root["subject"]) for each in shown if not each.logs)
    found |= {LogId(each.cluster_id, each.topic_id, 0) for each in about if each.topic_id is not None}
    return sorted(found)


def name_of(finding: Row, gathered: Gathered) -> str:
    """What a finding is about, by name: orders-0, or orders, or what it says itself."""
    return named(subject_of(finding["subject"]), gathered.topics)


def named(subject: Subject, topics: dict[tuple[str, str], str]) -> str:
    if subject.topic_id is None:
        return subject.rest
    topic = topics.get((subject.cluster_id, subject.topic_id), subject.topic_id)
    return topic if subject.partition is None else f"{topic}-{subject.partition}"


def what_went(lost_offsets: int, recoverable_offsets: int) -> str:
    """In words; empty where no offset did."""
    told = []
    if lost_offsets:
        told.append(f"{things(lost_offsets, 'offset')} with no known copy")
    if recoverable_offsets:
        told.append(f"{number(recoverable_offsets)} recoverable")
    return ", ".join(told)


def _incident(incident: str, told: Sequence[Row], changed: dict[str, str]) -> Incident:
    ordered = sorted(
        told,
        key=lambda each: (
            each["finding_id"] != incident,
            each["parent"] is not None,
            not is_open(each),
            SEVERITIES.index(each["severity"]),
            each["rule_id"],
            [list(span) for span in each["ranges"]],
            each["finding_id"],
        ),
    )
    standing = [each for each in ordered if is_open(each)]
    lost: dict[str, int] = {}
    recoverable: dict[str, int] = {}
    for each in standing:
        if each["severity"] == "C":
            about = "/".join(str(each["subject"]).split("/")[:3])
            lost[about] = max(lost.get(about, 0), each["lost_offsets"])
            recoverable[about] = max(recoverable.get(about, 0), each["recoverable_offsets"])
    news = {changed[each["finding_id"]] for each in ordered if each["finding_id"] in changed}
    change = "opened" if changed.get(ordered[0]["finding_id"]) == "opened" else "changed" if news else None
    return Incident(
        root=ordered[0],
        findings=tuple(ordered),
        severity=min((each["severity"] for each in standing), key=SEVERITIES.index),
        lost_offsets=sum(lost.values()),
        recoverable_offsets=sum(recoverable.values()),
        change=change,
    )
