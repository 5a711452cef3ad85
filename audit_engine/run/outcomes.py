"""The findings of this run against those of the run before: what changed, for the record and for people.

    opened     it was not there, or was not open any more
    changed    it is open still, and something of it is another
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
from rules.machine.verdict import Finding, Status

Told = Mapping[str, Any]  # a finding as JSON holds it


class Change(str, Enum):
    OPENED = "opened"
    CHANGED = "changed"
    RESOLVED = "resolved"
    RESTORED = "restored"
    ACCEPTED = "accepted"
    WITHDRAWN = "withdrawn"


# What somebody is told of again; the rest is for the record.
_NEWS = ("severity", "ranges", "incident", "suppressed_by", "recoverable_offsets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`is_news`: somebody has to be told."""

    change: Change
    finding: Told
    is_news: bool = True


def told(finding: Finding) -> dict[str, Any]:
    """A finding as JSON holds it."""
    members = {name: getattr(finding, name) for name in finding.__slots__}
    return members | {
        "status": finding.status.value,
        "ranges": [list(each) for each in finding.ranges],
        "held_by": list(finding.held_by),
    }


def finding_of(members: Told) -> Finding:
    """The way back from `told`."""
    own = {name: members[name] for name in Finding.__slots__}
    return Finding(
        **own
        | {
            "status": Status(own["status"]),
            "ranges": tuple((start, end) for start, end in own["ranges"]),
            "held_by": tuple(own["held_by"]),
        }
    )


def changes(before: Iterable[Told], after: Iterable[Told]) -> list[Outcome]:
    """Each finding of `after` that is not as it was, and each open one of `before` that is gone."""
    known = {each["finding_id"]: each for each in before}
    now = {each["finding_id"]: each for each in after}
    found = [_outcome(known.get(finding_id), each) for finding_id, each in now.items()]
    found += [
        Outcome(change=Change.WITHDRAWN, finding={**each, "status": Status.WITHDRAWN.value})
        for each in known.values()
        if each["finding_id"] not in now and _is_open(each)
    ]
    listed = (each for each in found if each is not None)
    return sorted(listed, key=lambda each: each.finding["finding_id"])


def _outcome(before: Told | None, after: Told) -> Outcome | None:
    was_open = before is not None and _is_open(before)
    if _is_open(after):
        if before is None or not was_open:
            return Outcome(change=Change.OPENED, finding=after, is_news=not _is_let_be(after))
        if before == after:
            return None
        is_news = not _is_let_be(after) and any(before[name] != after[name] for name in _NEWS)
        return Outcome(change=Change.CHANGED, finding=after, is_news=is_news)
    if before is not None and before["status"] == after["status"]:
        return None
    # What came and went between two runs is for the record alone: nobody was told that it was there.
    is_news = was_open and not _is_let_be(after)
    return Outcome(change=Change(after["status"]), finding=after, is_news=is_news)


def _is_let_be(finding: Told) -> bool:
    """Somebody answers for it: nobody is told, until that ends."""
    return finding["suppressed_by"] is not None


def _is_open(finding: Told) -> bool:
    return bool(finding["status"] == Status.OPEN.value)


def pages(outcomes: Iterable[Outcome]) -> list[dict[str, str]]:
    """What somebody is told: one message an incident, with everything of it that is news in this run."""
    by_incident: dict[str, list[Outcome]] = {}
    for each in outcomes:
        if each.is_news:
            by_incident.setdefault(each.finding["incident"], []).append(each)
    return [
        {
            "incident": incident,
            "severity": max((each.finding["severity"] for each in of_it), key=SEVERITIES.index),
            "message": json.dumps(
                {"changes": [{"change": each.change.value, **each.finding} for each in of_it]}, sort_keys=True
            ),
        }
        for incident, of_it in sorted(by_incident.items())
    ]
