"""Where each log stands with expiry and trim is told when it changes, and why it is kept is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from rules.identity import LogId
from seawall.agent.errors import NoRoomForEvidence
from seawall.agent.metrics import Tally
from seawall.agent.removing import Told

LOG = LogId("c", "t", 0)


@dataclass(frozen=True, slots=True)
class _Standing:
    state: str
    reason: str
    topic: str = "orders"
    detail: str = "DEL-01"


class _Lines:
    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def info(self, name: str, **own: Any) -> None:
        self.said.append({"name": name, **own})


def test_a_refusal_of_the_audits_machine_is_a_line_and_a_count() -> None:
    """Once while it stands, again when it comes again; what is removed is no reason to keep."""
    turns = [
        _Standing("kept", "audit_would_condemn"),
        _Standing("kept", "audit_would_condemn"),
        _Standing("removed", ""),
        _Standing("kept", "audit_would_condemn"),
    ]
    left, lines, tally = iter(turns), _Lines(), Tally()
    told = Told(
        "expiry",
        lambda: {LOG: next(left)},
        log=lines,
        evidence_is_full=lambda: False,
        kept_for=tally.kept_for,
    )

    for _ in turns:
        told.run_once()

    assert [each["reason"] for each in lines.said] == ["audit_would_condemn", "", "audit_would_condemn"]
    assert tally.copy()[3] == Counter({"audit_would_condemn": 2})


def test_nothing_is_removed_that_could_not_be_told() -> None:
    """Without room for evidence there is no turn."""
    told = Told("trim", dict, log=_Lines(), evidence_is_full=lambda: True, kept_for=Tally().kept_for)

    with pytest.raises(NoRoomForEvidence):
        told.run_once()
