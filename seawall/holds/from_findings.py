"""Which holds the findings of a run ask for: one for each log of an incident with an open critical finding.

The hold's id is made from incident and log, so that a run that finds the same places nothing anew, and what
somebody released stays released as long as it is the same incident. Our agents are kept from the whole log;
object versions are held where the incident says something was lost or changed, and everywhere if it does not.

A finding that somebody answers for (`audit suppress`, the policy) places none: it was looked at.

Owns the choice. Refuses findings of other clusters, and those about no log (emitters, the auditor itself).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rules.identity import LogId
from seawall.holds.service import Asked

OWNER = "seawall audit"
CRITICAL = "C"
REASON_CHARS = 200
ID_DIGITS = 16


class Subject(NamedTuple):
    """A log; of a topic as a whole, no partition."""

    cluster_id: str
    topic_id: str
    partition: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    subject: Subject
    asked: Asked

    @property
    def log(self) -> LogId | None:
        found = self.subject
        return None if found.partition is None else LogId(found.cluster_id, found.topic_id, found.partition)


def subject_of(finding: Mapping[str, Any]) -> Subject | None:
    """What of a finding's subject a hold can be placed on; None where it is about no log and no topic."""
    parts = str(finding["subject"]).split("/")
    if len(parts) < 2 or not parts[0] or not parts[1]:
        return None
    partition = int(parts[2]) if len(parts) > 2 and parts[2].isdecimal() else None
    return Subject(parts[0], parts[1], partition)


def wanted(findings: Iterable[Mapping[str, Any]], cluster_id: str) -> list[Wanted]:
    """In the order of the findings, the worst first."""
    grouped: dict[tuple[Subject, str], list[Mapping[str, Any]]] = {}
    for each in findings:
        subject = subject_of(each)
        if each["status"] != "open" or each["suppressed_by"] or subject is None:
            continue
        if subject.cluster_id == cluster_id:
            grouped.setdefault((subject, str(each["incident"])), []).append(each)
    return [
        Wanted(subject=subject, asked=_asked(subject, incident, members))
        for (subject, incident), members in grouped.items()
        if any(each["severity"] == CRITICAL for each in members)
    ]


def hold_id(incident: str, subject: Subject) -> str:
    told = "\n".join([incident, *map(str, subject)])
    return f"finding-{hashlib.sha256(told.encode()).hexdigest()[:ID_DIGITS]}"


def _asked(subject: Subject, incident: str, members: list[Mapping[str, Any]]) -> Asked:
    critical = [each for each in members if each["severity"] == CRITICAL]
    spans = [span for each in members for span in each["ranges"]]
    root = next((each for each in critical if each["finding_id"] == incident), critical[0])
    versions = (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, None)
    return Asked(
        hold_id=hold_id(incident, subject),
        start_offset=0,
        end_offset=None,
        reason=f"{root['rule_id']}: {root['note']}"[:REASON_CHARS],
        owner=OWNER,
        finding_id=str(root["finding_id"]),
        versions=versions,
    )
