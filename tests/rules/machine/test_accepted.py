"""A loss that somebody takes as it is: exactly that finding closes, and what is lost beyond it stays open."""

from __future__ import annotations

from rules.events import LossAccepted
from rules.machine.accepted import CAN_BE_TAKEN_AS_LOST
from rules.machine.spans import Spans
from rules.machine.verdict import Finding, Status, Verdict
from tests.rules.machine.faults import middle_vanishes, retention_shrunk
from tests.rules.machine.histories import History


def accept(h: History, finding: Finding, ranges: Spans | None = None) -> None:
    """As `seawall audit accept-loss` says it."""
    within = finding.ranges if ranges is None else ranges
    h.say(
        LossAccepted,
        component="operator",
        start_offset=min((start for start, _ in within), default=0),
        end_offset=max((end for _, end in within), default=0),
        principal="alice",
        reason="it was test data",
        finding_id=finding.finding_id,
    )


def losses(h: History) -> list[Finding]:
    return [
        each
        for each in h.judged().findings
        if each.rule_id in CAN_BE_TAKEN_AS_LOST and each.status is Status.OPEN
    ]


def test_that_finding_closes_and_no_other() -> None:
    """Whatever else was lost in its range; and not one that is more by now than what was accepted."""
    h = retention_shrunk("none")
    [root] = [each for each in losses(h) if each.rule_id == "START-02"]
    one, *others = [each for each in losses(h) if each.rule_id == "RET-01"]

    accept(h, root)
    [(start, end)] = one.ranges
    accept(h, one, ((start, end - 1),))
    after = {each.finding_id: each for each in h.after(minutes=1).judged().findings}

    assert len(others) >= 2
    assert after[root.finding_id].status is Status.ACCEPTED
    assert {after[each.finding_id].status for each in (one, *others)} == {Status.OPEN}
    assert after[root.finding_id].ranges == root.ranges


def test_each_of_an_incident_can_be_taken() -> None:
    """One word each; what is no loss, such as a retention set wrong, is none to be taken and stays."""
    h = retention_shrunk("none")
    for each in losses(h):
        accept(h, each)
    [deviation] = [each for each in h.judged().findings if each.rule_id == "RET-03"]
    accept(h, deviation)
    h.after(minutes=1)

    assert losses(h) == []
    assert {each.rule_id for each in h.judged().findings if each.status is Status.OPEN} == {"RET-03"}


def test_a_hole_that_is_taken_as_lost_is_not_looked_for_again() -> None:
    """SEG-02 is a state of things: accepted, it stays so, and the log can pass."""
    h = middle_vanishes("none")
    [hole] = losses(h)
    accept(h, hole)
    judged = h.after(hours=2).judged()

    assert hole.rule_id == "SEG-02"
    assert [each.status for each in judged.findings] == [Status.ACCEPTED]
    assert judged.verdict is Verdict.PASS
