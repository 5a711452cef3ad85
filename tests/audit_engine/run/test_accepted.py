"""A gap in the evidence ends when it came after all, or when somebody takes it as lost; and only that gap."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from audit_engine.run.decisions import Decision, Sort, accepted_gaps
from audit_engine.run.one_emitter import HeardBefore, Listened, Slice, listen_to
from audit_engine.run.one_log import Task
from audit_engine.run.told import told_of
from rules.events import EvidenceGap, Source
from rules.machine import LogState, Told, fold, newborn
from rules.machine.emitters import summed
from rules.machine.verdict import Verdict, judge
from tests.rules.machine.histories import HOUR_MS, LOG, MIB, TERMS, TOPIC, fixture

WHO = "accepted by ann: the spool is gone"


def heard(
    said: Iterable[Told], before: Listened | None, as_of_ms: int, **accepted: str
) -> dict[tuple[int, str], Listened]:
    """What a run hears of each emitter; `before` is the same for all that are asked about."""
    task = Task(terms=TERMS, from_ms=0, as_of_ms=as_of_ms, accepted=accepted)
    carried = (
        None
        if before is None
        else HeardBefore(state=before.state, gaps=before.gaps, findings=before.findings)
    )
    return {
        (each.broker_id, each.component): listen_to(
            "c1", each.broker_id, each.component, Slice(said=each), carried, task
        )
        for each in summed(said)
    }


def told_gaps(listened: Listened) -> list[Told]:
    return [told_of(row) for row in json.loads(listened.new_gaps)]


def judged(state: LogState) -> Verdict:
    return judge(state, TERMS, from_ms=0).verdict


@pytest.fixture
def lost() -> dict[str, Any]:
    """The third thing that the policy's emitter, which watches no disk, said; and all without it."""
    h = fixture("ours").after(hours=2)
    h.declares("CHG-2", copy_deadline_ms='"2h"')
    h.declares("CHG-3", copy_deadline_ms='"1h"')
    said = [*h.told]
    policy = [each for each in said if each.speaker.component == "policy"]
    one = policy[-2]
    left = [each for each in said if each is not one]
    name = (one.speaker.broker_id, one.speaker.component)
    first = heard([each for each in left if each.speaker == one.speaker], None, h.now_ms)[name]
    state = fold(newborn(LOG, TOPIC), [*left, *told_gaps(first)], TERMS, as_of_ms=h.now_ms)
    return {"h": h, "one": one, "name": name, "first": first, "state": state}


def test_what_is_accepted_ends_for_logs_and_names_who(lost: dict[str, Any]) -> None:
    """AUD-01 and INDETERMINATE; accepted: no finding, and the log passes on what there is. That is told
    once, and kept for a log that is folded again from before."""
    h, first, name = lost["h"], lost["first"], lost["name"]
    [finding] = json.loads(first.findings)
    assert finding["rule_id"] == "AUD-01"
    assert judged(lost["state"]) is Verdict.INDETERMINATE

    h.after(hours=1).declares("CHG-4", copy_deadline_ms='"3h"')
    newest = [h.told[-1]]
    accepted = {finding["finding_id"]: WHO}
    second = heard(newest, first, h.now_ms, **accepted)[name]
    state = fold(lost["state"], [*newest, *told_gaps(second)], TERMS, as_of_ms=h.now_ms)
    h.after(hours=1).declares("CHG-5", copy_deadline_ms='"4h"')
    third = heard([h.told[-1]], second, h.now_ms, **accepted)[name]

    assert json.loads(second.findings) == []
    assert judged(state) is Verdict.PASS
    assert [gap.detail.partition("; ")[2] for gap in state.gaps] == [WHO]
    assert json.loads(third.new_gaps) == []
    assert len(json.loads(third.gaps)) == 1


def test_what_comes_after_all_ends_for_every_log(lost: dict[str, Any]) -> None:
    """Also for one that it was not about: it hears nothing late, and waits no more."""
    h, first, name = lost["h"], lost["first"], lost["name"]
    h.after(hours=1)

    second = heard([lost["one"]], first, h.now_ms)[name]
    state = fold(lost["state"], told_gaps(second), TERMS, as_of_ms=h.now_ms)

    assert json.loads(second.findings) == []
    assert judged(state) is Verdict.PASS


def test_what_is_lost_later_is_not_accepted_with_it(lost: dict[str, Any]) -> None:
    """A hole that nobody had seen when it was accepted stands, with a finding of its own."""
    h, first, name = lost["h"], lost["first"], lost["name"]
    [finding] = json.loads(first.findings)
    h.after(hours=1).declares("CHG-4", copy_deadline_ms='"3h"')
    newest = h.told[-1]
    later = replace(newest, seq=newest.seq + 3, observed_at_ms=h.now_ms + HOUR_MS)

    second = heard([newest, later], first, h.now_ms + HOUR_MS, **{finding["finding_id"]: WHO})[name]

    assert [each["anchor"] for each in json.loads(second.findings)] == [f"7:{newest.seq + 1}"]


def test_a_follower_ahead_of_its_leader_is_found_once_its_broker_tells_again() -> None:
    """A broker restarts with a start of its own, and its settings could not be asked for meanwhile: while
    that stands, nothing is condemned; once it ends START-04 is found, hours before the next baseline."""
    h = fixture("none")
    h.after(minutes=5)
    nothing = dict.fromkeys(("topic_id", "topic", "partition", "gap_start", "gap_end", "not_before_ms"))
    gap: dict[str, Any] = {**nothing, "source": Source.ADMIN}
    h.say(EvidenceGap, 3, problem="config_untold", detail="broker 3: no answer", **gap)
    h.start(3, 0, 3_000, local=3_000)
    h.after(hours=1).watermark(3, 10_500, size_bytes=MIB, start=3_000)
    while_it_stands = h.judged()
    h.say(EvidenceGap, 2, problem="made_good", detail="config_untold", **gap)
    of_another = h.judged()
    h.say(EvidenceGap, 3, problem="made_good", detail="config_untold", **gap)
    h.after(minutes=1)
    ended = h.judged()

    assert "START-04" not in {each.rule_id for each in while_it_stands.findings}
    assert "START-04" not in {each.rule_id for each in of_another.findings}
    assert while_it_stands.verdict is Verdict.INDETERMINATE
    assert [(each.rule_id, each.subject.rpartition(" ")[2]) for each in ended.findings] == [("START-04", "3")]


def test_only_what_never_came_can_be_accepted() -> None:
    """A loss of records is accepted elsewhere, by an event of its own."""
    own: dict[str, Any] = {
        "subject": "s",
        "owner": "ann",
        "reason": "gone",
        "decided_at_ms": 1,
        "finding_id": "f",
    }
    gap = Decision(sort=Sort.ACCEPT, rule_id="AUD-01", number=1, **own)

    assert accepted_gaps([gap]) == {"f": "accepted by ann: gone"}
    with pytest.raises(ValueError, match="what never came"):
        Decision(sort=Sort.ACCEPT, rule_id="START-02", **own)
