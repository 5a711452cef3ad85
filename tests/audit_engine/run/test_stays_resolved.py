"""What was resolved on complete evidence is not opened again by evidence that is missing later."""

from __future__ import annotations

import json
from dataclasses import replace

from audit_engine.run.one_log import Doubt, Judged, Line, Task, judge
from rules.machine import Terms
from rules.machine.told import has_own_clock
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import LOG, MINUTE_MS, TOPIC, History

SILENT = (Doubt(why="silent: 1/agent", cluster_id=LOG.cluster_id),)


def first_run(h: History, task: Task) -> Judged:
    facts = [each for each in h.told if has_own_clock(each)]
    said = sorted(h.told, key=lambda each: each.order)
    judged = judge(LOG, TOPIC, Line(facts=facts, said=said), None, task)
    assert isinstance(judged, Judged)
    return judged


def next_run(before: Judged, task: Task) -> Judged:
    judged = judge(LOG, TOPIC, Line(facts=[], said=[]), before.state, task)
    assert isinstance(judged, Judged)
    return judged


def statuses(judged: Judged) -> dict[str, str]:
    return {each["rule_id"]: each["status"] for each in json.loads(judged.findings)}


def test_somebody_who_falls_silent_opens_nothing_that_was_resolved() -> None:
    """Fault 1: the start of a follower was put right by its election. A minute later its agent is silent."""
    h = trimmed_prefix("none")
    task = Task(terms=Terms(), from_ms=0, as_of_ms=h.now_ms)
    before = first_run(h, task)
    later = next_run(before, replace(task, as_of_ms=h.now_ms + MINUTE_MS, doubts=SILENT))

    assert statuses(before) == {"START-02": "open", "START-04": "resolved"}
    assert statuses(later) == statuses(before)
    assert later.statement.open_findings == before.statement.open_findings


def test_while_somebody_is_silent_nothing_is_resolved() -> None:
    """It is with the first run that misses nothing."""
    h = trimmed_prefix("none")
    task = Task(terms=Terms(), from_ms=0, as_of_ms=h.now_ms)
    before = first_run(h, replace(task, doubts=SILENT))
    still = next_run(before, replace(task, as_of_ms=h.now_ms + MINUTE_MS, doubts=SILENT))
    heard = next_run(still, replace(task, as_of_ms=h.now_ms + 2 * MINUTE_MS))

    assert [statuses(each)["START-04"] for each in (before, still, heard)] == ["open", "open", "resolved"]
