"""What many logs say together, over what was found before: by any cut of the evidence it is the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_engine.run.fleet import standing
from audit_engine.run.outcomes import Change, changes
from rules.identity import LogId
from rules.machine import fold, newborn
from rules.machine.findings import finding_id
from rules.machine.fleet import Blast, blasts
from tests.rules.machine.histories import HOUR_MS, LOG, T0_MS, TERMS, TOPIC
from tests.rules.machine.random_limits import random_limits

OTHER = LogId(LOG.cluster_id, LOG.topic_id, 1)
HOUR = T0_MS // HOUR_MS
SUBJECT = f"{LOG.cluster_id}/{LOG.topic_id}"
TOO_MUCH = Blast(
    finding_id=finding_id("OPS-02", 1, SUBJECT, str(HOUR * HOUR_MS)),
    cluster_id=LOG.cluster_id,
    topic_id=LOG.topic_id,
    hour=HOUR,
    segments=120,
    limit=100,
)
COUNTED_TO_MS = (HOUR + 1) * HOUR_MS + TERMS.lateness_ms


def _after(found: list[Blast], before: list[dict[str, Any]], as_of_ms: int) -> list[dict[str, Any]]:
    return standing((), found, (), before, as_of_ms=as_of_ms, terms=TERMS)


def test_what_a_late_declaration_lets_go_is_withdrawn() -> None:
    """While its hour is counted, an hour that is no more above its limit was never too much."""
    before = _after([TOO_MUCH], [], T0_MS)
    now = _after([], before, COUNTED_TO_MS)

    assert [each["finding_id"] for each in before] == [TOO_MUCH.finding_id]
    assert now == []
    assert [each.change for each in changes(before, now)] == [Change.WITHDRAWN]


def test_what_nobody_counts_any_more_stays_found() -> None:
    """Behind the horizon that no log counts it says nothing: the finding stands as it was."""
    before = _after([TOO_MUCH], [], T0_MS)
    now = _after([], before, COUNTED_TO_MS + 1)

    assert now == before
    assert changes(before, now) == []


def _once_and_twice(seed: int, cut_ms: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Random days of two logs under a small limit: in one run, and in two; but when each was opened."""
    topic = {log: random_limits(seed + 2**40 * log.partition, seed, log) for log in (LOG, OTHER)}
    end_ms = max(h.now_ms for h in topic.values())
    whole = [fold(newborn(log, TOPIC), h.told, TERMS, as_of_ms=end_ms) for log, h in topic.items()]
    first = {log: fold(newborn(log, TOPIC), h.told, TERMS, as_of_ms=cut_ms) for log, h in topic.items()}
    second = [
        fold(first[log], [each for each in h.told if each.observed_at_ms > cut_ms], TERMS, as_of_ms=end_ms)
        for log, h in topic.items()
    ]
    once = _after([*blasts(whole)], [], end_ms)
    twice = _after([*blasts(second)], _after([*blasts(first.values())], [], cut_ms), end_ms)
    return [each | {"opened_ms": 0} for each in once], [each | {"opened_ms": 0} for each in twice]


@pytest.mark.parametrize(("seed", "after_ms"), [(352, 2_404_533), (454, 10_171_617)])
def test_what_was_let_go_between_two_runs_is_in_neither(seed: int, after_ms: int) -> None:
    """Seeds in which a declaration comes between the cut and the end, and takes an hour below its limit."""
    once, twice = _once_and_twice(seed, T0_MS + after_ms)

    assert twice == once


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=60, deadline=None)
def test_one_run_and_two_find_the_same_hours(seed: int, data: st.DataObject) -> None:
    """Cut anywhere."""
    once, twice = _once_and_twice(seed, T0_MS + data.draw(st.integers(0, 40 * HOUR_MS)))

    assert twice == once
