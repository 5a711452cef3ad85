"""A loss that somebody takes as it is.

    with a finding     that one closes, if all of it lies in the range, and no other
    without            every loss that lies wholly in the range

Owns how such a word is taken. Invariant: what is lost beyond the accepted range stays open.
"""

from __future__ import annotations

from rules.events import LossAccepted
from rules.machine.cluster import LOSSES
from rules.machine.findings import close, close_covered, own_id
from rules.machine.spans import Spans, covers, join, span
from rules.machine.state import LogState
from rules.machine.terms import Terms

# What is not there any more, as a state of things: taken as lost, it is not looked for again.
ABSENCES = frozenset({"SEG-02", "START-06"})
CAN_BE_TAKEN_AS_LOST = LOSSES | ABSENCES


def loss_accepted(state: LogState, event: LossAccepted, terms: Terms) -> None:
    """Of one finding where it names one, as far as its range goes; else of all losses within the range."""
    by = f"accepted by {event.principal}"
    whole = span(event.start_offset, event.end_offset)
    if event.finding_id is not None:
        _taken_as_lost(state, event.finding_id, whole, event.occurred_at_ms, by)
    elif whole:
        state.accepted = join(state.accepted, whole)
        close_covered(state, whole, event.occurred_at_ms, by, LOSSES)
        for found in state.findings.values():
            if not found.ranges and found.rule_id in LOSSES and event.start_offset == 0:
                close(found, event.occurred_at_ms, by)


def _taken_as_lost(state: LogState, finding_id: str, whole: Spans, at_ms: int, by: str) -> None:
    """That one and no other; not, where it has become more than was accepted."""
    for found in state.findings.values():
        if found.rule_id not in CAN_BE_TAKEN_AS_LOST or own_id(state, found) != finding_id:
            continue
        if covers(whole, found.ranges):
            close(found, at_ms, by)
            if found.rule_id in ABSENCES:
                state.accepted = join(state.accepted, found.ranges)
