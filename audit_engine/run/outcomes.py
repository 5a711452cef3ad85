"""A log's findings of this run against those of the run before: what changed, for the record and for people.

    opened     it was not there, or was not open any more
    changed    it is open still, and its range or severity is another
    ended      resolved, restored or accepted
    withdrawn  late evidence justifies it, or there would have been none

Of what is as it was nothing is written: a finding that stands for a month is one row, not thirty.

Owns the comparison. Invariant: the changes of all runs, one after another, come to the findings of the last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rules.machine.findings import SEVERITIES
from rules.machine.verdict import Finding, Statement, Status

Told = Mapping[str, Any]  # a finding as JSON holds it


class Change(str, Enum):
    OPENED = "opened"
    CHANGED = "changed"
    RESOLVED = "resolved"
    RESTORED = "restored"
    ACCEPTED = "accepted"
    WITHDRAWN = "withdrawn"


_WHAT_PEOPLE_SEE = ("severity", "ranges", "status", "incident", "suppressed_by", "recoverable_offsets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    change: Change
    finding: Told


def told(finding: Finding) -> dict[str, Any]:
    """A finding as JSON holds it."""
    members = {name: getattr(finding, name) for name in finding.__slots__}
    return members | {
        "status": finding.status.value,
        "ranges": [list(each) for each in finding.ranges],
        "held_by": list(finding.held_by),
    }


def changes(before: Iterable[Told], after: Iterable[Told]) -> list[Outcome]:
    known = {each["finding_id"]: each for each in before}
    now = {each["finding_id"]: each for each in after}
    found = [
        Outcome(change=change, finding=each)
        for each in now.values()
        if (change := _change(known.get(each["finding_id"]), each)) is not None
    ]
    gone = [each for each in known.values() if each["finding_id"] not in now and _is_open(each)]
    found += [
        Outcome(change=Change.WITHDRAWN, finding={**each, "status": Status.WITHDRAWN.value}) for each in gone
    ]
    return sorted(found, key=lambda each: each.finding["finding_id"])


def _change(before: Told | None, after: Told) -> Change | None:
    was_open = before is not None and _is_open(before)
    if _is_open(after):
        if not was_open:
            return Change.OPENED
        assert before is not None
        is_same = all(before[name] == after[name] for name in _WHAT_PEOPLE_SEE)
        return None if is_same else Change.CHANGED
    if before is not None and before["status"] == after["status"]:
        return None
    if before is None and after["status"] in (Status.WITHDRAWN.value, Status.RESOLVED.value):
        return None  # it came and went between two runs, and nobody was told
    return Change(after["status"])


def _is_open(finding: Told) -> bool:
    return bool(finding["status"] == Status.OPEN.value)


def pages(statement: Statement, outcomes: Iterable[Outcome]) -> list[dict[str, str]]:
    """What somebody is told: one message an incident, with everything of it that changed in this run."""
    by_incident: dict[str, list[Outcome]] = {}
    for each in outcomes:
        by_incident.setdefault(each.finding["incident"], []).append(each)
    return [
        {
            "incident": incident,
            "severity": max((each.finding["severity"] for each in of_it), key=SEVERITIES.index),
            "message": json.dumps(
                {
                    "topic": statement.topic,
                    "partition": statement.partition,
                    "verdict": statement.verdict.value,
                    "claim": statement.claim,
                    "changes": [{"change": each.change.value, **each.finding} for each in of_it],
                },
                sort_keys=True,
            ),
        }
        for incident, of_it in sorted(by_incident.items())
    ]
