"""`seawall audit accept-loss`: which findings can be taken as lost, and the events that say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rules.events import LossAccepted
from rules.identity import LogId
from seawall.audit.loss import NoLoss, cluster_of, events_of, incident_of


def finding(rule_id: str = "START-02", **own: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "finding_id": "f1",
        "rule_id": rule_id,
        "subject": "c1/T1/0",
        "ranges": [[0, 1000], [2000, 3000]],
        "status": "open",
        "incident": "f1",
    }
    return told | own


def said(found: dict[str, Any], logs: Sequence[LogId]) -> list[LossAccepted]:
    names = dict.fromkeys(logs, "orders")
    return list(events_of(found, names, principal="alice", reason="why", now_ms=7))


def test_an_event_has_all_of_the_finding_and_its_log_alone() -> None:
    """Of a topic's finding, each of its logs; of what has no range, an empty one."""
    logs = [LogId("c1", "T1", 0), LogId("c1", "T1", 1), LogId("c1", "T2", 0)]

    [one] = said(finding(), logs)
    both = said(finding("OPS-01", subject="c1/T1", ranges=[]), logs)

    assert (one.log, one.start_offset, one.end_offset, one.finding_id) == (logs[0], 0, 3000, "f1")
    assert [(each.log, each.start_offset, each.end_offset) for each in both] == [
        (logs[0], 0, 0),
        (logs[1], 0, 0),
    ]
    assert said(finding(subject="c1/T1/0/replica 2"), logs)[0].log == logs[0]


def test_what_is_no_loss_cannot_be_taken_as_one() -> None:
    """A setting that is wrong, evidence that never came; of an incident what is lost and open, alone."""
    for rule_id in ("RET-03", "START-04", "AUD-01", "OPS-02"):
        with pytest.raises(NoLoss):
            cluster_of(finding(rule_id))
    others = [
        finding("RET-01", finding_id="f2"),
        finding("RET-01", finding_id="f3", status="accepted"),
        finding("RET-03", finding_id="f4"),
        finding("START-02", finding_id="f5", incident="f5"),
    ]
    assert [each["finding_id"] for each in incident_of(finding(), [finding(), *others])] == ["f1", "f2"]
