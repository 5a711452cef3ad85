"""The machine against a second judge, over random histories with random faults; and against itself, maimed.

Seeds are printed by every failure: `random_history(seed)` makes the history again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.machine import (
    authority,
    coverage,
    deviations,
    encode,
    fold,
    is_late,
    newborn,
    obligations,
    removals,
    replicas,
    spans,
    watermarks,
)
from rules.machine.conditions import copies
from rules.machine.verdict import Status, Verdict, judge
from tests.rules.machine.brute import JUDGED
from tests.rules.machine.comparing import by_brute_force, by_machine, compared
from tests.rules.machine.faults import FAULTS
from tests.rules.machine.histories import LOG, T0_MS, TERMS, TOPIC, fixture, found
from tests.rules.machine.random_days import random_history

FAST, MANY = 250, 4_000


def _differences(seed: int) -> dict[str, tuple[Any, Any]]:
    h = random_history(seed)
    machine, truth = by_machine(h.judged()), by_brute_force(h)
    return {
        rule_id: (machine[rule_id], truth[rule_id])
        for rule_id in compared(h)
        if machine[rule_id] != truth[rule_id]
    }


@pytest.mark.slow
def test_the_two_judges_agree() -> None:
    """Hundreds of histories, every rule of them, to the offset."""
    wrong = {seed: found for seed in range(FAST) if (found := _differences(seed))}

    assert wrong == {}


@pytest.mark.slow
def test_the_two_judges_agree_on_thousands(record_property: Callable[[str, object], None]) -> None:
    """Thousands; and among them each rule is true often enough for its agreement to mean something."""
    wrong: dict[int, Any] = {}
    fired: Counter[str] = Counter()
    for seed in range(1_000_000, 1_000_000 + MANY):
        if differences := _differences(seed):
            wrong[seed] = differences
        truth = by_brute_force(random_history(seed))
        fired.update(rule_id for rule_id in JUDGED if truth[rule_id])
    record_property("fired", dict(fired))

    assert wrong == {}
    assert min(fired[rule_id] for rule_id in JUDGED) >= 10, fired


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_order_any_cut_and_any_repetition_is_the_same(seed: int, data: st.DataObject) -> None:
    """Shuffled, doubled, split over runs at any moment: one state, byte for byte."""
    h = random_history(seed)
    whole = fold(newborn(LOG, TOPIC), h.told, TERMS, as_of_ms=h.now_ms)
    said = data.draw(st.permutations([*h.told, *h.told[::3]]))
    cut_ms = data.draw(st.integers(T0_MS, h.now_ms))
    first = fold(newborn(LOG, TOPIC), said, TERMS, as_of_ms=cut_ms)
    rest = [each for each in said if each.observed_at_ms > cut_ms]

    assert encode(fold(newborn(LOG, TOPIC), said, TERMS, as_of_ms=h.now_ms)) == encode(whole)
    assert not any(is_late(first, each) for each in rest)
    assert encode(fold(first, rest, TERMS, as_of_ms=h.now_ms)) == encode(whole)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_truncated_history_never_passes_what_it_did_not_see(seed: int, data: st.DataObject) -> None:
    """With one of a log's events missing in the middle, and its number with it: no PASS, nothing resolved."""
    h = random_history(seed)
    numbered = [each for each in h.told if each.log_seq is not None]
    lost = data.draw(st.sampled_from(numbered))
    has_later = any(
        each.speaker == lost.speaker and (each.log_seq or 0) > (lost.log_seq or 0) for each in numbered
    )
    state = fold(newborn(LOG, TOPIC), [each for each in h.told if each is not lost], TERMS, as_of_ms=h.now_ms)
    judged = judge(state, TERMS, from_ms=T0_MS)
    is_closed = all(each.closed_ms is not None for each in state.gaps if each.sort == "sequence")

    if has_later and not is_closed and not state.is_gone:
        assert judged.verdict in (Verdict.INDETERMINATE, Verdict.VIOLATION)
        assert Status.RESOLVED not in {each.status for each in judged.findings}


# --- the machine with one check removed: each is caught

Maim = Callable[[pytest.MonkeyPatch], None]


def _no_permission_is_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(authority, "permitted", lambda state, from_ms, to_ms, end, terms: spans.span(0, end))


def _any_retention_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(authority.Keeps, "expires", lambda self, newest_ms, at_ms: True)


def _sizes_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(authority.Keeps, "exceeds", lambda self, held, size: True)


def _followers_are_forgotten_at_elections(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "in_doubt", lambda replica: spans.NONE)


def _every_start_was_published(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "_published_by_others", lambda state, replica: spans.span(0, 2**62))


def _what_lay_in_a_hole_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replicas, "_went_before", lambda state, replica, piece, event, terms: None)


def _holes_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coverage, "local", lambda state, replica: spans.span(0, 2**62))


def _a_start_justifies_what_is_below(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(removals, "_start_in_doubt", lambda state: spans.NONE)


def _what_the_tier_holds_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(removals, "_not_uploaded", lambda state, removal, terms: spans.NONE)


def _starts_may_fall(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(obligations, "_was_unclean", lambda state, fall, terms: True)


def _overlaps_are_normal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copies, "_overlaps", lambda live, terms: iter(()))


def _no_settings_are_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deviations, "track", lambda *arguments, **named: None)


def _epochs_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watermarks, "check_epochs", lambda state, interval: None)


def _anybody_may_delete_topics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(authority, "may_delete_topic", lambda state, from_ms, to_ms, terms: True)


MAIMED: tuple[Maim, ...] = (
    _no_permission_is_looked_for,
    _any_retention_expires,
    _sizes_are_not_compared,
    _followers_are_forgotten_at_elections,
    _every_start_was_published,
    _what_lay_in_a_hole_is_forgotten,
    _holes_are_not_kept,
    _a_start_justifies_what_is_below,
    _what_the_tier_holds_is_not_looked_at,
    _starts_may_fall,
    _overlaps_are_normal,
    _no_settings_are_compared,
    _epochs_are_not_compared,
    _anybody_may_delete_topics,
)


def _is_caught() -> bool:
    if any(found(fault.make(fault.mode).judged()) != fault.found for fault in FAULTS):
        return True
    return any(_differences(seed) for seed in range(1_500))


@pytest.mark.parametrize("maim", MAIMED, ids=lambda maim: maim.__name__.strip("_"))
def test_a_machine_with_a_check_less_is_caught(maim: Maim, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the faults of RULES.md, or by the second judge."""
    maim(monkeypatch)

    assert _is_caught()


def test_the_whole_machine_is_not() -> None:
    """What catches the others lets it pass: the faults, and the fixtures that nobody touched."""
    assert all(found(fault.make(fault.mode).judged()) == fault.found for fault in FAULTS)
    assert found(fixture("none").judged()) == set()
