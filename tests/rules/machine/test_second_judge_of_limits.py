"""The machine against the second judge of limits: RET-05, OPS-02 and HWM-03, over random histories.

`random_limits(seed)` and `random_rises(seed)` make a history again; a failure names its seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.identity import LogId
from rules.machine import conditions, encode, fabricated, fold, newborn, removals
from rules.machine.conditions import ages
from rules.machine.fleet import blasts
from tests.rules.machine.brute_limits import JUDGED, LimitsJudge, too_fast
from tests.rules.machine.comparing import (
    is_a_matter_of_words,
    kept_by_machine,
    made_of_nothing_by_machine,
)
from tests.rules.machine.histories import LOG, T0_MS, TERMS, TOPIC
from tests.rules.machine.random_limits import random_limits, random_rises

FAST, MANY = 60, 3_000
OTHER = LogId(LOG.cluster_id, LOG.topic_id, 1)
Found = dict[str, set[Any]]


def _both(seed: int) -> tuple[Found, Found]:
    """By the machine, and by the other."""
    topic = [random_limits(seed, seed, LOG), random_limits(seed + 2**40, seed, OTHER)]
    judges = [LimitsJudge(h.told, h.now_ms) for h in topic]
    rises = random_rises(seed)
    machine: Found = {
        "RET-05": {(at, base) for at, h in enumerate(topic) for base in kept_by_machine(h.judged())},
        "OPS-02": {(each.hour, each.segments) for each in blasts(h.state() for h in topic)},
        "HWM-03": made_of_nothing_by_machine(rises.judged()),
    }
    truth: Found = {
        "RET-05": {(at, base) for at, each in enumerate(judges) for base in each.kept_too_long()},
        "OPS-02": too_fast(judges),
        "HWM-03": set(LimitsJudge(rises.told, rises.now_ms).made_of_nothing()),
    }
    if any(is_a_matter_of_words(h) for h in topic):
        machine["OPS-02"] = truth["OPS-02"] = set()
    return machine, truth


def _differences(seed: int) -> dict[str, tuple[set[Any], set[Any]]]:
    machine, truth = _both(seed)
    return {
        rule_id: (machine[rule_id], truth[rule_id])
        for rule_id in JUDGED
        if machine[rule_id] != truth[rule_id]
    }


@pytest.mark.slow
def test_the_two_judges_agree_about_limits() -> None:
    """Heads that stayed, hours in which too much went, watermarks made of nothing: each, and no other."""
    wrong = {seed: found for seed in range(FAST) if (found := _differences(seed))}

    assert wrong == {}


@pytest.mark.long  # minutes
@pytest.mark.timeout(3600)
def test_the_two_judges_agree_about_thousands_of_limits(
    record_property: Callable[[str, object], None],
) -> None:
    """Thousands; and each rule is true in some and false in others, often enough to mean something."""
    wrong: dict[int, Any] = {}
    fired: Counter[str] = Counter()
    for seed in range(3_000_000, 3_000_000 + MANY):
        if differences := _differences(seed):
            wrong[seed] = differences
        _, truth = _both(seed)
        fired.update(rule_id for rule_id in JUDGED if truth[rule_id])
    record_property("fired", dict(fired))

    assert wrong == {}
    assert all(10 <= fired[rule_id] <= MANY - 10 for rule_id in JUDGED), fired


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=30, deadline=None)
def test_limits_are_judged_the_same_in_any_order_and_by_any_cut(seed: int, data: st.DataObject) -> None:
    """What waits for its turn, and what counts to an hour, comes to one state however the day is told."""
    h = data.draw(st.sampled_from((random_limits, random_rises)))(seed)
    whole = fold(newborn(LOG, TOPIC), h.told, TERMS, as_of_ms=h.now_ms)
    said = data.draw(st.permutations([*h.told, *h.told[::3]]))
    cut_ms = data.draw(st.integers(T0_MS, h.now_ms))
    first = fold(newborn(LOG, TOPIC), said, TERMS, as_of_ms=cut_ms)
    rest = [each for each in said if each.observed_at_ms > cut_ms]

    assert encode(fold(first, rest, TERMS, as_of_ms=h.now_ms)) == encode(whole)


@pytest.mark.parametrize("seed", [142, 697])
def test_what_cannot_be_told_of_two_replicas_has_one_order(seed: int) -> None:
    """Decided at once, or one before a cut and one behind it, the gaps that they leave are the same bytes."""
    h = random_rises(seed)
    whole = encode(fold(newborn(LOG, TOPIC), h.told, TERMS, as_of_ms=h.now_ms))
    cuts = [T0_MS + (h.now_ms - T0_MS) * number // 24 for number in range(24)]
    parts = [fold(newborn(LOG, TOPIC), h.told, TERMS, as_of_ms=cut_ms) for cut_ms in cuts]
    rests = [[each for each in h.told if each.observed_at_ms > cut_ms] for cut_ms in cuts]
    both = zip(parts, rests, strict=True)

    assert {encode(fold(part, rest, TERMS, as_of_ms=h.now_ms)) for part, rest in both} == {whole}


# --- the machine with one check removed, or one mended bug back: each is caught

Maim = Callable[[pytest.MonkeyPatch], None]


def _nobody_waits_for_a_turn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conditions, "_turn_ms", lambda state, each, now_ms: 0)


def _nothing_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ages, "expired", lambda *arguments: iter(()))


def _what_comes_to_light_still_counts(patch: pytest.MonkeyPatch) -> None:
    counts = removals._counts
    patch.setattr(
        removals, "_counts", lambda state, removal, segments: segments and counts(state, removal, segments)
    )


def _nothing_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(removals, "_counts", lambda *arguments: None)


def _any_empty_log_that_rises_is_fabricated(patch: pytest.MonkeyPatch) -> None:
    rose = fabricated.rose

    def beside_a_start(state: Any, replica: Any, event: Any, *rest: Any) -> None:
        state.broker_starts.setdefault(event.broker_id, []).append((0, 2**62))
        rose(state, replica, event, *rest)

    patch.setattr(fabricated, "rose", beside_a_start)


def _no_rise_is_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fabricated, "rose", lambda *arguments: None)


MAIMED: tuple[Maim, ...] = (
    _nobody_waits_for_a_turn,
    _nothing_expires,
    _what_comes_to_light_still_counts,
    _nothing_counts,
    _any_empty_log_that_rises_is_fabricated,
    _no_rise_is_looked_at,
)


@pytest.mark.slow
@pytest.mark.parametrize("maim", MAIMED, ids=lambda maim: maim.__name__.strip("_"))
def test_a_machine_with_a_limit_less_is_caught(maim: Maim, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the second judge."""
    maim(monkeypatch)

    assert any(_differences(seed) for seed in range(340, 500))
