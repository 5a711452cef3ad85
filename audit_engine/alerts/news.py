"""What finished runs left for people: the outbox, read through a small port.

Owns the values. A run is told as a whole or not at all, and again under the same number when it was judged
again (`attempt` tells the two apart).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rules.machine.findings import SEVERITIES

Finding = Mapping[str, Any]  # as JSON holds it
LEADER = "leader_id"  # beside a finding's own members: who led its log as of the run; absent if not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What became of one finding in a run: opened, changed, resolved, restored, accepted, withdrawn."""

    change: str
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is news of one incident. `incident` is its root's finding_id."""

    incident: str
    changes: tuple[Changed, ...]

    @classmethod
    def of_row(cls, incident: str, message: str) -> Page:
        """From a row of `audit_outbox`."""
        told = json.loads(message)["changes"]
        changes = (
            Changed(
                change=each["change"],
                finding={name: value for name, value in each.items() if name != "change"},
            )
            for each in told
        )
        return cls(incident=incident, changes=tuple(changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNews:
    """One finished run. `is_complete`: its gate found the slice whole, so that silence means something.

    `pages` are what is news, and what ended of which there is none, as somebody answers for it: who was told
    that it began must hear that it is over.
    """

    run: int
    attempt: str
    as_of_ms: int
    is_complete: bool
    pages: tuple[Page, ...]


class Outbox(Protocol):
    """Where finished runs are read."""

    def since(self, taken: Mapping[int, str]) -> list[RunNews]:
        """Runs whose attempt is not the one that was taken in, in the order of their numbers."""
        ...


def own(finding: Finding) -> dict[str, Any]:
    """What the run found, without what was added for people: the same fault is the same, whoever leads."""
    return {name: value for name, value in finding.items() if name != LEADER}


def worst(severities: set[str]) -> str:
    """The gravest; a warning where there is none."""
    return max(severities, key=SEVERITIES.index, default=SEVERITIES[0])
